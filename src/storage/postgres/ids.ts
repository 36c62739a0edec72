/**
 * Record ids of one node, out of blocks that it reserves (`idBlock` in `schema.ts`). Rules:
 * 1. A block is reserved by the database before the first of its ids is given, so none is ever given twice; what is left of it when the node
 *    ends is skipped.
 * 2. Ids of conversations are reserved one by one, since people see them.
 * 3. Once a node learns that another one reserved later ids it throws its own away where it takes a conversation: what it mints from then
 *    on is larger than all that anybody gave before.
 */
import { Effect, Exit } from "effect"
import type { CommitError } from "../errors.ts"
import type { IdsByKind } from "../store.ts"
import { idBlock } from "./schema.ts"
import type { Writer } from "./writer.ts"

type BlockKind = Exclude<keyof IdsByKind, "conversation">

/** The first id of the newest block of each kind, of any node. */
export type Reserved = Readonly<Record<BlockKind, number>>

interface Range {
  next: number
  readonly end: number
}

export interface Ids {
  readonly mint: <K extends keyof IdsByKind>(
    kind: K,
    count: number,
  ) => Effect.Effect<ReadonlyArray<IdsByKind[K]>, CommitError>
  /** Rule 3. */
  readonly outgrow: (reserved: Reserved) => void
}

const kinds: ReadonlyArray<BlockKind> = ["entry", "task", "submission", "document", "job"]

export const makeIds = (call: Writer["call"]): Ids => {
  const ranges = new Map<BlockKind, Array<Range>>()
  const newest = new Map<BlockKind, number>()

  const take = (kind: BlockKind, count: number): ReadonlyArray<number> | null => {
    const own = ranges.get(kind) ?? []
    if (own.reduce((sum, range) => sum + range.end - range.next, 0) < count) return null
    const ids: Array<number> = []
    while (ids.length < count) {
      const [range] = own
      if (range === undefined) break
      ids.push(range.next++)
      if (range.next === range.end) own.shift()
    }
    return ids
  }

  const reserve = (kind: BlockKind, count: number) =>
    call(async (link) => {
      // whoever asked before may have left enough
      const taken = take(kind, count)
      if (taken !== null) return Exit.succeed(taken)
      const rows = await link.query(`SELECT nextval('${kind}_ids') AS first FROM generate_series(1, $1)`, [
        Math.ceil(count / idBlock),
      ])
      const own = ranges.get(kind) ?? []
      for (const row of rows) {
        const first = Number(row.first)
        own.push({ next: first, end: first + idBlock })
        newest.set(kind, first)
      }
      ranges.set(kind, own)
      return Exit.succeed(take(kind, count) ?? [])
    })

  const conversations = (count: number) =>
    call(async (link) => {
      const rows = await link.query("SELECT nextval('conversation_ids') AS id FROM generate_series(1, $1)", [count])
      return Exit.succeed(rows.map((row) => Number(row.id)))
    })

  const numbers = (kind: keyof IdsByKind, count: number): Effect.Effect<ReadonlyArray<number>, CommitError> => {
    if (count <= 0) return Effect.succeed([])
    if (kind === "conversation") return conversations(count)
    return Effect.suspend(() => {
      const taken = take(kind, count)
      return taken === null ? reserve(kind, count) : Effect.succeed(taken)
    })
  }

  return {
    mint: <K extends keyof IdsByKind>(kind: K, count: number) =>
      // the brand is what minting gives
      Effect.map(numbers(kind, count), (ids) => ids as ReadonlyArray<IdsByKind[K]>),
    outgrow: (reserved) => {
      for (const kind of kinds) if (reserved[kind] > (newest.get(kind) ?? 0)) ranges.delete(kind)
    },
  }
}
