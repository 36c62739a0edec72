/**
 * Names like a mistyped one, for messages that say what was probably meant.
 * Likeness is the number of edits; case, `-`, `_` and blanks do not count. A name that contains the wanted one is nearer than any with an
 * edit, one that is contained in it nearer than any with two; the less there is around it, the nearer.
 */

/** Characters of a name that are compared: names are short, and the work grows with the square. */
const comparedChars = 64

const fold = (name: string): string =>
  name
    .slice(0, comparedChars)
    .toLowerCase()
    .replace(/[-_\s]/g, "")

/** Edits (insert, delete, replace, swap of neighbours) from `a` to `b`: the optimal string alignment distance. */
const edits = (a: string, b: string): number => {
  let before: Array<number> = []
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swaps = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swapped = swaps ? (before[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY
      row.push(Math.min((previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, replaced, swapped))
    }
    before = previous
    previous = row
  }
  return previous[b.length] ?? 0
}

/** 0 for the same name, a fraction more the more there is around it in `long`; infinite where it is not in there. */
const around = (short: string, long: string, least: number): number =>
  (short.length >= least && long.startsWith(short)) || (short.length > 2 && long.includes(short))
    ? 1 - 1 / (1 + long.length - short.length)
    : Number.POSITIVE_INFINITY

/** Both are folded. A beginning of two characters is telling where a person wrote it, not where it is a whole name. */
const unlikeness = (wanted: string, given: string): number =>
  Math.min(around(wanted, given, 2), 1 + around(given, wanted, 3), edits(wanted, given))

interface Ranked {
  readonly name: string
  readonly score: number
}

const ranked = (
  wanted: string,
  names: Iterable<string>,
  forms: (name: string) => ReadonlyArray<string>,
): ReadonlyArray<Ranked> =>
  [...names]
    .map((name) => ({ name, score: Math.min(...forms(name).map((form) => unlikeness(wanted, fold(form)))) }))
    .sort((a, b) => a.score - b.score)

const itself = (name: string): ReadonlyArray<string> => [name]

/** All of `names`, the most like `name` first; ties keep their order. A name is as near as the nearest of its `forms`. */
export const byLikeness = (
  name: string,
  names: Iterable<string>,
  forms: (name: string) => ReadonlyArray<string> = itself,
): ReadonlyArray<string> => ranked(fold(name), names, forms).map((one) => one.name)

/** The most like of `names`, however unlike it is; null where there are none. */
export const nearest = (name: string, names: Iterable<string>): string | null => byLikeness(name, names)[0] ?? null

/** At most `count` of `names` that resemble `name` (two edits, or a third of its length), the most like first; ties keep their order. */
export const nearestNames = (name: string, names: Iterable<string>, count: number): ReadonlyArray<string> => {
  const wanted = fold(name)
  const most = Math.max(2, Math.floor(wanted.length / 3))
  return ranked(wanted, names, itself)
    .filter(({ score }) => score <= most)
    .slice(0, count)
    .map((one) => one.name)
}
