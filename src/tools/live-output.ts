/**
 * Output on its way to watchers: when they are slower than the command, the oldest of what waits is left out, so that memory stays
 * bounded and the newest is shown. One producer, one consumer fiber.
 */
import { Effect } from "effect"
import { cutWell } from "./line-window.ts"

/** Characters that may wait; when there are more, half of them are left out. */
const waitingChars = 64 * 1024

export class LiveOutput {
  #waiting = ""
  #skipped = 0
  #over = false
  #wake: (() => void) | undefined

  push(text: string): void {
    if (text === "") return
    this.#waiting += text
    if (this.#waiting.length > waitingChars) {
      const dropped = cutWell(this.#waiting, this.#waiting.length - waitingChars / 2)
      this.#skipped += dropped.length
      this.#waiting = this.#waiting.slice(dropped.length)
    }
    this.#wake?.()
  }

  /** Nothing more comes. */
  end(): void {
    this.#over = true
    this.#wake?.()
  }

  /** Hands everything to `emit`, until the end. */
  deliver(emit: (chunk: string) => Effect.Effect<void>): Effect.Effect<void> {
    const more = Effect.async<void>((resume) => {
      if (this.#waiting !== "" || this.#over) return resume(Effect.void)
      this.#wake = () => {
        this.#wake = undefined
        resume(Effect.void)
      }
    })
    const next = Effect.suspend(() => {
      const chunk = this.#take()
      return chunk === "" ? Effect.succeed(false) : Effect.as(emit(chunk), true)
    })
    return Effect.iterate(true, {
      while: (going) => going,
      body: () => Effect.zipRight(more, next),
    }).pipe(Effect.asVoid)
  }

  #take(): string {
    const note = this.#skipped === 0 ? "" : `\n[… ${this.#skipped} characters not shown …]\n`
    const chunk = note + this.#waiting
    this.#waiting = ""
    this.#skipped = 0
    return chunk
  }
}
