/**
 * The event hub of one conversation: numbers events, keeps a bounded tail, and feeds watchers. Rules:
 * 1. Every event gets the next `seq_no`; a watcher sees a snapshot first and then every later number, without a gap. A life of the
 *    machine starts at its time in microseconds, so above every earlier one: a number of another life is never taken for one of this.
 * 2. A watcher that falls more than `watcherLimit` events behind loses its backlog and gets a fresh snapshot in its place: it costs
 *    bounded memory and never slows the conversation.
 * 3. Owned by one actor; publishing never suspends.
 */
import { Chunk, Effect, type Stream } from "effect"
import type { Event, EventBody, SessionState } from "../../domain/event.ts"
import type { ConversationId, TaskId } from "../../domain/ids.ts"
import { type Place, pulled } from "./event-stream.ts"

/** Events kept for watchers that come back with `after`. */
const tailLimit = 1_024
/** Events that one watcher may be behind. */
const watcherLimit = 1_024

/** One watcher's backlog and its way to wake up. */
class Watcher {
  private backlog: Array<Event> = []
  private wake: (() => void) | null = null
  private due = false
  private ended = false
  private readonly snapshot: () => Event

  constructor(snapshot: () => Event) {
    this.snapshot = snapshot
  }

  push(event: Event): void {
    if (this.backlog.length >= watcherLimit) this.backlog = [this.snapshot()]
    else this.backlog.push(event)
    this.signal()
  }

  end(): void {
    this.ended = true
    this.signal()
  }

  /** Wakes the reader when the handlers that run now have ended: what they publish comes as one chunk, and ahead of their replies. */
  private signal(): void {
    if (this.wake === null || this.due) return
    this.due = true
    queueMicrotask(() => {
      this.due = false
      const wake = this.wake
      this.wake = null
      wake?.()
    })
  }

  readonly take: Place<Event>["take"] = Effect.async((resume) => {
    const answer = (): void => {
      const events = this.backlog
      this.backlog = []
      const chunk = Chunk.unsafeFromArray(events)
      resume(Effect.succeed(Chunk.isNonEmpty(chunk) ? chunk : null))
    }
    if (this.backlog.length > 0 || this.ended) {
      answer()
      return
    }
    this.wake = answer
    return Effect.sync(() => {
      this.wake = null
    })
  })
}

export class EventHub {
  private seqNo: number
  private closed = false
  private tail: Array<Event> = []
  private readonly watchers = new Set<Watcher>()
  /** Watchers that can answer questions. */
  private interactive = 0
  /** Told when watchers come and go. */
  onWatchers: ((change: 1 | -1) => void) | null = null
  private readonly conversation: ConversationId
  private readonly stateOf: () => SessionState

  /** `now` in milliseconds; `stateOf` gives the committed state for snapshots, its `seq_no` excepted. */
  constructor(conversation: ConversationId, now: number, stateOf: () => SessionState) {
    this.seqNo = Math.floor(now) * 1_000
    this.conversation = conversation
    this.stateOf = stateOf
  }

  get newest(): number {
    return this.seqNo
  }

  /** Whether somebody watches who can answer questions. */
  get answerable(): boolean {
    return this.interactive > 0
  }

  get watcherCount(): number {
    return this.watchers.size
  }

  /** Numbers and sends one event. */
  publish(body: EventBody, turn: TaskId | null, now: number): void {
    this.seqNo += 1
    // Not `{ ...body, v: 1, … }`: V8 takes twenty times as long to add keys behind a spread.
    const event: Event = Object.assign(
      {
        type: body.type,
        v: 1 as const,
        conversation_id: this.conversation,
        turn_id: turn,
        timestamp_ms: now,
        seq_no: this.seqNo,
      },
      body,
    )
    this.tail.push(event)
    if (this.tail.length > 2 * tailLimit) this.tail = this.tail.slice(-tailLimit)
    for (const watcher of this.watchers) watcher.push(event)
  }

  /** The state as one event; it carries the newest number and takes none of its own. */
  snapshot(now: number): Event {
    const session = { ...this.stateOf(), seq_no: this.seqNo }
    return {
      type: "snapshot",
      v: 1,
      conversation_id: this.conversation,
      turn_id: session.turn_id,
      timestamp_ms: now,
      seq_no: this.seqNo,
      session,
    }
  }

  /**
   * A watcher's events; it joins when the stream starts and leaves when it ends. With `after` still in the tail the stream goes on behind
   * it; otherwise it starts with a snapshot. It ends when the hub closes. `interactive`: the watcher can answer questions.
   */
  subscribe(after: number | null, now: () => number, interactive = false): Stream.Stream<Event> {
    return pulled(() => this.join(after, now, interactive))
  }

  /** {@link subscribe} without a stream: whoever joins must leave. */
  join(after: number | null, now: () => number, interactive: boolean): Place<Event> {
    const watcher = new Watcher(() => this.snapshot(now()))
    const leave = (): void => {
      if (!this.watchers.delete(watcher)) return
      if (interactive) this.interactive--
      this.onWatchers?.(-1)
    }
    if (this.closed) {
      watcher.end()
      return { take: watcher.take, leave }
    }
    const missed = after === null ? null : this.since(after)
    for (const event of missed ?? [this.snapshot(now())]) watcher.push(event)
    this.watchers.add(watcher)
    if (interactive) this.interactive++
    this.onWatchers?.(1)
    return { take: watcher.take, leave }
  }

  /** Events behind `after`, or null when the tail does not reach back that far or the number is from another life. */
  private since(after: number): ReadonlyArray<Event> | null {
    if (after > this.seqNo) return null
    const first = this.tail[0]?.seq_no ?? this.seqNo + 1
    if (after < first - 1) return null
    return this.tail.filter((event) => event.seq_no > after)
  }

  /** Ends every watcher's stream. */
  close(): void {
    this.closed = true
    for (const watcher of this.watchers) {
      watcher.end()
      this.onWatchers?.(-1)
    }
    this.watchers.clear()
    this.interactive = 0
  }
}
