/**
 * Smoke tests against the real services. They cost money and need the network, so they run only with `SUPER_PI_LIVE=1`, each with the
 * key of its service: `SUPER_PI_LIVE=1 GEMINI_API_KEY=… npx vitest run test/live`.
 */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import type { Message } from "../../src/domain/message.ts"
import { makeModels } from "../../src/models/service.ts"
import { collect, finishOf, user } from "../models/ask.ts"

const models = makeModels({ env: process.env })
const minute = 60_000

const tool: Message = {
  role: "system",
  sections: [{ name: "role", text: "Answer in one word. Use the tool when asked for the weather." }],
  addTools: [
    {
      name: "weather",
      description: "The weather of a city",
      parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    },
  ],
  removeTools: [],
}

for (const [variable, model] of [
  ["GEMINI_API_KEY", "google/gemini-3-flash-preview"],
  ["ANTHROPIC_API_KEY", "anthropic/claude-haiku-4-5"],
  ["OPENAI_API_KEY", process.env.SUPER_PI_OPENAI_MODEL ?? "openai/gpt-5-mini"],
] as const) {
  const asked = process.env.SUPER_PI_LIVE === "1" && (process.env[variable] ?? "") !== ""
  describe.runIf(asked)(`${model}, live`, () => {
    const ask = (messages: ReadonlyArray<Message>) =>
      Effect.runPromise(Effect.map(collect(models, { model, messages, effort: "low" }), finishOf))

    it("answers with text and usage", { timeout: minute }, async () => {
      const answer = await ask([user("What is 2 + 2? One digit.")])
      expect(answer.content.some((part) => part.type === "text" && part.text.includes("4"))).toBe(true)
      expect(answer.usage.input).toBeGreaterThan(0)
      expect(answer.usage.output).toBeGreaterThan(0)
    })

    it("calls a tool and goes on from its result, its own thinking included", { timeout: 2 * minute }, async () => {
      const question = [tool, user("What is the weather in Oslo?")]
      const first = await ask(question)
      const call = first.content.find((part) => part.type === "toolCall")
      if (call?.type !== "toolCall") throw new Error("no call")
      expect(call).toMatchObject({ name: "weather", arguments: { city: expect.stringMatching(/oslo/i) } })
      const second = await ask([
        ...question,
        { role: "assistant", content: first.content, model, stopReason: first.stopReason },
        {
          role: "tool",
          callId: call.id,
          toolName: "weather",
          content: [{ type: "text", text: "Snow" }],
          isError: false,
        },
      ])
      expect(second.stopReason).toBe("stop")
      expect(JSON.stringify(second.content)).toMatch(/snow/i)
    })
  })
}
