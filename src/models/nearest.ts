/**
 * Names near a mistyped one. Pure.
 */

/** Edits (insert, delete, replace) between two strings, bounded by 128 characters of each. */
const distance = (left: string, right: string): number => {
  const a = left.slice(0, 128)
  const b = right.slice(0, 128)
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replace, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}

/** `known` ordered by likeness to `name`, with or without a `provider/` prefix; ties keep their order. */
export const nearest = (name: string, known: ReadonlyArray<string>): ReadonlyArray<string> => {
  const wanted = name.toLowerCase()
  const score = (candidate: string) => {
    const full = candidate.toLowerCase()
    return Math.min(distance(wanted, full), distance(wanted, full.slice(full.indexOf("/") + 1)))
  }
  return known
    .map((candidate, index) => ({ candidate, index, score: score(candidate) }))
    .sort((a, b) => a.score - b.score || a.index - b.index)
    .map(({ candidate }) => candidate)
}
