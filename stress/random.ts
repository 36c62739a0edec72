/**
 * Seeded randomness (mulberry32): the same seed gives the same load, whatever the machine does.
 */
export interface Random {
  /** A whole number from 0 to `below` - 1. */
  readonly int: (below: number) => number
  readonly chance: (probability: number) => boolean
  readonly pick: <A>(list: ReadonlyArray<A>) => A
}

export const random = (seed: number): Random => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  const int = (below: number): number => Math.floor(next() * below)
  return {
    int,
    chance: (probability) => next() < probability,
    pick: (list) => {
      const found = list[int(list.length)]
      if (found === undefined) throw new RangeError("pick: expected a list that is not empty")
      return found
    },
  }
}
