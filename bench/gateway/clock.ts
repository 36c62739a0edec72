/**
 * What both servers stream: deltas that say when they were made, at even intervals. The clock is the system's monotonic one, which all
 * processes share.
 */

/** Concurrent streams. */
export const clients = 200
/** Deltas of one stream. */
export const deltas = 120
/** Between two deltas of one stream, in ms. */
export const intervalMs = 50
/** Between the starts of two streams, in ms: people do not ask at the same instant. All of them stream at once for two thirds of the time. */
export const startMs = 10

/** Now, as a delta. */
export const stamp = (): string => `${process.hrtime.bigint()};`

/** Ages of the stamps in a text, in ms; `rest` is the part of a stamp at its end. */
export const agesOf = (text: string): { readonly ages: ReadonlyArray<number>; readonly rest: string } => {
  const now = process.hrtime.bigint()
  const stamps = text.split(";")
  const rest = stamps.pop() ?? ""
  return { ages: stamps.map((one) => Number(now - BigInt(one)) / 1e6), rest }
}
