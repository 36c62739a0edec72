/**
 * The nearest of a few names to a mistyped one, for "did you mean" lines.
 */

/** Edits (insert, delete, replace, swap of neighbours) from `a` to `b`. */
const editDistance = (a: string, b: string): number => {
  let before: Array<number> = []
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let best = Math.min((previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (previous[j - 1] ?? 0) + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        best = Math.min(best, (before[j - 2] ?? 0) + 1)
      row.push(best)
    }
    before = previous
    previous = row
  }
  return previous[b.length] ?? 0
}

/** The candidate with the fewest edits, case ignored; a candidate that starts with `name` counts as near. Null without candidates. */
export const nearest = (name: string, candidates: Iterable<string>): string | null => {
  const wanted = name.toLowerCase()
  let best: string | null = null
  let bestScore = Number.POSITIVE_INFINITY
  for (const candidate of candidates) {
    const lower = candidate.toLowerCase()
    const prefixed = wanted.length > 1 && lower.startsWith(wanted)
    const score = prefixed ? 0.5 : editDistance(wanted, lower)
    if (score < bestScore) {
      best = candidate
      bestScore = score
    }
  }
  return best
}
