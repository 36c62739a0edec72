/**
 * Values of labels, of which there are only so many: each new one is a time series for good. Behind the limit every further value is `other`.
 */

/** Distinct values of one label. */
const limit = 200

/** Keeps the first values that it sees. */
export const boundedLabel = (most: number = limit): ((value: string) => string) => {
  const known = new Set<string>()
  return (value) => {
    if (known.has(value)) return value
    if (known.size >= most) return "other"
    const short = value === "" ? "unknown" : value.slice(0, 128)
    known.add(short)
    return short
  }
}
