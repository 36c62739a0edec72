/**
 * The counters of a database: owner epoch, commit numbers, record ids. Rules:
 * 1. Opening as owner raises the epoch; every later transaction first proves that the epoch is still ours, or nothing is written.
 * 2. Numbers come from memory out of blocks whose end is durable before the first of them is handed out, so none is ever handed out
 *    twice, also after a crash, which costs at most the rest of a block.
 * 3. A clean close gives the unused rest back.
 */
import { Fenced } from "../errors.ts"
import type { IdsByKind } from "../store.ts"
import type { Database } from "./connection.ts"

type Counter = "seq" | keyof IdsByKind

/** Numbers reserved at a time. People see the ids of conversations, so few of those may be skipped by a crash. */
const blocks: Record<Counter, number> = {
  seq: 4096,
  conversation: 16,
  entry: 256,
  task: 256,
  submission: 128,
  document: 128,
  job: 128,
}

const counters: ReadonlyArray<Counter> = ["seq", "conversation", "entry", "task", "submission", "document", "job"]

export interface Counters {
  /** The owner epoch of this process. */
  readonly epoch: number
  /** Throws `Fenced` when another owner took over. Call first in every transaction. */
  readonly check: () => void
  /** Inside a transaction: makes sure that `count` numbers are reserved; returns what to call once it is committed. */
  readonly reserve: (counter: Counter, count: number) => (() => void) | null
  /** The next `count` numbers start here; they must be reserved. */
  readonly take: (counter: Counter, count: number) => number
  /** How many reserved numbers are left. */
  readonly left: (counter: Counter) => number
  /** Inside a transaction: gives the unused numbers back. */
  readonly giveBack: () => void
}

/** Takes ownership of the database: raises the epoch and reads the counters. Runs its own transaction. */
export const openCounters = (db: Database, location: string): Counters => {
  const read = db.prepare<[string], number>("SELECT value FROM meta WHERE name = ?").pluck()
  const write = db.prepare<[number, string]>("UPDATE meta SET value = ? WHERE name = ?")
  const epochNow = db.prepare<[], number>("SELECT value FROM meta WHERE name = 'epoch'").pluck()

  db.exec("BEGIN IMMEDIATE")
  const epoch = (epochNow.get() ?? 0) + 1
  write.run(epoch, "epoch")
  const next = new Map<Counter, number>()
  for (const counter of counters) {
    const durable = read.get(counter) ?? 1
    // a restored or edited file: never below what its rows use
    const highest = counter === "seq" ? 0 : (db.prepare(`SELECT max(id) FROM ${tables[counter]}`).pluck().get() ?? 0)
    next.set(counter, Math.max(durable, typeof highest === "number" ? highest + 1 : 1))
  }
  db.exec("COMMIT")

  const end = new Map(next)
  const at = (map: Map<Counter, number>, counter: Counter): number => map.get(counter) ?? 1
  return {
    epoch,
    check: () => {
      const current = epochNow.get() ?? 0
      if (current !== epoch) throw new Fenced({ what: location, held: epoch, current })
    },
    reserve: (counter, count) => {
      const needed = at(next, counter) + count
      if (needed <= at(end, counter)) return null
      const until = needed + blocks[counter]
      write.run(until, counter)
      return () => {
        end.set(counter, until)
      }
    },
    take: (counter, count) => {
      const first = at(next, counter)
      next.set(counter, first + count)
      return first
    },
    left: (counter) => at(end, counter) - at(next, counter),
    giveBack: () => {
      for (const counter of counters) write.run(at(next, counter), counter)
    },
  }
}

const tables: Record<keyof IdsByKind, string> = {
  conversation: "conversations",
  entry: "entries",
  task: "tasks",
  submission: "submissions",
  document: "documents",
  job: "jobs",
}
