/**
 * One turn from the input to its answer, on a node in the test's process.
 */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { open, prompt, withNode } from "./harness.ts"

const rules = [
  { match: "tool", steps: [{ tools: [{ name: "echo", args: { value: "x" } }] }, { text: "done with the tool" }] },
  { match: "", steps: [{ text: "hello" }] },
]

describe("a turn", () => {
  it("answers an input", () =>
    Effect.runPromise(
      withNode({ rules }, (sessions) =>
        Effect.gen(function* () {
          const id = yield* open(sessions)
          const settled = yield* prompt(sessions, id, "hi")
          expect(settled).toMatchObject({ status: "done", text: "hello", turns: 1, model: "script/test" })
          const next = yield* prompt(sessions, id, "use a tool")
          expect(next).toMatchObject({ status: "done", text: "done with the tool", turns: 2 })
          const kinds = (yield* sessions.transcript({ conversationId: id })).map((entry) => entry.kind)
          expect(kinds).toEqual([
            "pi.user",
            "pi.system",
            "pi.assistant",
            "pi.user",
            "pi.assistant",
            "pi.tool-result",
            "pi.assistant",
          ])
        }),
      ),
    ))
})
