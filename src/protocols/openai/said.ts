/**
 * What a run says, without the shape of either API: the alphabet between the event stream and the renderers.
 */
import type { Json, JsonObject } from "../../domain/json.ts"
import type { StopReason } from "../../domain/message.ts"
import type { Usage } from "../../domain/usage.ts"

/** How a turn ended. `usage` is of all its requests. */
export type End =
  | { readonly type: "answered"; readonly stopReason: StopReason; readonly text: string; readonly usage: Usage }
  | { readonly type: "failed"; readonly code: string; readonly message: string; readonly usage: Usage }

export type Said =
  | { readonly type: "text"; readonly delta: string }
  | { readonly type: "thinking"; readonly delta: string }
  /** The text of the response so far does not count: another one follows. */
  | { readonly type: "void" }
  /** A response of the model is whole; calls or another one may follow. */
  | { readonly type: "responded" }
  | { readonly type: "callStarted"; readonly id: string; readonly name: string; readonly arguments: JsonObject }
  | {
      readonly type: "callEnded"
      readonly id: string
      readonly name: string
      readonly isError: boolean
      readonly output: string
      /** What the call gave as a value, or null. */
      readonly structured: Json | null
      /** Null where it never ran. */
      readonly durationMs: number | null
    }
  /** One line about the work, for people. */
  | { readonly type: "note"; readonly line: string }
  | { readonly type: "ended"; readonly end: End }

/** Neighbouring deltas of one kind become one. */
export const merged = (said: ReadonlyArray<Said>): ReadonlyArray<Said> => {
  if (said.length < 2) return said
  const out: Array<Said> = []
  for (const one of said) {
    const before = out.at(-1)
    if (before !== undefined && (one.type === "text" || one.type === "thinking") && before.type === one.type) {
      out[out.length - 1] = { type: one.type, delta: before.delta + one.delta }
    } else out.push(one)
  }
  return out
}
