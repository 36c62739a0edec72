/**
 * What goes over the wire: prompts, tools, images, thinking of the own model, cache hints, effort; valid for the service whatever the history is.
 */
import { Effect } from "effect"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { AssistantMessage, Message } from "../../src/domain/message.ts"
import type { ModelRequest } from "../../src/models/model.ts"
import type { ModelSettings } from "../../src/models/settings.ts"
import { damagedHistory, shuffledHistory, validHistory } from "./arbitrary-history.ts"
import { collect, finishOf, kinds, modelOf, modelsAt, user } from "./ask.ts"
import { type Seen, type StandIn, startStandIn } from "./stand-in.ts"
import { wireFaults } from "./wire-checker.ts"
import { wireFrames } from "./wire-formats.ts"

let server: StandIn
beforeAll(async () => {
  server = await startStandIn((seen) => ({
    frames: wireFrames[seen.kind]({
      text: "ok",
      thinking: "why",
      signature: "c2lnbmVk",
      tools: [{ id: "a", name: "ls", args: {} }],
    }),
  }))
})
afterAll(() => server.close())

const send = async (request: ModelRequest, settings?: ModelSettings): Promise<Seen> => {
  const at = server.requests.length
  await Effect.runPromise(collect(modelsAt(server.url, settings), request))
  return server.request(at)
}

const system = (fields: Partial<Extract<Message, { role: "system" }>>): Message => ({
  role: "system",
  sections: [],
  addTools: [],
  removeTools: [],
  ...fields,
})
const tool = (name: string) => ({
  name,
  description: `The ${name} tool`,
  parameters: { type: "object", properties: {} },
})
const image = { type: "image", mediaType: "image/png", data: "iVBORw0KGgo=" } as const
const result = (callId: string, content: Extract<Message, { role: "tool" }>["content"], isError = false): Message => ({
  role: "tool",
  callId,
  toolName: "read",
  content,
  isError,
})
const calling = (model: string, ...ids: ReadonlyArray<string>): AssistantMessage => ({
  role: "assistant",
  content: ids.map((id) => ({ type: "toolCall", id, name: "read", arguments: { path: "x" } })),
  model,
  stopReason: "tool_calls",
})

for (const kind of kinds) {
  const model = modelOf[kind]
  describe(`a request in the ${kind} format`, () => {
    it("is valid for the service whatever the history is", async () => {
      const history = fc.oneof(damagedHistory, shuffledHistory, validHistory)
      await fc.assert(
        fc.asyncProperty(history, async (messages) => {
          const own = (await Effect.runPromise(modelsAt(server.url).resolve(model))).id
          const owned = messages.map((message) =>
            message?.role === "assistant" && message.model === "p/m" ? { ...message, model: own } : message,
          )
          const { body } = await send({ model, messages: [...owned, user("go on")] })
          expect(wireFaults(kind, body)).toEqual([])
        }),
        { numRuns: 60 },
      )
    })

    it("keeps the bytes of a shorter history as its beginning", async () => {
      const listOf = ({ body }: Seen) => (body.messages ?? body.input ?? body.contents) as ReadonlyArray<unknown>
      // Breakpoints move; everything else stays.
      const bytes = (seen: Seen) =>
        listOf(seen).map((item) => JSON.stringify(item).replaceAll(/,"cache_control":\{[^}]*\}/g, ""))
      const first: ReadonlyArray<Message> = [
        system({ sections: [{ name: "role", text: "terse" }], addTools: [tool("read")] }),
        user("one"),
        calling("other/model", "weird id!"),
        result("weird id!", [{ type: "text", text: "r" }]),
      ]
      const later: ReadonlyArray<Message> = [
        ...first,
        { role: "assistant", content: [{ type: "text", text: "done" }], model: "other/model", stopReason: "stop" },
        system({ sections: [{ name: "role", text: "verbose" }] }),
        user("two"),
      ]
      const before = bytes(await send({ model, messages: first }))
      const after = bytes(await send({ model, messages: later }))
      expect(after.slice(0, before.length)).toEqual(before)
    })

    it("carries sections in order, later changes behind the history, and the current tools", async () => {
      const { body } = await send({
        model,
        messages: [
          system({
            sections: [
              { name: "role", text: "You are terse." },
              { name: "cwd", text: "/tmp" },
            ],
            addTools: [tool("read"), tool("ls")],
          }),
          user("one"),
          { role: "assistant", content: [{ type: "text", text: "1" }], model: "x/y", stopReason: "stop" },
          system({
            sections: [
              { name: "cwd", text: "/home" },
              { name: "role", text: null },
            ],
            addTools: [tool("grep")],
            removeTools: ["ls"],
          }),
          user("two"),
        ],
      })
      const text = JSON.stringify(body)
      const at = (part: string) => text.indexOf(JSON.stringify(part).slice(1, -1))
      const whole = "<role>\nYou are terse.\n</role>\n\n<cwd>\n/tmp\n</cwd>"
      const changed = "<cwd>\n/home\n</cwd>\n\nThe section <role> no longer applies."
      expect(at(whole)).toBeGreaterThan(-1)
      expect(at(changed)).toBeGreaterThan(-1)
      if (kind !== "anthropic" && kind !== "gemini") expect(at(changed)).toBeGreaterThan(at(whole))
      expect(text).toContain("The read tool")
      expect(text).toContain("The grep tool")
      expect(text).not.toContain("The ls tool")
      expect(wireFaults(kind, body)).toEqual([])
    })

    it("sends thinking back to the model that wrote it, and to no other", async () => {
      const models = modelsAt(server.url)
      const first = finishOf(await Effect.runPromise(collect(models, { model, messages: [user("go")] })))
      const resolved = await Effect.runPromise(models.resolve(model))
      const history = (by: string): ReadonlyArray<Message> => [
        user("go"),
        { role: "assistant", content: first.content, model: by, stopReason: first.stopReason },
        ...first.content.flatMap((part) =>
          part.type === "toolCall" ? [result(part.id, [{ type: "text", text: "r" }])] : [],
        ),
      ]
      const own = JSON.stringify((await send({ model, messages: history(resolved.id), effort: "low" })).body)
      const other = JSON.stringify((await send({ model, messages: history("other/model"), effort: "low" })).body)
      const opaque = kind === "chat" ? "why" : "c2lnbmVk"
      if (kind === "chat") expect(own).not.toContain(opaque)
      else expect(own).toContain(opaque)
      expect(other).not.toContain(opaque)
      expect(other).not.toContain('"why"')
      for (const body of [own, other]) expect(body).toContain('"ok"')
    })

    it("shows images where the model sees them, also from tool results, and a note where it does not", async () => {
      const messages: ReadonlyArray<Message> = [
        { role: "user", content: [{ type: "text", text: "look" }, image] },
        calling("x/y", "a", "b"),
        result("a", [{ type: "text", text: "see" }, image]),
        result("b", [{ type: "text", text: "nothing" }]),
      ]
      const id = `${kind === "gemini" ? "google" : kind === "anthropic" ? "anthropic" : "openai"}/${model}`
      const blind = await send({ model, messages }, { overrides: { [id]: { images: false } } })
      expect(JSON.stringify(blind.body)).not.toContain(image.data)
      expect(JSON.stringify(blind.body)).toContain("image left out")
      const seeing = await send({ model, messages }, { overrides: { [id]: { images: true } } })
      expect(JSON.stringify(seeing.body).split(image.data)).toHaveLength(3)
      expect(wireFaults(kind, seeing.body)).toEqual([])
    })

    it("says that a result is an error", async () => {
      const messages = [user("go"), calling("x/y", "a"), result("a", [{ type: "text", text: "no such file" }], true)]
      const text = JSON.stringify((await send({ model, messages })).body)
      if (kind === "anthropic") expect(text).toContain('"is_error":true')
      else expect(text).toContain("Error: no such file")
    })
  })
}

describe("options of a request", () => {
  const ask = async (model: string, fields: Partial<ModelRequest> = {}, settings?: ModelSettings) =>
    (await send({ model, messages: [user("x")], ...fields }, settings)).body as Record<string, never>

  it("place Anthropic's cache breakpoints behind tools, system prompt, the request before and the end", async () => {
    const messages: ReadonlyArray<Message> = [
      system({ sections: [{ name: "role", text: "terse" }], addTools: [tool("read"), tool("ls")] }),
      user("one"),
      calling("x/y", "a"),
      result("a", [{ type: "text", text: "r" }]),
    ]
    const { body } = await send({ model: modelOf.anthropic, messages })
    const marked = (value: unknown) => JSON.stringify(value).includes("cache_control")
    const { tools, system: prompt, messages: sent } = body as Record<string, ReadonlyArray<unknown>>
    expect(tools?.map(marked)).toEqual([false, true])
    expect(prompt?.map(marked)).toEqual([true])
    expect(sent?.map(marked)).toEqual([true, false, true])
  })

  it("carry the session as OpenAI's prompt cache key, but not to servers of other kinds", async () => {
    expect(await ask("gpt-6-astra", { sessionId: "s1" })).toMatchObject({ prompt_cache_key: "s1" })
    expect(await ask("gpt-5-mini", { sessionId: "s1" })).toMatchObject({ prompt_cache_key: "s1" })
    expect(await ask("local-model", { sessionId: "s1" })).not.toHaveProperty("prompt_cache_key")
  })

  it("use Responses for the configured models only, without strict tools and without storage", async () => {
    const messages = [system({ addTools: [tool("read")] }), user("x")]
    const astra = await send({ model: "gpt-6-astra", messages })
    expect(astra.kind).toBe("responses")
    expect(astra.body).toMatchObject({
      store: false,
      include: ["reasoning.encrypted_content"],
      tools: [{ strict: false }],
    })
    expect((await send({ model: "gpt-6-sol", messages })).kind).toBe("chat")
    const other = { openaiResponsesModels: ["gpt-6-sol", "alias"] }
    expect((await send({ model: "gpt-6-astra", messages }, other)).kind).toBe("chat")
    expect((await send({ model: "gpt-6-sol", messages }, other)).kind).toBe("responses")
    expect((await send({ model: "alias", messages }, other)).body).toMatchObject({ model: "alias", store: false })
  })

  it("map effort to each service's own words", async () => {
    expect(await ask("gpt-5-mini", { effort: "none" })).toMatchObject({ reasoning_effort: "minimal" })
    expect(await ask("gpt-5.2", { effort: "max" })).toMatchObject({ reasoning_effort: "xhigh" })
    expect(await ask("o3", { effort: "minimal" })).toMatchObject({ reasoning_effort: "low" })
    expect(await ask("gpt-4o", { effort: "high" })).not.toHaveProperty("reasoning_effort")
    expect(await ask("gpt-6-astra", { effort: "max" })).toMatchObject({ reasoning: { effort: "max", summary: "auto" } })
    expect(await ask("local-model", { effort: "high" })).toMatchObject({ reasoning_effort: "high" })
    expect(await ask("gemini-3-flash-preview", { effort: "none" })).toMatchObject({
      generationConfig: { thinkingConfig: { thinkingLevel: "minimal" } },
    })
    expect(await ask("gemini-2.5-flash", { effort: "none" })).toMatchObject({
      generationConfig: { thinkingConfig: { thinkingBudget: 0 } },
    })
    expect(await ask("claude-sonnet-4-5", { effort: "medium" })).toMatchObject({
      thinking: { type: "enabled", budget_tokens: 8_192 },
      max_tokens: 16_384,
    })
    expect(await ask("claude-opus-4-6", { effort: "max" })).toMatchObject({
      thinking: { type: "adaptive" },
      output_config: { effort: "max" },
      max_tokens: 8_192 + 32_000,
    })
    expect(await ask("claude-sonnet-4-5")).not.toHaveProperty("thinking")
  })

  it("take the configured effort where the conversation has none", async () => {
    expect(await ask("gpt-6-sol")).toMatchObject({ reasoning_effort: "none" })
    expect(await ask("gpt-6-sol", { effort: "high" })).toMatchObject({ reasoning_effort: "high" })
    const settings = { openaiReasoningEffort: { "local-model": "low" } }
    expect(await ask("local-model", {}, settings)).toMatchObject({ reasoning_effort: "low" })
    expect(await ask("gpt-6-sol", {}, settings)).not.toHaveProperty("reasoning_effort")
  })

  it("limit the answer: 8192 tokens at Anthropic, the settings' limits elsewhere", async () => {
    expect(await ask("claude-sonnet-4-5")).toMatchObject({ max_tokens: 8_192 })
    expect(await ask("claude-sonnet-4-5", {}, { anthropicMaxTokens: 100 })).toMatchObject({ max_tokens: 100 })
    expect(await ask("gpt-5-mini", {}, { openaiMaxTokens: 50 })).toMatchObject({ max_completion_tokens: 50 })
    expect(await ask("gemini-3-flash-preview", { maxOutputTokens: 9 })).toMatchObject({
      generationConfig: { maxOutputTokens: 9 },
    })
  })

  it("do not think with a budget in the middle of a turn that began without thinking", async () => {
    const messages = [user("go"), calling("x/y", "a"), result("a", [{ type: "text", text: "r" }])]
    const { body } = await send({ model: "claude-sonnet-4-5", messages, effort: "high" })
    expect(body).not.toHaveProperty("thinking")
  })

  it("send Anthropic's version header as configured", async () => {
    const { headers } = await send(
      { model: "claude-sonnet-4-5", messages: [user("x")] },
      { anthropicVersion: "2024-01-01" },
    )
    expect(headers["anthropic-version"]).toBe("2024-01-01")
  })
})
