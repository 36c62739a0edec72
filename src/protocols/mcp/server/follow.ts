/**
 * One request at work: hands an input to a conversation and follows it to its result.
 *
 *   watched → admitted (durable) → progress … → the call's result, or the end of the submission
 *
 * The watch begins before the input is admitted, so that nothing of it is missed. Interrupted, it cancels the work of the conversation if
 * `cancels` says so: a request that its client gave up, and not one whose server stops, whose work goes on at the next start.
 */
import { Deferred, Effect, Stream } from "effect"
import type { Receipt, Settled } from "../../../actors/contract.ts"
import type { SessionsService } from "../../../actors/sessions.ts"
import type { Entry } from "../../../domain/entry.ts"
import type { Failure } from "../../../domain/failure.ts"
import type { ConversationId } from "../../../domain/ids.ts"
import type { UserPart } from "../../../domain/message.ts"
import { type CallResult, mcpRenderer, type RenderedItem } from "./renderer.ts"

/** Tells the client something about its request. Never fails: a client that is gone is told nothing. */
export type Say = (item: Exclude<RenderedItem, { readonly type: "result" }>) => Effect.Effect<void>

export interface Followed {
  readonly conversationId: ConversationId
  readonly principal: string
  readonly content: ReadonlyArray<UserPart>
  /** The same request again is not admitted twice. */
  readonly requestId: string | null
  /** The direct call to wait for; null: the end of the submission. */
  readonly callId: string | null
  readonly say: Say
  /** Whether an interruption ends the work. */
  readonly cancels: () => boolean
}

export type Outcome =
  | { readonly type: "result"; readonly result: CallResult }
  | { readonly type: "settled"; readonly settled: Settled }

const resultIn = (entries: ReadonlyArray<Entry>, callId: string): CallResult | null => {
  for (const { model } of entries.toReversed()) {
    for (const message of model) {
      if (message.role !== "tool" || message.callId !== callId) continue
      return { output: message.content, structured: null, isError: message.isError }
    }
  }
  return null
}

/** Admits the input and waits for what it comes to. */
export const follow = (sessions: SessionsService, asked: Followed): Effect.Effect<Outcome, Failure> => {
  const { callId, cancels, content, conversationId, principal, requestId, say } = asked
  const target = { conversationId, principal }

  const watching = (joined: Deferred.Deferred<void, Failure>, ended: Deferred.Deferred<CallResult>) => {
    let view = mcpRenderer.init({ callId })
    return sessions.watch({ ...target, after: null }).pipe(
      Stream.runForEach((event) => {
        const [next, items] = mcpRenderer.render(view, event)
        view = next
        if (event.type === "snapshot") Deferred.unsafeDone(joined, Effect.void)
        return Effect.forEach(
          items,
          (item) => (item.type === "result" ? Deferred.succeed(ended, item.result) : say(item)),
          { discard: true },
        )
      }),
      // The end of a submission is known without the watch as well: one that breaks later only ends the progress.
      Effect.catchAll((failure) => Deferred.fail(joined, failure)),
    )
  }

  /** What is known of an input that has ended: the call's result is in the transcript where its event was missed. */
  const settled = (receipt: Receipt): Effect.Effect<Outcome, Failure> =>
    Effect.gen(function* () {
      const end = yield* sessions.awaitSubmission({ ...target, submissionId: receipt.submission_id })
      if (callId === null) return { type: "settled", settled: end }
      const found = resultIn(yield* sessions.transcript(target), callId)
      return found === null ? { type: "settled", settled: end } : { type: "result", result: found }
    })

  return Effect.scoped(
    Effect.gen(function* () {
      const joined = yield* Deferred.make<void, Failure>()
      const ended = yield* Deferred.make<CallResult>()
      yield* Effect.forkScoped(watching(joined, ended))
      yield* Deferred.await(joined)
      const result = Effect.map(Deferred.await(ended), (found): Outcome => ({ type: "result", result: found }))
      // The submission is whole: what was committed is known, or a client that gives up would leave it behind.
      return yield* Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(sessions.submit({ ...target, content, requestId }), (receipt) => {
          const cancelled = Effect.ignore(sessions.cancel({ ...target, submissionId: receipt.submission_id }))
          const work = restore(Effect.raceFirst(result, settled(receipt)))
          return Effect.onInterrupt(work, () => (cancels() ? cancelled : Effect.void))
        }),
      )
    }),
  )
}
