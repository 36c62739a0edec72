/**
 * The restart strategies, pure: which of a supervisor's children one failed child takes along.
 */

/**
 * `one_for_one`: the failed child alone. `one_for_all`: every child. `rest_for_one`: the failed child and those started after it.
 */
export type Strategy = "one_for_one" | "one_for_all" | "rest_for_one"

/** Positions of the children to restart when the child at `failed` has ended, in order of start; they stop in reverse. */
export const affected = (strategy: Strategy, count: number, failed: number): ReadonlyArray<number> => {
  switch (strategy) {
    case "one_for_one":
      return [failed]
    case "one_for_all":
      return range(0, count)
    case "rest_for_one":
      return range(failed, count)
  }
}

const range = (from: number, to: number): Array<number> => Array.from({ length: to - from }, (_, i) => from + i)
