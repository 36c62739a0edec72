/**
 * What the engines give for a context, against the model of the ten rules: any conversations with forks of forks, heads and edits, written
 * in one commit and read back. Each case takes fresh conversations in one database.
 */
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { deriveContext } from "../../src/domain/context.ts"
import type { ConversationId, EntryId } from "../../src/domain/ids.ts"
import type { CommitError, ReadError } from "../../src/storage/errors.ts"
import { makeMemoryStore, memoryDatabase } from "../../src/storage/memory/store.ts"
import { makeSqliteStore } from "../../src/storage/sqlite/store.ts"
import type { StoreService } from "../../src/storage/store.ts"
import { grow, type ModelEntry, modelContext, modelVisible, steps, type World } from "../domain/rules-model.ts"
import { temporaryDirectory } from "./support.ts"

/** Writes a world; gives its conversations as they are stored, and the entries under their stored ids. */
const stored = (
  store: StoreService,
  world: World,
): Effect.Effect<{ readonly ids: ReadonlyArray<ConversationId>; readonly world: World }, CommitError> =>
  Effect.gen(function* () {
    const all = world.flatMap((one) => one.own).sort((a, b) => a.id - b.id)
    const ids = yield* store.mint("conversation", world.length)
    const fresh = all.length === 0 ? [] : yield* store.mint("entry", all.length)
    const names = new Map(all.map((entry, at) => [entry.id, fresh[at] as EntryId]))
    const name = (id: EntryId): EntryId => names.get(id) as EntryId
    const named = (entry: ModelEntry): ModelEntry => ({
      id: name(entry.id),
      model: entry.model,
      head: entry.head === null ? null : name(entry.head),
      edits: entry.edits.map((edit) => ({ ...edit, entry: name(edit.entry) })),
    })
    const renamed = world.map(({ own, parent }) => ({
      parent: parent === null ? null : { conversation: parent.conversation, entry: name(parent.entry as EntryId) },
      own: own.map(named),
    }))
    yield* store.commit({
      conversations: renamed.map(({ parent }, at) => ({
        id: ids[at] as ConversationId,
        parent:
          parent === null ? null : { conversation: ids[parent.conversation] as ConversationId, entry: parent.entry },
        owner: null,
        principal: "local",
        title: null,
        createdAt: 0,
        updatedAt: 0,
      })),
      entries: renamed.flatMap(({ own }, at) =>
        own.map((entry) => ({
          ...entry,
          conversation: ids[at] as ConversationId,
          kind: "app.any",
          data: null,
          task: null,
          createdAt: 0,
        })),
      ),
    })
    return { ids, world: renamed }
  })

const holds = (store: StoreService, drawn: World): Effect.Effect<void, CommitError | ReadError> =>
  Effect.gen(function* () {
    const { ids, world } = yield* stored(store, drawn)
    for (const [at, id] of ids.entries()) {
      const wanted = modelVisible(world, at)
      const visible = yield* store.visibleEntries(id)
      expect(visible.map((entry) => entry.id)).toEqual(wanted.map((entry) => entry.id))
      const middle = wanted[Math.floor(wanted.length / 2)]?.id
      if (middle !== undefined) {
        const cut = yield* store.visibleEntries(id, middle)
        expect(cut.map((entry) => entry.id)).toEqual(wanted.filter((one) => one.id <= middle).map((one) => one.id))
      }
      const head = wanted.findLast((entry) => entry.head !== null)
      const kept = wanted.filter((entry) => head === undefined || entry.id >= (head.head ?? 0))
      const context = yield* store.contextEntries(id)
      expect(context.map((entry) => entry.id)).toEqual(kept.map((entry) => entry.id))
      expect(deriveContext(context)).toEqual(modelContext(wanted))
    }
  })

const property = (open: Effect.Effect<StoreService, unknown, Scope.Scope>): Promise<void> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(open, (store) =>
        Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(steps(20), (all) => Effect.runPromise(holds(store, grow(all)))),
            { numRuns: 1_000 },
          ),
        ),
      ),
    ),
  )

describe("the entries of a context", () => {
  it("are what the model of the rules says, in memory", () => property(makeMemoryStore(memoryDatabase())), 60_000)

  it(
    "are what the model of the rules says, in SQLite",
    () =>
      property(
        Effect.flatMap(temporaryDirectory, (directory) => makeSqliteStore({ path: join(directory, "rules.db") })),
      ),
    60_000,
  )
})
