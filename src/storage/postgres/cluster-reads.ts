/**
 * What nodes need of the database beyond the storage port (`cluster-port.ts`).
 */
import { Clock, Effect, Exit } from "effect"
import { shardCount } from "../../domain/cluster.ts"
import type { ConversationId } from "../../domain/ids.ts"
import { TaskKind } from "../../domain/task.ts"
import { isWorkflow } from "../../domain/task-rules.ts"
import type { AdoptedTasks, ClusterStoreService } from "../cluster-port.ts"
import { decodeTask } from "../decode.ts"
import type { Rows } from "../reading.ts"
import { openStatuses } from "./columns.ts"
import type { SqlRow } from "./link.ts"
import { fenceOffStatement } from "./registration.ts"
import type { PostgresReading } from "./run.ts"
import { decodeTexts } from "./text.ts"
import type { Writer } from "./writer.ts"

const atShards = (place: string): string => `${place} % ${shardCount} + 1 = ANY($1::int[])`

export const clusterStatements = {
  placeOfConversation: "SELECT place FROM conversations WHERE id = $1",
  placeOfTask: "SELECT place FROM tasks WHERE id = $1",
  // one whose tasks are all parked waits for a person
  busyConversations: `SELECT c.id FROM conversations c WHERE ${atShards("c.place")} AND c.id IN (
      SELECT conversation FROM tasks WHERE status IN ${openStatuses} AND conversation IS NOT NULL AND parked IS NULL
    ) ORDER BY c.id`,
  // a message where nothing works, since it was sent; a due job, since it is due; a task that nobody may go on with, since its node ended
  oldestUnserved: `SELECT min(since) AS since FROM (
      SELECT min(s.created_at) AS since FROM submissions s WHERE s.status = 'queued'
        AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.status IN ${openStatuses} AND t.conversation = s.conversation)
      UNION ALL SELECT min(run_at) FROM jobs WHERE state = 'available' AND run_at <= $1
      UNION ALL SELECT min(coalesce(n.fenced_at, n.ended_at)) FROM tasks t JOIN conversations c ON c.id = t.conversation
        JOIN nodes n ON n.epoch = c.token_epoch
        WHERE t.status IN ${openStatuses} AND t.parked IS NULL AND (n.fenced_at IS NOT NULL OR n.ended_at IS NOT NULL)
    ) waits`,
} as const

/** Kinds whose fence is not raised: the token of their conversation guards them. */
const keptKinds = Object.values(TaskKind).filter((kind) => !isWorkflow({ kind }))

/** `fence`, and the tasks with their places, as `super_pi_adopt` gives them. */
const adoptedOf = (location: string, answer: unknown): AdoptedTasks => {
  const { fence, tasks } = answer as { readonly fence: number; readonly tasks: ReadonlyArray<SqlRow> }
  return {
    fence,
    tasks: tasks.map(({ place, ...row }) => ({
      task: decodeTask(location, decodeTexts({ ...row })),
      place: Number(place),
    })),
  }
}

const placeOf = ([row]: Rows): number | null => (row === undefined ? null : Number(row.place))

export const clusterStore = ({ read }: PostgresReading, location: string, writer: Writer): ClusterStoreService => ({
  placeOfConversation: (id) => read(clusterStatements.placeOfConversation, [id], placeOf),
  placeOfTask: (id) => read(clusterStatements.placeOfTask, [id], placeOf),
  busyConversations: (shards) =>
    read(clusterStatements.busyConversations, [shards], (rows) => rows.map((row) => row.id as ConversationId)),
  adoptTasks: (shards) =>
    writer.call(async (link) => {
      const [row] = await link.query("SELECT super_pi_adopt($1, $2, $3, $4) AS adopted", [
        writer.epoch,
        link.number,
        shards,
        keptKinds,
      ])
      return Exit.succeed(adoptedOf(location, row?.adopted))
    }),
  fenceOff: (epoch) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => read(fenceOffStatement, [now, epoch], () => undefined)),
  oldestUnserved: Effect.flatMap(Clock.currentTimeMillis, (now) =>
    read(clusterStatements.oldestUnserved, [now], ([row]) =>
      row === undefined || row.since === null ? null : Number(row.since),
    ),
  ),
})
