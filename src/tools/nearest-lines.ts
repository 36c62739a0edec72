/**
 * Where in a file a text that is not in it was probably meant: the places whose lines resemble it most. Pure.
 */

/** A run of lines of the file. */
export interface Place {
  /** Number of the first line, from 1. */
  readonly line: number
  readonly lines: ReadonlyArray<string>
  /** 0 (nothing alike) to 1 (the same but for blanks). */
  readonly similarity: number
}

const maxLineChars = 400

/** Pairs of neighbouring characters of a line without its blanks, with how often each occurs. */
const pairsOf = (line: string): ReadonlyMap<string, number> => {
  const bare = line.replace(/\s+/g, "").slice(0, maxLineChars)
  const pairs = new Map<string, number>()
  if (bare.length === 1) pairs.set(bare, 1)
  for (let index = 0; index + 1 < bare.length; index++) {
    const pair = bare.slice(index, index + 2)
    pairs.set(pair, (pairs.get(pair) ?? 0) + 1)
  }
  return pairs
}

const sizeOf = (pairs: ReadonlyMap<string, number>): number => {
  let size = 0
  for (const count of pairs.values()) size += count
  return size
}

/** Sørensen–Dice coefficient of two lines by their character pairs. */
const similarity = (left: ReadonlyMap<string, number>, right: ReadonlyMap<string, number>): number => {
  const total = sizeOf(left) + sizeOf(right)
  if (total === 0) return 0
  let shared = 0
  for (const [pair, count] of left) shared += Math.min(count, right.get(pair) ?? 0)
  return (2 * shared) / total
}

/** At most three places, the most alike first; none where nothing is at least half alike. At most 12 lines each. */
export const nearestPlaces = (text: string, wanted: string): ReadonlyArray<Place> => {
  const lines = text.split("\n")
  const sought = wanted.replace(/\n$/, "").split("\n")
  // The longest line says most about the place.
  let anchor = 0
  for (const [index, line] of sought.entries()) {
    if (line.trim().length > (sought[anchor] ?? "").trim().length) anchor = index
  }
  const anchorPairs = pairsOf(sought[anchor] ?? "")
  if (anchorPairs.size === 0) return []
  const candidates = lines
    .map((line, index) => ({ index, score: similarity(anchorPairs, pairsOf(line)) }))
    .filter(({ score }) => score >= 0.5)
    .sort((left, right) => right.score - left.score || left.index - right.index)
    .slice(0, 20)
  const height = Math.min(sought.length, 12)
  const soughtPairs = sought.slice(0, 60).map(pairsOf)
  const places = candidates.map(({ index }) => {
    const start = Math.max(0, index - anchor)
    let score = 0
    for (const [offset, pairs] of soughtPairs.entries()) {
      const line = lines[start + offset]
      if (line !== undefined) score += pairs.size === 0 && line.trim() === "" ? 1 : similarity(pairs, pairsOf(line))
    }
    // Show the part around the anchor when the text is longer than what is shown.
    const from = anchor < height ? start : Math.max(start, index - Math.floor(height / 2))
    const shown = lines.slice(from, from + height).map((line) => line.slice(0, maxLineChars))
    return { line: from + 1, lines: shown, similarity: score / soughtPairs.length }
  })
  places.sort((left, right) => right.similarity - left.similarity || left.line - right.line)
  const distinct: Array<Place> = []
  for (const place of places) {
    if (distinct.every((other) => Math.abs(other.line - place.line) >= height)) distinct.push(place)
  }
  return distinct.slice(0, 3)
}
