/**
 * The clients that people use, against a real node: the official `openai` package and the AI SDK.
 */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { generateText, streamText } from "ai"
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { textOf } from "../../../src/domain/message.ts"
import type { Script } from "../../../src/models/providers/script-file.ts"
import { type OpenAiNode, startNode } from "./node.ts"

const script: Script = {
  rules: [
    {
      match: "list",
      steps: [
        { text: "Let me look.", thinking: "hm", tools: [{ name: "ls", args: {} }] },
        { text: "There are three files.", usage: [100, 10] },
      ],
    },
    { match: "break", steps: [{ status: 400, message: "no such thing" }] },
    { match: "value", steps: [{ tools: [{ name: "structured_output", args: { name: "Ada" } }] }] },
    { match: "second$", steps: [{ text: "Two." }] },
    { match: "third$", steps: [{ text: "Three." }] },
    { match: "hang", steps: [{ text: "so far", hang: true }] },
    { match: "", steps: [{ text: "Hello there.", usage: [7, 3] }] },
  ],
}

let node: OpenAiNode
let client: OpenAI
beforeAll(async () => {
  node = await startNode({ script })
  client = new OpenAI({ baseURL: `${node.url}/v1`, apiKey: "local-key", maxRetries: 0 })
})
afterAll(() => node.close())

const messages = (content: string) => [{ role: "user", content } as const]

describe("the openai package", () => {
  it("lists models and reads one", async () => {
    const ids: Array<string> = []
    for await (const model of client.models.list()) ids.push(model.id)
    expect(ids).toContain("super-pi-planner")
    expect((await client.models.retrieve("super-pi-code")).id).toBe("super-pi-code")
  })

  it("creates a chat completion", async () => {
    const answer = await client.chat.completions.create({ model: "super-pi-code", messages: messages("hi") })
    expect(answer.choices[0]?.message.content).toBe("Hello there.")
    expect(answer.usage?.total_tokens).toBe(10)
  })

  it("may bring tools and options of sampling: they have no effect", async () => {
    const answer = await client.chat.completions.create({
      model: "super-pi-code",
      messages: messages("hi"),
      tools: [{ type: "function", function: { name: "mine", parameters: { type: "object", properties: {} } } }],
      tool_choice: "required",
      temperature: 0,
      n: 2,
      stop: ["Hello"],
    })
    expect(answer.choices).toHaveLength(1)
    expect(answer.choices[0]?.message).toMatchObject({ content: "Hello there." })
    expect(answer.choices[0]?.message.tool_calls).toBeUndefined()
  })

  it("streams a chat completion to its end", async () => {
    const stream = client.chat.completions.stream({
      model: "super-pi-code",
      messages: messages("list it"),
      stream_options: { include_usage: true },
    })
    const answer = await stream.finalChatCompletion()
    expect(answer.choices[0]?.message.content).toBe("Let me look.\n\nThere are three files.")
    expect(answer.choices[0]?.finish_reason).toBe("stop")
    expect((await stream.totalUsage()).completion_tokens).toBeGreaterThan(0)
  })

  it("raises what a turn failed with", async () => {
    await expect(
      client.chat.completions.create({ model: "super-pi-code", messages: messages("break") }),
    ).rejects.toMatchObject({ status: 502, code: "model_rejected" })
    const stream = await client.chat.completions.create({
      model: "super-pi-code",
      messages: messages("break"),
      stream: true,
    })
    const read = async () => {
      for await (const _ of stream);
    }
    await expect(read()).rejects.toMatchObject({ code: "model_rejected" })
    await expect(client.chat.completions.create({ model: "nobody", messages: messages("hi") })).rejects.toBeInstanceOf(
      OpenAI.NotFoundError,
    )
  })

  it("parses a value", async () => {
    const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] }
    const answer = await client.chat.completions.create({
      model: "super-pi-code",
      messages: messages("value"),
      response_format: { type: "json_schema", json_schema: { name: "person", schema } },
    })
    expect(JSON.parse(answer.choices[0]?.message.content ?? "")).toEqual({ name: "Ada" })
  })
})

describe("responses of the openai package", () => {
  it("are created with their items and their text", async () => {
    const response = await client.responses.create({
      model: "super-pi-code",
      input: "list it",
      metadata: { ticket: "7" },
    })
    expect(response.status).toBe("completed")
    expect(response.output.map((item) => item.type)).toEqual(["reasoning", "message", "mcp_call", "message"])
    expect(response.output_text).toBe("Let me look.There are three files.")
    expect(response.usage?.output_tokens).toBeGreaterThan(0)
    const read = await client.responses.retrieve(response.id)
    expect(read.output).toEqual(response.output)
    expect(read).toMatchObject({ status: "completed", usage: response.usage, metadata: { ticket: "7" } })
  })

  it("stream their events in order, each numbered, and end with the whole response", async () => {
    const stream = client.responses.stream({ model: "super-pi-code", input: "list it" })
    const types: Array<string> = []
    const numbers: Array<number> = []
    for await (const event of stream) {
      types.push(event.type)
      numbers.push(event.sequence_number)
    }
    const final = await stream.finalResponse()
    expect(numbers).toEqual(numbers.map((_, at) => at))
    expect(types.slice(0, 2)).toEqual(["response.created", "response.in_progress"])
    expect(types).toContain("response.reasoning_summary_text.delta")
    expect(types).toContain("response.mcp_call.completed")
    expect(types.at(-1)).toBe("response.completed")
    expect(final.output_text).toBe("Let me look.There are three files.")
  })

  it("go on from the newest one in its conversation, and from any other one in a fork", async () => {
    const first = await client.responses.create({ model: "super-pi-code", input: "hi" })
    const second = await client.responses.create({
      model: "super-pi-code",
      input: "second",
      previous_response_id: first.id,
    })
    expect(second.output_text).toBe("Two.")
    expect(second.conversation).toEqual(first.conversation)
    const other = await client.responses.create({
      model: "super-pi-code",
      input: "third",
      previous_response_id: first.id,
    })
    expect(other.output_text).toBe("Three.")
    expect(other.conversation).not.toEqual(first.conversation)
    const said = (await fetchTranscript(other)).filter((entry) => entry.kind === "pi.user")
    const texts = said
      .flatMap((entry) => entry.model)
      .map((message) => (message.role === "user" ? textOf(message.content) : ""))
    expect(texts).toEqual(["hi", "third"])
  })

  it("of which there is none are not found", async () => {
    const missing = client.responses.create({
      model: "super-pi-code",
      input: "hi",
      previous_response_id: "resp_9999_9999",
    })
    await expect(missing).rejects.toMatchObject({ status: 404, code: "previous_response_not_found" })
    await expect(client.responses.retrieve("resp_1_99999")).rejects.toMatchObject({ status: 404 })
    await expect(client.responses.retrieve("nonsense")).rejects.toMatchObject({ status: 404 })
  })

  it("give values", async () => {
    const schema = {
      type: "object",
      properties: { name: { type: "string" } },
      required: ["name"],
      additionalProperties: false,
    }
    const response = await client.responses.create({
      model: "super-pi-code",
      input: "value",
      text: { format: { type: "json_schema", name: "person", schema } },
    })
    expect(JSON.parse(response.output_text)).toEqual({ name: "Ada" })
    expect((await client.responses.retrieve(response.id)).output_text).toBe(response.output_text)
  })

  it("that fail say why", async () => {
    const response = await client.responses.create({ model: "super-pi-code", input: "break" })
    expect(response).toMatchObject({ status: "failed", error: { code: "model_rejected" } })
    const types: Array<string> = []
    for await (const event of await client.responses.create({ model: "super-pi-code", input: "break", stream: true }))
      types.push(event.type)
    expect(types.at(-1)).toBe("response.failed")
  })

  it("run in the background until they are cancelled, and are gone when deleted", async () => {
    const response = await client.responses.create({ model: "super-pi-code", input: "hang", background: true })
    expect(response.status).toBe("queued")
    const running = await client.responses.retrieve(response.id)
    expect(["queued", "in_progress"]).toContain(running.status)
    expect((await client.responses.cancel(response.id)).status).toBe("cancelled")
    await client.responses.delete(response.id)
    await expect(client.responses.retrieve(response.id)).rejects.toMatchObject({ status: 404 })
  })

  it("that are deleted among others are gone, and the others stay", async () => {
    const first = await client.responses.create({ model: "super-pi-code", input: "hi" })
    const second = await client.responses.create({
      model: "super-pi-code",
      input: "second",
      previous_response_id: first.id,
    })
    await client.responses.delete(first.id)
    await expect(client.responses.retrieve(first.id)).rejects.toMatchObject({ status: 404 })
    expect((await client.responses.retrieve(second.id)).output_text).toBe("Two.")
  })
})

const fetchTranscript = async (response: OpenAI.Responses.Response) => {
  const { Effect } = await import("effect")
  const { ConversationId } = await import("../../../src/domain/ids.ts")
  const conversationId = ConversationId.make(Number(response.conversation?.id.slice("conv_".length)))
  return Effect.runPromise(node.sessions.transcript({ conversationId }))
}

describe("the AI SDK", () => {
  const model = (id: string) =>
    createOpenAICompatible({ name: "super-pi", baseURL: `${node.url}/v1`, includeUsage: true })(id)

  it("generates text, with reasoning and tokens", async () => {
    const { finishReason, reasoningText, text, usage } = await generateText({
      model: model("super-pi-code"),
      prompt: "list it",
    })
    expect(text).toBe("There are three files.")
    expect(reasoningText).toBe("hm")
    expect(finishReason).toBe("stop")
    expect(usage.outputTokens).toBeGreaterThan(0)
  })

  it("streams text and reasoning", async () => {
    const result = streamText({ model: model("super-pi-code"), prompt: "list it" })
    const types = new Set<string>()
    for await (const part of result.fullStream) types.add(part.type)
    expect(await result.text).toBe("Let me look.\n\nThere are three files.")
    expect(await result.reasoningText).toContain("[ls]")
    expect(types).toContain("reasoning-delta")
    expect((await result.usage).outputTokens).toBeGreaterThan(0)
  })

  it("is told what a streamed turn failed with", async () => {
    const errors: Array<unknown> = []
    const result = streamText({
      model: model("super-pi-code"),
      prompt: "break",
      maxRetries: 0,
      onError: ({ error }) => void errors.push(error),
    })
    for await (const _ of result.fullStream);
    expect(JSON.stringify(errors)).toContain("no such thing")
  })
})
