/**
 * The transport of one AG-UI stream: it reads the events of a conversation, renders them and sends what comes of it. It owns the view; one
 * fiber runs it.
 *
 *   events that wait → render → whole messages put in → merge → send → room → 16 ms in which the next ones gather
 *
 * A client that does not read costs what the sink and the watch hold for it; behind that the watch begins again with a snapshot.
 */
import { Chunk, Effect, Option, Queue, type Scope, Stream, Take } from "effect"
import type { SessionsService, Target } from "../../actors/sessions.ts"
import type { Event } from "../../domain/event.ts"
import type { Failure } from "../../domain/failure.ts"
import type { EntryId } from "../../domain/ids.ts"
import type { EventSink } from "../http/route.ts"
import { seen } from "./join.ts"
import { merge } from "./merge.ts"
import { messagesOf, within } from "./messages.ts"
import type { AguiEvent, AguiMessage } from "./protocol.ts"
import { renderer } from "./renderer.ts"
import type { Item, MessagesDue, View } from "./view.ts"

/** How long pieces of an answer gather before they go out together, in ms. */
const gatherMs = 16
/** Chunks of events that wait in this process; what is more waits in the watch. */
const waitingChunks = 256

/** What a client has beside the transcript. */
export interface ClientMessages {
  /** Messages that only it has; they stay in front. */
  readonly kept: ReadonlyArray<AguiMessage>
  /** The ids that it gave to entries that came from it, and its messages that have none yet. */
  readonly own: Effect.Effect<
    { readonly names: ReadonlyMap<EntryId, string>; readonly pending: ReadonlyArray<AguiMessage> },
    Failure
  >
}

const nothing: ClientMessages = { kept: [], own: Effect.succeed({ names: new Map(), pending: [] }) }

type Step = readonly [View, ReadonlyArray<Item>]

export class ThreadStream {
  view: View
  private readonly sessions: SessionsService
  private readonly target: Required<Target>
  private readonly sink: EventSink
  private readonly client: ClientMessages

  constructor(
    view: View,
    parts: {
      readonly sessions: SessionsService
      readonly target: Required<Target>
      readonly sink: EventSink
      readonly client?: ClientMessages
    },
  ) {
    this.view = view
    this.sessions = parts.sessions
    this.target = parts.target
    this.sink = parts.sink
    this.client = parts.client ?? nothing
  }

  /** The events of the conversation, as a queue that this stream reads. */
  watch(options: {
    readonly after: number | null
    readonly interactive: boolean
  }): Effect.Effect<Queue.Dequeue<Take.Take<Event, Failure>>, never, Scope.Scope> {
    return Stream.toQueue(this.sessions.watch({ ...this.target, ...options }), { capacity: waitingChunks })
  }

  /** The events that wait; at least one, or null at the end. */
  take(queue: Queue.Dequeue<Take.Take<Event, Failure>>): Effect.Effect<ReadonlyArray<Event> | null, Failure> {
    return Effect.gen(function* () {
      const takes = yield* Queue.takeBetween(queue, 1, waitingChunks)
      const events: Array<Event> = []
      for (const take of takes) {
        const chunk = yield* Effect.either(Take.done(take))
        if (chunk._tag === "Right") events.push(...Chunk.toReadonlyArray(chunk.right))
        else if (Option.isSome(chunk.left)) return yield* Effect.fail(chunk.left.value)
        else return events.length === 0 ? null : events
      }
      return events
    })
  }

  /** Renders events and sends what comes of them. */
  tell(events: ReadonlyArray<Event>): Effect.Effect<void, Failure> {
    return Effect.gen(this, function* () {
      const out: Array<AguiEvent> = []
      for (const event of events) yield* this.adopt(renderer.render(this.view, event), out)
      yield* this.send(out)
    })
  }

  /** Sends what a step of the renderer says. */
  step(step: Step): Effect.Effect<void, Failure> {
    return Effect.gen(this, function* () {
      const out: Array<AguiEvent> = []
      yield* this.adopt(step, out)
      yield* this.send(out)
    })
  }

  private adopt([view, items]: Step, out: Array<AguiEvent>): Effect.Effect<void, Failure> {
    this.view = view
    const due = items.some((item) => item.type === "MESSAGES_DUE")
    if (!due) {
      for (const item of items) if (item.type !== "MESSAGES_DUE") out.push(item)
      return Effect.void
    }
    return Effect.forEach(
      items,
      (item) =>
        item.type === "MESSAGES_DUE"
          ? Effect.map(this.messages(item), (event) => void out.push(event))
          : Effect.sync(() => void out.push(item)),
      { discard: true },
    )
  }

  /** The messages as the transcript has them, within what was told of. */
  private messages({ current, cut }: MessagesDue): Effect.Effect<AguiEvent, Failure> {
    return Effect.gen(this, function* () {
      const entries = within(yield* this.sessions.transcript(this.target), cut)
      this.view = seen(this.view, entries, current)
      const { names, pending } = yield* this.client.own
      const told = messagesOf(entries, current, names)
      const ids = new Set(told.map((message) => message.id))
      const messages = [...this.client.kept, ...told, ...pending.filter((message) => !ids.has(message.id))]
      return { type: "MESSAGES_SNAPSHOT", messages }
    })
  }

  private send(events: ReadonlyArray<AguiEvent>): Effect.Effect<void> {
    if (events.length === 0) return Effect.void
    const merged = merge(events)
    const id = this.cursor()
    for (const [at, event] of merged.entries()) {
      this.sink.send(JSON.stringify(event), id !== null && at === merged.length - 1 ? { id } : undefined)
    }
    return this.sink.room
  }

  /** Where a client may go on: only where nothing is open, so that nothing is told twice. */
  private cursor(): string | null {
    const { lastEntry, options, run, session } = this.view
    return options.runId !== null || run !== null || session === null ? null : `${session.seq_no}-${lastEntry}`
  }

  /** What is open ends; for a stream whose transport goes away first. */
  readonly close: Effect.Effect<void> = Effect.sync(() => {
    const [view, items] = renderer.flush(this.view)
    this.view = view
    for (const item of items) if (item.type !== "MESSAGES_DUE") this.sink.send(JSON.stringify(item))
  })

  /**
   * Tells every event until the stream ends, its run is over or `enough` says so. `rest` is asked whenever no event has come for a moment.
   */
  follow(
    queue: Queue.Dequeue<Take.Take<Event, Failure>>,
    options: { readonly rest: (view: View) => Step; readonly enough?: (view: View) => boolean },
  ): Effect.Effect<void, Failure> {
    const enough = options.enough ?? (() => false)
    return Effect.gen(this, function* () {
      while (!this.view.over && !enough(this.view)) {
        if (yield* Queue.isEmpty(queue)) {
          yield* this.step(options.rest(this.view))
          if (this.view.over) return
        }
        const events = yield* this.take(queue)
        if (events === null) return
        yield* this.tell(events)
        if (!this.view.over) yield* Effect.sleep(gatherMs)
      }
    })
  }
}
