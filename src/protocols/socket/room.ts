/**
 * Waiting for room in something that is written to: whoever waits goes on together once the owner says so.
 */
import { Effect } from "effect"

export interface Room {
  /** Waits until there is room. */
  readonly wait: Effect.Effect<void>
  /** Lets everybody go on: there is room again, or nothing to write to any more. */
  readonly wake: () => void
}

export const makeRoom = (hasRoom: () => boolean): Room => {
  let waiting: Array<() => void> = []
  return {
    wait: Effect.suspend(() =>
      hasRoom()
        ? Effect.void
        : Effect.async<void>((resume) => {
            const done = () => resume(Effect.void)
            waiting.push(done)
            return Effect.sync(() => {
              waiting = waiting.filter((other) => other !== done)
            })
          }),
    ),
    wake: () => {
      const woken = waiting
      waiting = []
      for (const resume of woken) resume()
    },
  }
}
