/**
 * Verification: some time after a conversation has settled, its stored context is checked in the background against what providers
 * accept. What one would refuse is quarantined: an entry with edits that keep it from being sent; nothing is deleted.
 *
 *   conversation settles ─▶ collector (one commit a second for all) ─▶ unique, delayed job ─▶ worker ─▶ `pi.quarantine` entry
 */
import { Effect } from "effect"
import type { EventHub } from "../actors/conversation/hub.ts"
import type { SubmissionRow } from "../actors/conversation/machine/data.ts"
import type { ConversationMessage } from "../actors/conversation/messages.ts"
import { type ActorRef, ask, behavior, tell, unsafeTell } from "../actors/kernel/index.ts"
import { sleepLong } from "../actors/kernel/timers.ts"
import type { QueuesService } from "../actors/queue/queues.ts"
import { done, type QueueWorker, snooze } from "../actors/queue/worker.ts"
import type { Failure } from "../domain/failure.ts"
import { ConversationId } from "../domain/ids.ts"
import { QueueName } from "../domain/job.ts"
import { isRecord } from "../domain/json.ts"
import { type Quarantine, quarantineKind, quarantineOf } from "../domain/quarantine.ts"
import type { StoreService } from "../storage/store.ts"
import type { Conversations } from "./conversations.ts"

const workerName = "check"

/** The job that checks a conversation `delayMs` from now; one at a time for each. */
const checkOf = (conversation: ConversationId, delayMs: number) => ({
  queue: QueueName.verification,
  worker: workerName,
  args: { conversation },
  uniqueKey: String(conversation),
  delayMs,
  conversation,
})

/** Milliseconds for which settled conversations are gathered into one commit. */
const gatherMs = 1_000

/** Where conversations say that they have settled: at once, and nobody waits for what follows. */
export class Settled {
  private ref: ActorRef<ConversationId> | null = null

  readonly note = (conversation: ConversationId): void => {
    if (this.ref !== null) unsafeTell(this.ref, conversation)
  }

  goTo(ref: ActorRef<ConversationId>): void {
    this.ref = ref
  }
}

/** The actor that puts the checks of settled conversations into the queue. */
export const collector = (settledOnes: Settled, queues: QueuesService, delayMs: number) => {
  const write = (settled: Set<ConversationId>): Effect.Effect<void> =>
    Effect.gen(function* () {
      const checks = [...settled].map((id) => checkOf(id, delayMs))
      const commit = (some: typeof checks) => Effect.flatMap(queues.rows(some), (jobs) => queues.commit({ jobs }))
      // One that was removed meanwhile refuses all: then each by itself.
      yield* Effect.catchTag(commit(checks), "Conflict", () =>
        Effect.forEach(checks, (check) => Effect.ignore(commit([check])), { discard: true }),
      )
    }).pipe(
      // The next time that one of them settles it is noted again.
      Effect.catchAll((error) => Effect.logWarning(`settled conversations will not be checked: ${error.message}`)),
      Effect.ensuring(Effect.sync(() => settled.clear())),
    )
  return behavior<Set<ConversationId>, ConversationId | "write">({
    name: "settled",
    init: (self) => {
      settledOnes.goTo(self.ref)
      return new Set()
    },
    receive: (settled, message, self) => {
      if (message === "write") return settled.size === 0 ? Effect.succeed(settled) : Effect.as(write(settled), settled)
      const first = settled.size === 0
      settled.add(message)
      if (!first) return Effect.succeed(settled)
      const later = Effect.zipRight(sleepLong(gatherMs), tell<ConversationId | "write">(self.ref, "write"))
      return Effect.as(self.fork(later), settled)
    },
    onStop: (settled) => (settled.size === 0 ? Effect.void : write(settled)),
    describe: (settled) => `${settled.size} settled`,
  })
}

/** The worker of `verification`. */
export const verificationWorker = (
  store: StoreService,
  conversations: Conversations,
  againMs: number,
): QueueWorker => ({
  queue: QueueName.verification,
  name: workerName,
  run: ({ job }) =>
    Effect.gen(function* () {
      const id = isRecord(job.args) && typeof job.args.conversation === "number" ? job.args.conversation : null
      if (id === null) return done
      const conversation = ConversationId.make(id)
      if ((yield* store.openTasks(conversation)).length > 0) return snooze(againMs)
      const quarantine = quarantineOf(yield* store.contextEntries(conversation))
      if (quarantine !== null) yield* write(conversations, conversation, quarantine)
      return done
    }),
})

/** Appends the entry through the conversation's actor, which alone writes its records, and tells its watchers. */
const write = (
  conversations: Conversations,
  id: ConversationId,
  { edits, found }: Quarantine,
): Effect.Effect<void, unknown> =>
  Effect.gen(function* () {
    const ref = yield* conversations.get(id)
    const last = edits.reduce((newest, edit) => Math.max(newest, edit.entry), 0)
    yield* ask<ConversationMessage, SubmissionRow, Failure>(ref, (reply) => ({
      type: "write",
      entry: { kind: quarantineKind, data: { found: found.map((one) => ({ ...one })) }, model: [], head: null, edits },
      // once for the same damage, also when the job runs again
      requestId: `${quarantineKind}/${last}/${edits.length}`,
      reply,
    }))
    const hub = yield* ask<ConversationMessage, EventHub, Failure>(ref, (reply) => ({ type: "watch", reply }))
    const message = `${edits.length === 1 ? "an entry" : `${edits.length} entries`} that a provider would refuse will not be sent as stored: ${found
      .map(({ entry, what }) => `entry ${entry}: ${what}`)
      .slice(0, 3)
      .join("; ")}`
    hub.publish({ type: "notice", level: "warning", message }, null, Date.now())
  })
