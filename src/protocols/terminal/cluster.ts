/**
 * A cluster as a table: a line for each member, then its shards and what waits. Pure.
 */
import type { ClusterMember, ClusterStatus } from "../../domain/cluster.ts"
import { ago, duration } from "./format.ts"
import { oneLine } from "./sanitize.ts"
import { displayWidth } from "./width.ts"

/** What is not known. */
const unknown = "-"

const head = ["NODE", "STATE", "SHARDS", "MACHINES", "BUSY", "EPOCH", "VERSION", "STARTED", "ADDRESS"]

const row = (member: ClusterMember, now: number): ReadonlyArray<string> => [
  `${oneLine(member.name)}${member.self ? " *" : ""}`,
  member.state,
  String(member.shards),
  member.machines === null ? unknown : String(member.machines),
  member.busy === null ? unknown : String(member.busy),
  String(member.epoch),
  oneLine(member.version),
  ago(member.startedAt, now),
  oneLine(member.address) || unknown,
]

/** `self` of a member marks who says it. `now` in milliseconds since the epoch. */
export const clusterLines = (status: ClusterStatus, now: number): ReadonlyArray<string> => {
  const rows = [head, ...status.members.map((member) => row(member, now))]
  const widths = head.map((_, column) => Math.max(...rows.map((cells) => displayWidth(cells[column] ?? ""))))
  const line = (cells: ReadonlyArray<string>) =>
    cells
      .map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - displayWidth(cell)))
      .join("  ")
      .trimEnd()
  const { held, total, unheld } = status.shards
  const waits =
    status.oldestUnservedMs === null
      ? "nothing waits"
      : `the oldest work has waited ${duration(status.oldestUnservedMs)}`
  return [
    ...rows.map(line),
    "",
    `strategy ${oneLine(status.strategy)}; ${held} of ${total} shards are held${unheld === 0 ? "" : `, ${unheld} by nobody`}; ${waits}`,
  ]
}
