/**
 * Token buckets by key (a principal, an address). The bucket is pure; the table around it holds at most `maxKeys` and forgets the ones
 * that were used least recently, which are full again.
 */

export interface Rate {
  /** Per second. */
  readonly rate: number
  /** How many may be taken at once. */
  readonly burst: number
}

export interface Bucket {
  readonly left: number
  /** When `left` was right, in ms. */
  readonly at: number
}

/** The bucket after one is taken, or how long until there is one, in ms. */
export const take = (
  bucket: Bucket | undefined,
  now: number,
  { rate, burst }: Rate,
): { readonly bucket: Bucket; readonly waitMs: number } => {
  const elapsed = bucket === undefined ? 0 : Math.max(0, now - bucket.at)
  const left = bucket === undefined ? burst : Math.min(burst, bucket.left + (elapsed * rate) / 1000)
  if (left >= 1) return { bucket: { left: left - 1, at: now }, waitMs: 0 }
  return { bucket: { left, at: now }, waitMs: Math.ceil(((1 - left) * 1000) / rate - 1e-6) }
}

const maxKeys = 10_000

export interface RateTable {
  /** Takes one: 0, or how long until there is one, in ms. */
  readonly take: (key: string, now: number) => number
  /** Whether there is one, without taking it: 0, or how long until then, in ms. */
  readonly peek: (key: string, now: number) => number
}

export const makeRateTable = (rate: Rate): RateTable => {
  const buckets = new Map<string, Bucket>()
  return {
    take: (key, now) => {
      const { bucket, waitMs } = take(buckets.get(key), now, rate)
      buckets.delete(key)
      buckets.set(key, bucket)
      if (buckets.size > maxKeys) for (const oldest of buckets.keys()) if (buckets.delete(oldest)) break
      return waitMs
    },
    peek: (key, now) => take(buckets.get(key), now, rate).waitMs,
  }
}
