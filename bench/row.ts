/**
 * What every bench exports: measurements beside a peer in the same run. Only the ratio travels between machines.
 */
export interface Row {
  readonly name: string
  readonly ours: number
  /** Null where there is no peer. */
  readonly peer: number | null
  readonly unit: string
  /** How many times better we are than the peer: above 1 is better, whatever the unit. Null without a peer. */
  readonly ratio: number | null
  /** For people, for example `≥ 4 × nact`. */
  readonly target: string
  readonly met: boolean
}

/** Lines of a table. */
export const table = (title: string, rows: ReadonlyArray<Row>): string => {
  const cells = [
    [title, "ours", "peer", "unit", "ratio", "target", ""],
    ...rows.map((row) => [
      row.name,
      figure(row.ours),
      row.peer === null ? "" : figure(row.peer),
      row.unit,
      row.ratio === null ? "" : row.ratio.toFixed(2),
      row.target,
      row.met ? "met" : "MISSED",
    ]),
  ]
  const widths = [0, 1, 2, 3, 4, 5, 6].map((column) => Math.max(...cells.map((line) => (line[column] ?? "").length)))
  return cells
    .map((line) =>
      line
        .map((cell, i) => (i === 1 || i === 2 || i === 4 ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
        .join("  ")
        .trimEnd(),
    )
    .join("\n")
}

const figure = (value: number): string =>
  value >= 1_000 ? Math.round(value).toLocaleString("en-US") : value.toPrecision(3)

/** The middle of an odd number of measurements. */
export const median = (values: ReadonlyArray<number>): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

/** Seconds of a clock that never goes back. */
export const elapsedSeconds = (): number => performance.now() / 1_000
