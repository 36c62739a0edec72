/**
 * Names close to one that was not found: for messages that say what to try instead. Pure.
 */

/** Levenshtein distance, both texts cut to 64 characters. */
const distance = (left: string, right: string): number => {
  const a = left.slice(0, 64)
  const b = right.slice(0, 64)
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const current = [i]
    for (let j = 1; j <= b.length; j++) {
      const swap = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      current.push(Math.min(swap, (previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1))
    }
    previous = current
  }
  return previous[b.length] ?? 0
}

const bare = (name: string) => name.toLowerCase().replace(/[-_\s]/g, "")

/** At most `count` of `names` that resemble `name`, the nearest first, ties in name order. */
export const nearestNames = (name: string, names: Iterable<string>, count: number): ReadonlyArray<string> => {
  const wanted = bare(name)
  const scored: Array<{ readonly name: string; readonly score: number }> = []
  for (const candidate of names) {
    const given = bare(candidate)
    const contains = wanted.length > 2 && given.length > 2 && (given.includes(wanted) || wanted.includes(given))
    const score = contains ? 1 : distance(wanted, given)
    if (score <= Math.max(2, Math.floor(wanted.length / 3))) scored.push({ name: candidate, score })
  }
  scored.sort((x, y) => x.score - y.score || (x.name < y.name ? -1 : 1))
  return scored.slice(0, count).map((entry) => entry.name)
}
