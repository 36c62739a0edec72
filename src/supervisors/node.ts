/**
 * The supervision tree of one node, and the sessions that it serves:
 *
 *   /user/workers (dynamic)        file locks, sandbox slots (workers.ts)
 *   /user/node (one_for_one)
 *     conversations (dynamic)      one keeper per conversation, its machine, its jobs
 *
 * At the start every conversation with open work is started: it recovers by itself. At the end the tree stops in reverse order; machines
 * release their tasks, so that a clean stop counts as no crash.
 */
import { Effect, Layer } from "effect"
import { orStorageFailure } from "../actors/conversation/failures.ts"
import type { ConversationNeeds } from "../actors/conversation/index.ts"
import { ActorSystem, spawn, stop } from "../actors/kernel/index.ts"
import { Sessions } from "../actors/sessions.ts"
import { type Failure, ServiceFailure } from "../domain/failure.ts"
import { Models } from "../models/model.ts"
import { Store } from "../storage/store.ts"
import { child } from "./child.ts"
import { type Conversations, makeConversations } from "./conversations.ts"
import { dynamicSupervisor } from "./dynamic-supervisor.ts"
import { makeSessions } from "./sessions.ts"
import { supervisor } from "./supervisor.ts"

/** Registry name of the keepers' supervisor. */
const conversationsName = "conversations"

/** The sessions of a node that owns its database. Scoped: releasing it stops every conversation cleanly. */
export const nodeLayer: Layer.Layer<Sessions, Failure, ActorSystem | ConversationNeeds> = Layer.scoped(
  Sessions,
  Effect.gen(function* () {
    const system = yield* ActorSystem
    const store = yield* Store
    const models = yield* Models
    const root = supervisor({
      name: "node",
      strategy: "one_for_one",
      children: [
        child("conversations", dynamicSupervisor({ name: "conversations", restart: "temporary", shutdownMs: 10_000 }), {
          register: conversationsName,
        }),
      ],
    })
    yield* Effect.acquireRelease(spawn(root, { name: "node" }).pipe(Effect.mapError(notStarted)), (ref) => stop(ref))
    const found = yield* system.registry.whereis<never>(conversationsName)
    const parent = yield* found
    const conversations = yield* makeConversations(parent)
    yield* recoverAll(conversations)
    return makeSessions({ store, models, system, conversations })
  }).pipe(Effect.catchTag("NoSuchElementException", () => Effect.fail(notStarted(new Error("no supervisor"))))),
)

const notStarted = (cause: Error): ServiceFailure =>
  new ServiceFailure({ code: "start", detail: `the node did not start: ${cause.message}`, reference: "start" })

/** Starts every conversation that has open work. One that cannot start is reported and left for later. */
const recoverAll = (conversations: Conversations) =>
  Effect.gen(function* () {
    const store = yield* Store
    const tasks = yield* orStorageFailure(store.openTasks())
    const ids = new Set(tasks.map((task) => task.conversation).filter((id) => id !== null))
    yield* Effect.forEach(
      ids,
      (id) =>
        conversations
          .get(id)
          .pipe(
            Effect.catchAll((failure) => Effect.logError(`conversation ${id} was not resumed: ${failure.message}`)),
          ),
      { concurrency: 8, discard: true },
    )
  })
