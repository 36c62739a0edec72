/**
 * Follows a turn and keeps what its answer is made of, for answers that are sent whole.
 */
import { Effect } from "effect"
import type { Json } from "../../domain/json.ts"
import { toolName } from "../../domain/structured-output.ts"
import { noUsage } from "../../domain/usage.ts"
import type { GatewayLog } from "../http/log.ts"
import type { End, Said } from "./said.ts"
import type { Follower } from "./turn.ts"
import { concludeLost, hear, newVoice, type Voice } from "./voice.ts"

export interface Collected {
  readonly end: End
  readonly thinking: string
  /** What the last accepted call gave as a value; undefined where none did. */
  readonly value: Json | undefined
}

const noEnd: End = { type: "failed", code: "run_failed", message: "the turn ended without an answer", usage: noUsage }

export const collector = (log: GatewayLog) => {
  let voice: Voice | null = null
  let end: End = noEnd
  let thinking = ""
  let value: Json | undefined
  const take = (said: ReadonlyArray<Said>) => {
    for (const one of said) {
      if (one.type === "thinking") thinking += one.delta
      else if (one.type === "ended") end = one.end
      else if (one.type === "callEnded" && one.name === toolName && !one.isError && one.structured !== null) {
        value = one.structured
      }
    }
  }
  const follower: Follower = {
    begin: (submission, running) => {
      voice = newVoice(submission, running)
    },
    events: (events) =>
      Effect.sync(() => {
        for (const event of events) {
          log.event("openai", event)
          if (voice === null) continue
          const [next, said] = hear(voice, event)
          voice = next
          take(said)
        }
        return voice?.ended === true
      }),
    recalled: (said) => Effect.sync(() => take(said)),
    lost: (over) =>
      Effect.sync(() => {
        if (voice !== null) take(concludeLost(voice, over)[1])
      }),
  }
  return { follower, result: (): Collected => ({ end, thinking, value }) }
}
