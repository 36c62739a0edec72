/**
 * A fixed set of places for work, handed from one holder straight to the one that has waited longest: `free → held → free | held by the
 * next`. A stock semaphore wakes every waiter at each release, which with fifty of them costs more than the work itself.
 */
import { Effect, Exit } from "effect"

/** One caller's turn: `place` is set when it is handed over. */
interface Turn<A> {
  place: A | undefined
  wake: (place: A) => void
}

export class Slots<A extends object> {
  /** The place used last is taken first: it is warm. */
  private readonly free: Array<A>
  private readonly waiting = new Set<Turn<A>>()

  constructor(places: ReadonlyArray<A>) {
    this.free = [...places]
  }

  /** Runs `use` with a place of its own; waits its turn for one, in order. Interrupting the wait gives up the turn. */
  use<B, E, R>(use: (place: A) => Effect.Effect<B, E, R>): Effect.Effect<B, E, R> {
    return Effect.uninterruptibleMask((restore) => {
      const hold = (place: A): Effect.Effect<B, E, R> =>
        Effect.flatMap(Effect.exit(restore(use(place))), (exit) => {
          this.give(place)
          return exit
        })
      return Effect.suspend(() => {
        const place = this.free.pop()
        if (place !== undefined) return hold(place)
        const turn: Turn<A> = { place: undefined, wake: () => {} }
        return Effect.flatMap(Effect.exit(restore(this.wait(turn))), (exit): Effect.Effect<B, E, R> => {
          if (Exit.isSuccess(exit)) return hold(exit.value)
          // Interrupted: a place that was handed over meanwhile goes to the next.
          this.waiting.delete(turn)
          if (turn.place !== undefined) this.give(turn.place)
          return Exit.failCause(exit.cause)
        })
      })
    })
  }

  private wait(turn: Turn<A>): Effect.Effect<A> {
    return Effect.async<A>((resume) => {
      turn.wake = (place) => resume(Effect.succeed(place))
      this.waiting.add(turn)
    })
  }

  private give(place: A): void {
    for (const next of this.waiting) {
      this.waiting.delete(next)
      next.place = place
      next.wake(place)
      return
    }
    this.free.push(place)
  }
}
