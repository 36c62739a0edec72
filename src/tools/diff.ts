/**
 * Unified diffs between two texts. Myers' greedy algorithm on lines between the common start and end; where the texts differ in more
 * than {@link searchLimit} lines the middle is shown as replaced as a whole, which bounds time and memory. Pure.
 */

/** Edit distance, in lines, up to which the shortest diff is looked for. */
const searchLimit = 1500

export interface DiffOptions {
  /** Unchanged lines around a change. */
  readonly context: number
  /** Lines of output at most. */
  readonly maxLines: number
}

export interface Diff {
  /** Hunks with their `@@` heads; "" when the texts are equal. */
  readonly text: string
  readonly added: number
  readonly removed: number
  /** Whether `text` was cut at `maxLines`. */
  readonly truncated: boolean
}

interface Change {
  readonly kind: " " | "-" | "+"
  readonly line: string
}

/** Lines with their ends, so that a difference in the last line end is seen. */
const split = (text: string): ReadonlyArray<string> => text.match(/[^\n]*\n|[^\n]+$/g) ?? []

/** The shortest edit script from `a` to `b`, or undefined when it is longer than the limit. */
const myers = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): ReadonlyArray<Change> | undefined => {
  const limit = Math.min(a.length + b.length, searchLimit)
  const trace: Array<Int32Array> = []
  // Furthest x on diagonal k, at index k + d of the round d.
  let frontier = new Int32Array(1)
  for (let d = 0; d <= limit; d++) {
    const next = new Int32Array(2 * d + 1)
    for (let k = -d; k <= d; k += 2) {
      const left = k > -d + 1 || (d > 0 && k - 1 >= -(d - 1)) ? (frontier[k - 1 + d - 1] ?? -1) : -1
      const above = k < d && k + 1 <= d - 1 ? (frontier[k + 1 + d - 1] ?? -1) : -1
      let x = d === 0 ? 0 : k === -d || (k !== d && left < above) ? above : left + 1
      let y = x - k
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x++
        y++
      }
      next[k + d] = x
      if (x >= a.length && y >= b.length) {
        trace.push(next)
        return backtrack(a, b, trace)
      }
    }
    trace.push(next)
    frontier = next
  }
  return undefined
}

const backtrack = (
  a: ReadonlyArray<string>,
  b: ReadonlyArray<string>,
  trace: ReadonlyArray<Int32Array>,
): ReadonlyArray<Change> => {
  const changes: Array<Change> = []
  let [x, y] = [a.length, b.length]
  for (let d = trace.length - 1; d > 0; d--) {
    const before = trace[d - 1] ?? new Int32Array(1)
    const reach = (k: number) => (Math.abs(k) <= d - 1 ? (before[k + d - 1] ?? -1) : -1)
    const k = x - y
    const down = k === -d || (k !== d && reach(k - 1) < reach(k + 1))
    const previousK = down ? k + 1 : k - 1
    const fromX = reach(previousK)
    const fromY = fromX - previousK
    const [startX, startY] = down ? [fromX, fromY + 1] : [fromX + 1, fromY]
    for (; x > startX && y > startY; x--, y--) changes.push({ kind: " ", line: a[x - 1] ?? "" })
    if (down) changes.push({ kind: "+", line: b[fromY] ?? "" })
    else changes.push({ kind: "-", line: a[fromX] ?? "" })
    x = fromX
    y = fromY
  }
  for (; x > 0; x--) changes.push({ kind: " ", line: a[x - 1] ?? "" })
  return changes.reverse()
}

const replaced = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): ReadonlyArray<Change> => [
  ...a.map((line): Change => ({ kind: "-", line })),
  ...b.map((line): Change => ({ kind: "+", line })),
]

/** Line changes from `a` to `b`. */
const changesOf = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): ReadonlyArray<Change> => {
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
  const [middleA, middleB] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)]
  const same = (line: string): Change => ({ kind: " ", line })
  return [
    ...a.slice(0, head).map(same),
    ...(myers(middleA, middleB) ?? replaced(middleA, middleB)),
    ...a.slice(a.length - tail).map(same),
  ]
}

/** `start,count` of a hunk head, as `diff -u` writes it. */
const range = (start: number, count: number): string =>
  count === 1 ? `${start + 1}` : `${count === 0 ? start : start + 1},${count}`

/** The unified diff from `before` to `after`, without file heads. */
export const unifiedDiff = (before: string, after: string, options: DiffOptions): Diff => {
  if (before === after) return { text: "", added: 0, removed: 0, truncated: false }
  const changes = changesOf(split(before), split(after))
  const { context, maxLines } = options
  const out: Array<string> = []
  let [added, removed, oldLine, newLine, index] = [0, 0, 0, 0, 0]
  while (index < changes.length) {
    if (changes[index]?.kind === " ") {
      oldLine++
      newLine++
      index++
      continue
    }
    // A hunk: from `context` lines before the first change to `context` after the last one with no larger gap between.
    let end = index
    for (let at = index; at < changes.length && at - end <= 2 * context; at++) if (changes[at]?.kind !== " ") end = at
    const from = Math.max(0, index - context)
    const lead = index - from
    const to = Math.min(changes.length, end + 1 + context)
    const hunk = changes.slice(from, to)
    const minus = hunk.filter((change) => change.kind === "-").length
    const plus = hunk.filter((change) => change.kind === "+").length
    const same = hunk.length - minus - plus
    out.push(`@@ -${range(oldLine - lead, same + minus)} +${range(newLine - lead, same + plus)} @@`)
    for (const { kind, line } of hunk) {
      out.push(kind + line.replace(/\n$/, ""))
      if (!line.endsWith("\n")) out.push("\\ No newline at end of file")
    }
    added += plus
    removed += minus
    oldLine += same + minus - lead
    newLine += same + plus - lead
    index = to
  }
  const truncated = out.length > maxLines
  return {
    text: (truncated ? out.slice(0, maxLines) : out).map((line) => `${line}\n`).join(""),
    added,
    removed,
    truncated,
  }
}
