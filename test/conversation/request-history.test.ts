/**
 * What watchers are told about the check of the history before a request.
 */
import { Effect, Fiber } from "effect"
import { describe, expect, it } from "vitest"
import type { Event } from "../../src/domain/event.ts"
import { atRest, collect, open, prompt, withNode } from "./harness.ts"

const rules = [
  { match: "^refuse this$", steps: [{ status: 400, message: "the request is refused" }] },
  { match: "", steps: [{ text: "done" }] },
]

const notices = (events: ReadonlyArray<Event>) =>
  events.flatMap((event) => (event.type === "notice" ? [event.message] : []))

/** The notices of a run that answers `value`, after a run that answers `before`. */
const noticesOf = (before: string, value: string) =>
  Effect.runPromise(
    withNode({ rules }, (sessions) =>
      Effect.gen(function* () {
        const conversationId = yield* open(sessions)
        yield* prompt(sessions, conversationId, before)
        const watching = yield* collect(sessions, conversationId, atRest)
        expect(yield* prompt(sessions, conversationId, value)).toMatchObject({ status: "done", text: "done" })
        return notices(yield* Fiber.join(watching))
      }),
    ),
  )

describe("the history of a request", () => {
  it("is joined without a word where a prompt follows one whose turn failed", async () => {
    expect(await noticesOf("refuse this", "go on")).toEqual([])
  })

  it("is repaired with a notice where it is damaged", async () => {
    expect(await noticesOf("hello", "a half\ud83d pair")).toEqual([
      expect.stringMatching(/^the history was repaired before the request: .*lone surrogate replaced/),
    ])
  })
})
