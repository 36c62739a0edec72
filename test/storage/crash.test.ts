/**
 * A process that commits in a loop is killed with SIGKILL: every commit that it had acknowledged is there whole, and no partial one.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { beforeAll } from "vitest"
import { makeSqliteStore } from "../../src/storage/sqlite/store.ts"
import { bundle, run, temporaryDirectory } from "./support.ts"

/** Eight fibers commit two entries, a task and a rewindable document each time, and print `conversation a b task seq` once answered. */
const committer = `
import { writeSync } from "node:fs"
import { Effect } from "effect"
import { conversation, document, entry, task } from "./src/storage/conformance/records.ts"
import { makeSqliteStore } from "./src/storage/sqlite/store.ts"
const path = process.argv[2]
Effect.runFork(Effect.scoped(Effect.gen(function* () {
  const store = yield* makeSqliteStore({ path })
  const ids = yield* store.mint("conversation", 8)
  yield* store.commit({ conversations: ids.map((id) => conversation(id)) })
  yield* Effect.forEach(ids, (of) => Effect.gen(function* () {
    const [doc] = yield* store.mint("document", 1)
    for (let round = 1; ; round++) {
      const [a, b] = yield* store.mint("entry", 2)
      const [t] = yield* store.mint("task", 1)
      const data = { pair: [a, b], task: t }
      const seq = yield* store.commit({
        entries: [entry(a, of, { data }), entry(b, of, { data })],
        tasks: [task(t, of)],
        documents: [document(doc, of, { history: "rewindable", value: { round } })],
      })
      writeSync(1, [of, a, b, t, seq, round].join(" ") + "\\n")
    }
  }), { concurrency: "unbounded" })
})))
`

let program = ""
beforeAll(async () => {
  const directory = mkdtempSync(join(tmpdir(), "super-pi-committer-"))
  program = await bundle(directory, "committer", committer)
  return () => rmSync(directory, { recursive: true, force: true })
})

interface Pair {
  readonly pair: readonly [number, number]
  readonly task: number
}

/** Reads acknowledgements until `count` came, kills the process, and reads what it had still printed. */
const runUntilKilled = (path: string, count: number) =>
  Effect.gen(function* () {
    const child = yield* run(program, [path])
    const acknowledged: Array<ReadonlyArray<number>> = []
    while (true) {
      const line = yield* Effect.promise(child.line)
      if (line === null) return acknowledged
      const numbers = line.split(" ").map(Number)
      // a line that the kill cut short acknowledges nothing
      if (numbers.length === 6) acknowledged.push(numbers)
      if (acknowledged.length === count) child.kill("SIGKILL")
    }
  })

describe("after SIGKILL", () => {
  it.scopedLive("every acknowledged commit is there whole, no commit is there in part, and the store goes on", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      const all: Array<ReadonlyArray<number>> = []
      for (let round = 0; round < 5; round++) {
        // where exactly the kill lands is up to the machine
        all.push(...(yield* Effect.scoped(runUntilKilled(path, 5 + Math.floor(Math.random() * 300)))))

        yield* Effect.scoped(
          Effect.gen(function* () {
            const store = yield* makeSqliteStore({ path })
            const summaries = yield* store.conversations({ principal: null, limit: 1000 })
            const seqOf = new Map<number, number>()
            const last = new Map<number, number>()
            for (const { conversation } of summaries) {
              const entries = yield* store.entries(conversation.id)
              const tasks = new Map(
                (yield* store.openTasks(conversation.id)).map((row) => [row.id as number, row.seq as number]),
              )
              const [document] = yield* store.documents(conversation.id)
              const ids = new Map(entries.map((row) => [row.id as number, row.seq as number]))
              expect(tasks.size * 2).toBe(entries.length)
              for (const row of entries) {
                // the data was written by the committer above
                const { pair, task } = row.data as unknown as Pair
                for (const id of pair) expect(ids.get(id)).toBe(row.seq)
                expect(tasks.get(task)).toBe(row.seq)
                seqOf.set(row.id, row.seq)
              }
              const newest = Math.max(0, ...ids.values())
              if (newest > 0) expect(document?.seq).toBe(newest)
              last.set(conversation.id, entries.length / 2)
              if (entries.length > 0) expect(document?.value).toEqual({ round: entries.length / 2 })
            }
            for (const [of, a, b, , seq, done] of all) {
              expect(seqOf.get(a ?? 0)).toBe(seq)
              expect(seqOf.get(b ?? 0)).toBe(seq)
              expect(last.get(of ?? 0)).toBeGreaterThanOrEqual(done ?? 0)
            }
            const [fresh] = yield* store.mint("entry", 1)
            expect([...seqOf.keys()].every((id) => id < (fresh ?? 0))).toBe(true)
          }),
        )
        const db = new Database(path, { readonly: true })
        expect(db.pragma("integrity_check", { simple: true })).toBe("ok")
        const revisions = db.prepare("SELECT count(*) FROM document_revisions").pluck().get()
        expect(revisions).toBe(db.prepare("SELECT count(*) / 2 FROM entries").pluck().get())
        db.close()
      }
      expect(all.length).toBeGreaterThan(20)
    }),
  )
})
