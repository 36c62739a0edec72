/**
 * Figures that tests print and never assert.
 */

/** The value below which a part of the values lies, by the nearest rank. */
export const percentile = (values: ReadonlyArray<number>, part: number): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN
}

/** `p50 210 ms, p99 480 ms, worst 500 ms of 40` */
export const summary = (values: ReadonlyArray<number>): string =>
  `p50 ${percentile(values, 0.5)} ms, p99 ${percentile(values, 0.99)} ms, worst ${percentile(values, 1)} ms of ${values.length}`

/** A line of its own on stdout, where the reporter leaves it alone. */
export const say = (line: string): void => {
  process.stdout.write(`  ${line}\n`)
}

/** Whether the long forms run: `npm run test:cluster` sets it. */
export const isLong = process.env.SUPER_PI_TEST_CLUSTER === "long"
