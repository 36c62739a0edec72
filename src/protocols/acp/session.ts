/**
 * One session of an editor: a conversation that it watches. It owns a watch of the conversation, which can answer questions, and the
 * renderer's view; both end with its scope. Rules:
 * 1. Events become messages in their order. What was missed (the watch fell behind, another process took over) is read from the transcript.
 * 2. A prompt is answered when everything that led to its end was sent.
 * 3. A prompt of this connection is not echoed; one from anywhere else is.
 */
import type { PromptResponse } from "@agentclientprotocol/sdk"
import { Deferred, Effect, Fiber, Schedule, type Scope, Stream } from "effect"
import type { SessionsService, Target } from "../../actors/sessions.ts"
import type { Event, SessionState } from "../../domain/event.ts"
import type { Failure } from "../../domain/failure.ts"
import type { ConversationId } from "../../domain/ids.ts"
import type { UserPart } from "../../domain/message.ts"
import type { WhenBusy } from "../../domain/submission.ts"
import { makeAsking } from "./asking.ts"
import { type Catalog, type Choices, choicesOf } from "./choices.ts"
import type { Editor } from "./editor.ts"
import { history } from "./history.ts"
import { Ends, promptResponse } from "./prompts.ts"
import { renderer } from "./renderer.ts"
import type { Directory } from "./tool-call.ts"
import type { Extras } from "./updates.ts"
import type { Item, View } from "./view.ts"

export interface SessionParts {
  readonly sessions: SessionsService
  readonly editor: Editor
  readonly principal: string
  readonly client: string
  readonly catalog: Catalog
  readonly extras: Extras
}

export interface SessionPlace {
  readonly sessionId: string
  readonly conversationId: ConversationId
  readonly directory: Directory
  /** Whether the editor is to be told all that was said before. */
  readonly replays: boolean
}

export interface AcpSession {
  readonly place: SessionPlace
  readonly choices: () => Choices
  /** What the editor has of a file, by the path that it knows. */
  readonly readFile: (path: string, signal: AbortSignal) => Promise<string>
  /** Takes over what was chosen; a mode comes as an event. */
  readonly chose: (state: SessionState) => void
  readonly prompt: (prompt: {
    readonly content: ReadonlyArray<UserPart>
    readonly requestId: string
    readonly whenBusy: WhenBusy
  }) => Effect.Effect<PromptResponse, Failure>
  /** Withdraws the questions, then cancels the turn; `onlyOwn`: only where a prompt of this connection runs. */
  readonly cancel: (onlyOwn: boolean) => Effect.Effect<void, Failure>
}

/** A watch that broke is taken up again, for as long as its session lives. */
const again = Schedule.exponential("50 millis", 2).pipe(Schedule.union(Schedule.spaced("2 seconds")))

/** Completes once the first snapshot, and what was said before where that is wanted, were sent. */
export const openSession = (
  parts: SessionParts,
  place: SessionPlace,
): Effect.Effect<AcpSession, Failure, Scope.Scope> =>
  Effect.gen(function* () {
    const { catalog, client, editor, extras, principal, sessions } = parts
    const { conversationId, directory, replays, sessionId } = place
    const target: Target = { conversationId, principal }
    const asking = yield* makeAsking({ sessions, editor, sessionId, principal, client })
    const ready = yield* Deferred.make<void, Failure>()
    const ends = new Ends()
    let view: View = renderer.init({ catalog, directory, extras })
    /** Entries that were there at the newest snapshot; null before the first one. */
    let base: number | null = null
    /** The newest entry of which the editor was told. */
    let newest = 0
    let cancels = 0
    let title: string | null = null
    /** Request ids of prompts that run, until their entry was seen. */
    const unplaced = new Set<string>()
    let running = 0
    let sent: Promise<void> = Promise.resolve()
    let waiting: Array<{ readonly seqNo: number; readonly done: () => void }> = []

    const send = (items: ReadonlyArray<Item>) => {
      for (const item of items) {
        if (item.type === "update") sent = editor.update(sessionId, item.update).catch(() => {})
        else if (item.type === "ask") asking.ask(item.question, item.ask)
        else asking.withdraw(item.questionId)
      }
    }

    /** Whether an entry is a prompt of this connection. */
    const isOwn = (entry: number): Effect.Effect<boolean> =>
      Effect.gen(function* () {
        for (const requestId of unplaced) {
          const found = yield* Effect.option(sessions.submission({ ...target, submissionId: null, requestId }))
          if (found._tag === "Some" && found.value.placed_entry_id === entry) {
            unplaced.delete(requestId)
            return true
          }
        }
        return false
      })

    /** Tells what lies between what the editor knows and a snapshot. */
    const catchUp = ({ entries }: SessionState): Effect.Effect<void, Failure> =>
      Effect.gen(function* () {
        const from = base ?? (replays ? 0 : entries)
        base = entries
        if (from >= entries) return
        const known = newest
        const missed = (yield* sessions.transcript(target)).slice(from, entries).filter(({ id }) => id > known)
        for (const entry of missed) {
          newest = Math.max(newest, entry.id)
          if (entry.model.some(({ role }) => role === "user") && (yield* isOwn(entry.id))) continue
          const [next, items] = history(view, [entry])
          view = next
          send(items)
        }
      })

    const take = (event: Event): Effect.Effect<void, Failure> =>
      Effect.gen(function* () {
        if (event.type === "snapshot") {
          yield* catchUp(event.session)
          title = event.session.title
        } else if ("entry_id" in event && event.entry_id !== null) newest = Math.max(newest, event.entry_id)
        if (event.type === "turn_completed") ends.add(event.entry_id, event.stop_reason)
        const own =
          event.type === "message_completed" && event.role === "user" && unplaced.size > 0
            ? yield* isOwn(event.entry_id)
            : false
        const [next, items] = renderer.render(view, event)
        view = next
        if (!own) send(items)
      })

    const settle = () => {
      if (waiting.length === 0) return
      const due = waiting.filter(({ seqNo }) => seqNo <= view.seqNo)
      waiting = waiting.filter(({ seqNo }) => seqNo > view.seqNo)
      for (const { done } of due) done()
    }

    const pump = Effect.suspend(() =>
      sessions.watch({ ...target, after: view.seqNo === 0 ? null : view.seqNo, interactive: true }).pipe(
        Stream.runForEachChunk((events) =>
          Effect.gen(function* () {
            for (const event of events) yield* take(event)
            // Whoever reads slowly is waited for here; the watch behind is bounded.
            yield* Effect.promise(() => sent)
            settle()
            yield* Deferred.succeed(ready, undefined)
          }),
        ),
      ),
    )
    const watching = pump.pipe(
      Effect.tapError((failure) => Deferred.fail(ready, failure)),
      Effect.retry({ schedule: again, while: ({ _tag }) => _tag === "Busy" || _tag === "ServiceFailure" }),
      Effect.catchAll((failure) => Effect.logDebug("a session is not watched any more", failure)),
    )
    const watch = yield* Effect.forkScoped(watching)
    yield* Deferred.await(ready)

    /** Waits until everything up to an event was sent. */
    const caughtUp = (seqNo: number): Effect.Effect<void> =>
      Effect.async((resume) => {
        if (view.seqNo >= seqNo) return resume(Effect.void)
        const one = { seqNo, done: () => resume(Effect.void) }
        waiting.push(one)
        return Effect.sync(() => {
          waiting = waiting.filter((other) => other !== one)
        })
      })

    const retitled = (now: string | null): void => {
      if (now === null || now === title) return
      title = now
      send([{ type: "update", update: { sessionUpdate: "session_info_update", title: now } }])
    }

    const cancelTurn = Effect.asVoid(sessions.cancel(target))

    return {
      place,
      readFile: async (path, signal) => (await editor.readFile(sessionId, path, signal)).content,
      choices: () => view.choices ?? { model: "", mode: catalog.rules.ownMode, effort: null, harness: null },
      chose: (state) => {
        const { choices } = view
        if (choices !== null) view = { ...view, choices: { ...choicesOf(state), mode: choices.mode } }
      },
      prompt: ({ content, requestId, whenBusy }) =>
        Effect.gen(function* () {
          const before = cancels
          running++
          unplaced.add(requestId)
          const receipt = yield* sessions.submit({ ...target, content, whenBusy, requestId })
          // A cancel that came while it was being submitted found nothing to cancel.
          if (cancels > before) yield* cancelTurn
          const settled = yield* sessions.awaitSubmission({ ...target, submissionId: receipt.submission_id })
          const state = yield* sessions.state(target)
          yield* Effect.raceFirst(caughtUp(state.seq_no), Fiber.await(watch))
          retitled(state.title)
          return promptResponse(settled, ends.get(settled.entry_id))
        }).pipe(
          Effect.ensuring(
            Effect.sync(() => {
              running--
              unplaced.delete(requestId)
            }),
          ),
        ),
      cancel: (onlyOwn) =>
        Effect.suspend(() => {
          if (onlyOwn && running === 0) return Effect.void
          cancels++
          asking.withdrawAll()
          return cancelTurn
        }),
    }
  })
