/**
 * The floor on PostgreSQL: a hand-written program on `pg` that writes the same rows into the same tables with one named statement per commit,
 * without any check, lock, fence or grouping. One connection, as the writer has.
 */
import { Client } from "pg"
import type { Commit } from "../../src/storage/store.ts"

export interface RawPostgres {
  /** A commit of {@link oneCommit}'s shape: two entries, a task, a document. */
  readonly write: (commit: Commit) => Promise<void>
  readonly close: () => Promise<void>
}

/** `$first, $first+1 …` */
const places = (first: number, count: number): string =>
  Array.from({ length: count }, (_, index) => `$${first + index}`).join(", ")

const taskColumns =
  "id, conversation, kind, version, input, status, checkpoint, owner, background, abort_requested, crashes, parked, node, fence, lease_until, wake_at, waiting_on, outcome, request_id, in_doubt, created_at, started_at, ended_at, place, seq"
const replaced = taskColumns
  .split(", ")
  .filter((column) => column !== "id" && column !== "conversation" && column !== "place")
  .map((column) => `${column} = excluded.${column}`)
  .join(", ")

const entryColumns = "id, conversation, kind, model, data, head, edits, task, created_at, seq"

const statement = `WITH number AS (SELECT nextval('seqs') AS seq), entry AS (
    INSERT INTO entries (${entryColumns}) VALUES (${places(1, 9)}, (SELECT seq FROM number)), (${places(10, 9)}, (SELECT seq FROM number))
  ), task AS (
    INSERT INTO tasks (${taskColumns}) VALUES (${places(19, 24)}, (SELECT seq FROM number))
    ON CONFLICT (id) DO UPDATE SET ${replaced}
  ), document AS (
    INSERT INTO documents (id, kind, scope, conversation, task, key, version, history, fork, value, created_seq, seq)
    VALUES (${places(43, 10)}, (SELECT seq FROM number), (SELECT seq FROM number))
    ON CONFLICT (id) DO UPDATE SET version = excluded.version, value = excluded.value, seq = excluded.seq
  ) SELECT seq FROM number`

const json = (value: unknown): string => JSON.stringify(value)
const bit = (value: boolean): number => (value ? 1 : 0)

const parametersOf = ({ documents = [], entries = [], tasks = [] }: Commit): Array<unknown> => [
  ...entries.flatMap((e) => [
    e.id,
    e.conversation,
    e.kind,
    json(e.model),
    e.data === null ? null : json(e.data),
    e.head,
    json(e.edits),
    e.task,
    e.createdAt,
  ]),
  ...tasks.flatMap((t) => [
    ...[t.id, t.conversation, t.kind, t.version, json(t.input), t.status, json(t.checkpoint), t.owner],
    ...[bit(t.background), bit(t.abortRequested), t.crashes, t.parked, t.node, t.fence, t.leaseUntil, t.wakeAt],
    ...[t.waitingOn === null ? null : json(t.waitingOn), t.outcome === null ? null : json(t.outcome), t.requestId],
    ...[bit(t.inDoubt), t.createdAt, t.startedAt, t.endedAt, t.conversation ?? t.id],
  ]),
  ...documents.flatMap((d) => [
    ...[d.id, d.kind, d.scope, d.conversation, d.task, d.key, d.version, d.history, d.fork, json(d.value)],
  ]),
]

export const openRawPostgres = async (url: string): Promise<RawPostgres> => {
  const client = new Client({ connectionString: url })
  await client.connect()
  return {
    write: async (commit) => {
      await client.query({ name: "raw", text: statement, values: parametersOf(commit) })
    },
    close: () => client.end(),
  }
}
