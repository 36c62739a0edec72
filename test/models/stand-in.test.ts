/**
 * A whole tool loop against the stand-in from one script, each turn by another model: text, calls and results survive every switch.
 */
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { AssistantMessage, Message } from "../../src/domain/message.ts"
import type { Script } from "../../src/models/providers/script-file.ts"
import { collect, finishOf, kinds, modelOf, modelsAt, user } from "./ask.ts"
import { type StandIn, startStandIn } from "./stand-in.ts"
import { wireFaults } from "./wire-checker.ts"

const script: Script = {
  rules: [
    {
      match: "^loop",
      steps: [
        { text: "one", thinking: "hm", tools: [{ name: "read", args: { path: "a" } }] },
        { text: "two", tools: [{ name: "read", args: { path: "b" } }, { name: "ls" }] },
        { text: "three", tools: [{ name: "ls" }] },
        { text: "done" },
      ],
    },
    { match: "^busy", steps: [{ status: 429, retryAfter: 3, times: 1, text: "now" }] },
    { match: "^cut", steps: [{ cut: true, text: "par" }] },
  ],
}

let server: StandIn
beforeAll(async () => {
  server = await startStandIn(script)
})
afterAll(() => server.close())

describe("a scripted conversation", () => {
  it("goes on through all four services, whoever began it", async () => {
    for (const first of kinds.keys()) {
      const models = modelsAt(server.url)
      const history: Array<Message> = [user("loop")]
      const said: Array<string> = []
      for (let turn = 0; turn < 4; turn++) {
        const kind = kinds[(first + turn) % kinds.length] ?? "chat"
        const { id } = await Effect.runPromise(models.resolve(modelOf[kind]))
        const at = server.requests.length
        const answer = finishOf(
          await Effect.runPromise(collect(models, { model: id, messages: history, effort: "low" })),
        )
        const seen = await server.request(at)
        expect(seen.kind).toBe(kind)
        expect(wireFaults(kind, seen.body)).toEqual([])
        const body = JSON.stringify(seen.body)
        for (const text of said) expect(body).toContain(text)
        const message: AssistantMessage = {
          role: "assistant",
          content: answer.content,
          model: id,
          stopReason: answer.stopReason,
        }
        history.push(message)
        for (const part of answer.content) {
          if (part.type === "text") said.push(part.text)
          if (part.type !== "toolCall") continue
          const output = `result ${turn} of ${part.name}`
          said.push(output)
          history.push({
            role: "tool",
            callId: part.id,
            toolName: part.name,
            content: [{ type: "text", text: output }],
            isError: false,
          })
        }
      }
      expect(said.filter((text) => !text.startsWith("result"))).toEqual(["one", "two", "three", "done"])
      const ids = history.flatMap((message) => (message.role === "tool" ? [message.callId] : []))
      expect(new Set(ids).size).toBe(4)
    }
  })

  it("fails as the script says, in every format", async () => {
    for (const kind of kinds) {
      const fresh = await startStandIn(script)
      const ask = (text: string) =>
        Effect.runPromise(Effect.either(collect(modelsAt(fresh.url), { model: modelOf[kind], messages: [user(text)] })))
      expect(await ask("busy")).toMatchObject({ left: { _tag: "ModelTransient", status: 429, retryAfterMs: 3_000 } })
      expect(await ask("busy")).toMatchObject({ _tag: "Right" })
      expect(await ask("cut")).toMatchObject({ left: { _tag: "ModelTransient", reason: "network" } })
      await fresh.close()
    }
  })
})
