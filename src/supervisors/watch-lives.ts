/**
 * The events of a conversation through the lives of its actor: `away → joined → away` with each life, until whoever watches leaves. Each life
 * ends its part; the next one starts with a snapshot.
 */
import { Effect, type Stream } from "effect"
import { type Place, pulled } from "../actors/conversation/event-stream.ts"
import type { EventHub } from "../actors/conversation/hub.ts"
import type { Event } from "../domain/event.ts"
import type { Failure } from "../domain/failure.ts"

interface Watching {
  /** The hub of the present life; starts one where there is none. */
  readonly hub: Effect.Effect<EventHub, Failure>
  /** The event behind which the first life is joined; null: with a snapshot. */
  readonly after: number | null
  /** Whoever watches can answer questions. */
  readonly interactive: boolean
}

class Watch implements Place<Event, Failure> {
  private place: Place<Event> | null = null
  private after: number | null
  private readonly join: Effect.Effect<void, Failure>

  constructor({ after, hub, interactive }: Watching) {
    this.after = after
    this.join = Effect.map(hub, (present) => {
      this.place = present.join(this.after, () => Date.now(), interactive)
      this.after = null
    })
  }

  readonly leave = (): void => {
    this.place?.leave()
    this.place = null
  }

  readonly take: Place<Event, Failure>["take"] = Effect.suspend(() => {
    const { place } = this
    if (place === null) return Effect.zipRight(this.join, this.take)
    return Effect.flatMap(place.take, (chunk) => {
      if (chunk !== null) return Effect.succeed(chunk)
      this.leave()
      return this.take
    })
  })
}

export const watchLives = (watching: Watching): Stream.Stream<Event, Failure> => pulled(() => new Watch(watching))
