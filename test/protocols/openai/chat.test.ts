/**
 * `POST /v1/chat/completions` against a real node: sessions, streams, errors, modes, values, and clients that leave.
 */
import { Effect, Stream } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { ConversationId } from "../../../src/domain/ids.ts"
import { textOf } from "../../../src/domain/message.ts"
import type { Script } from "../../../src/models/providers/script-file.ts"
import type { ChatChunk, ChatCompletion } from "../../../src/protocols/openai/chunks.ts"
import { type OpenAiNode, post, readEvents, startNode } from "./node.ts"

const schema = {
  type: "object",
  properties: { name: { type: "string" } },
  required: ["name"],
  additionalProperties: false,
}

const script: Script = {
  rules: [
    {
      match: "^list",
      steps: [
        { text: "Let me look.", thinking: "hm", tools: [{ name: "ls", args: {} }] },
        { text: "There are three files.", usage: [100, 10] },
      ],
    },
    { match: "luckily$", steps: [{ text: "Lucky." }] },
    { match: "^break", steps: [{ status: 400, message: "no such thing" }] },
    { match: "^cut", steps: [{ text: "half a sen", cut: true, times: 1 }, { text: "half a sentence, and the rest" }] },
    { match: "^other", steps: [{ text: "one way", cut: true, times: 1 }, { text: "another way" }] },
    { match: "^hang", steps: [{ text: "so far", hang: true }] },
    { match: "^long", steps: [{ text: "cut off", stopReason: "length" }] },
    { match: "^value", steps: [{ text: "I think", tools: [{ name: "structured_output", args: { name: "Ada" } }] }] },
    { match: "^words", steps: [{ text: '{"name":"Grace"}' }] },
    { match: "^prose", steps: [{ text: "It was Ada." }] },
    { match: "", steps: [{ text: "Hello there.", usage: [7, 3] }] },
  ],
}

let node: OpenAiNode
beforeAll(async () => {
  node = await startNode({ script })
})
afterAll(() => node.close())

const user = (content: unknown) => ({ role: "user", content })
const chat = (body: object, headers: Record<string, string> = {}) =>
  post(`${node.url}/v1/chat/completions`, { model: "super-pi-code", ...body }, headers)
const ask = async (text: unknown, body: object = {}, headers: Record<string, string> = {}) => {
  const response = await chat({ messages: [user(text)], ...body }, headers)
  const answer = (await response.json()) as ChatCompletion & { readonly error?: Record<string, unknown> }
  return { response, answer, id: Number(response.headers.get("x-conversation-id")) }
}
const stream = async (text: string, body: object = {}, headers: Record<string, string> = {}) => {
  const response = await chat({ messages: [user(text)], stream: true, ...body }, headers)
  const events = await readEvents(response)
  const chunks = events.filter(
    (event): event is ChatChunk => typeof event === "object" && event !== null && "choices" in event,
  )
  const joined = (key: "content" | "reasoning_content") =>
    chunks.map((one) => one.choices[0]?.delta[key] ?? "").join("")
  return { response, events, chunks, content: joined("content"), reasoning: joined("reasoning_content") }
}
const transcript = (id: number) =>
  Effect.runPromise(node.sessions.transcript({ conversationId: ConversationId.make(id) }))

describe("an answer", () => {
  it("comes whole, with its tokens and the conversation that it is of", async () => {
    const { answer, id, response } = await ask("hi")
    expect(response.status).toBe(200)
    expect(answer).toMatchObject({
      object: "chat.completion",
      model: "super-pi-code",
      choices: [{ index: 0, message: { role: "assistant", content: "Hello there." }, finish_reason: "stop" }],
      usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
    })
    expect((await transcript(id)).length).toBeGreaterThanOrEqual(2)
  })

  it("streams: the role, words, thinking and tools as reasoning, one finish reason, tokens once, DONE", async () => {
    const { chunks, content, events, reasoning } = await stream("list it", { stream_options: { include_usage: true } })
    expect(chunks[0]?.choices[0]?.delta).toEqual({ role: "assistant", content: "" })
    expect(content).toBe("Let me look.\n\nThere are three files.")
    expect(reasoning).toMatch(/^hm\n\[ls\] \{\}\n\[ls\] done in \d+ ms\n$/)
    expect(
      chunks.flatMap((one) => one.choices.map((choice) => choice.finish_reason)).filter((one) => one !== null),
    ).toEqual(["stop"])
    expect(chunks.filter((one) => one.usage !== undefined && one.usage !== null)).toHaveLength(1)
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: expect.any(Number) } })
    expect(events.at(-1)).toBe("[DONE]")
  })

  it("has no tokens in a stream that did not ask for them", async () => {
    const { chunks } = await stream("hi")
    expect(chunks.some((one) => "usage" in one)).toBe(false)
  })

  it("whole is the last answer alone", async () => {
    const { answer } = await ask("list it")
    expect(answer.choices[0]?.message.content).toBe("There are three files.")
    expect(answer.choices[0]?.message.reasoning_content).toBe("hm")
  })

  it("to a bare command says what was changed, whole and streamed, and no model is asked", async () => {
    const { answer, id } = await ask("/mode plan")
    expect(answer.choices[0]?.message.content).toBe("The mode is now plan.")
    expect((await Effect.runPromise(node.sessions.state({ conversationId: ConversationId.make(id) }))).mode).toBe(
      "plan",
    )
    expect((await transcript(id)).map(({ kind }) => kind)).toEqual(["pi.command"])
    const streamed = await stream("/model script/other")
    expect(streamed.content).toBe("The model is now script/other.")
    expect(streamed.events.at(-1)).toBe("[DONE]")
  })

  it("to a command with the name of no model is the model's", async () => {
    expect((await ask("/model script/")).answer.choices[0]?.message.content).toBe("Hello there.")
  })

  it("says where the length ended it", async () => {
    expect((await ask("long")).answer.choices[0]?.finish_reason).toBe("length")
    expect((await stream("long")).chunks.at(-1)?.choices[0]?.finish_reason).toBe("length")
  })

  it("says nothing twice where a retried response repeats itself", async () => {
    expect((await stream("cut")).content).toBe("half a sentence, and the rest")
  })

  it("goes on behind an empty line where a retried response goes another way", async () => {
    const { content, reasoning } = await stream("other")
    expect(content).toBe("one way\n\nanother way")
    expect(reasoning).toContain("the response starts over")
  })
})

describe("a session", () => {
  it("goes on under its name, with the last message of the user alone", async () => {
    const first = await ask("hi", {}, { "x-session-id": "mine" })
    expect(first.response.headers.get("x-session-id")).toBe("mine")
    const messages = [user("edited"), { role: "assistant", content: "never said" }, user("again")]
    const second = await chat({ messages, session_id: "mine" })
    expect(second.headers.get("x-conversation-id")).toBe(String(first.id))
    const said = (await transcript(first.id)).filter((entry) => entry.kind === "pi.user")
    expect(said.map((entry) => textOf(entry.model[0]?.role === "user" ? entry.model[0].content : []))).toEqual([
      "hi",
      "again",
    ])
  })

  it("is seeded by its first request: users, answers, calls and results; the system's words are its instructions", async () => {
    const call = { id: "c1", type: "function", function: { name: "look", arguments: '{"at":1}' } }
    const messages = [
      { role: "system", content: "Be brief." },
      user("one"),
      { role: "assistant", content: "two", tool_calls: [call] },
      { role: "tool", tool_call_id: "c1", content: "seen" },
      { role: "assistant", content: [{ type: "text", text: "three" }] },
      user("go on"),
    ]
    const response = await chat({ messages }, { "x-session-id": "seeded" })
    expect(response.status).toBe(200)
    const entries = await transcript(Number(response.headers.get("x-conversation-id")))
    const seeds = entries.filter((entry) => entry.kind === "openai.history")
    expect(seeds).toHaveLength(1)
    expect(seeds[0]?.model.map((message) => message.role)).toEqual(["user", "assistant", "tool", "assistant"])
    const prompt = entries.flatMap((entry) => entry.model).find((message) => message.role === "system")
    expect(JSON.stringify(prompt)).toContain("Be brief.")
    await chat({ messages }, { "x-session-id": "seeded" })
    const later = await transcript(Number(response.headers.get("x-conversation-id")))
    expect(later.filter((entry) => entry.kind === "openai.history")).toHaveLength(1)
  })

  it("that died between its creation and its seed is seeded by the next request, once", async () => {
    const opened = await Effect.runPromise(
      node.sessions.openNamed({ namespace: "openai", name: "half", agent: {}, title: null, principal: "local" }),
    )
    const messages = [user("one"), { role: "assistant", content: "two" }, user("three")]
    const answers = await Promise.all([1, 2].map(() => chat({ messages }, { "x-session-id": "half" })))
    expect(answers.map((one) => one.status)).toEqual([200, 200])
    const entries = await transcript(opened.session.conversation_id)
    expect(entries.filter((entry) => entry.kind === "openai.history")).toHaveLength(1)
    expect(entries[0]?.kind).toBe("openai.history")
  })

  it("can be joined by the id of its conversation; one that is not there is not found", async () => {
    const { id } = await ask("hi")
    const { id: again } = await ask("hi", {}, { "x-conversation-id": String(id) })
    expect(again).toBe(id)
    const { answer, response } = await ask("hi", {}, { "x-conversation-id": "999999" })
    expect(response.status).toBe(404)
    expect(answer.error).toMatchObject({ type: "invalid_request_error", code: "not_found" })
  })

  it("without a name is a new conversation each time", async () => {
    expect((await ask("hi")).id).not.toBe((await ask("hi")).id)
  })

  it("takes requests one after the other", async () => {
    const answers = await Promise.all(["a", "b", "c"].map((text) => ask(text, {}, { "x-session-id": "busy" })))
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1)
    const kinds = (await transcript(answers[0]?.id ?? 0))
      .map((entry) => entry.kind)
      .filter((kind) => kind !== "pi.system")
    expect(kinds).toEqual(["pi.user", "pi.assistant", "pi.user", "pi.assistant", "pi.user", "pi.assistant"])
  })

  it("changes its harness and its model with the request", async () => {
    const headers = { "x-session-id": "changing" }
    const { id } = await ask("hi", { model: "super-pi-code" }, headers)
    await ask("hi", { model: "super-pi-planner" }, headers)
    const target = { conversationId: ConversationId.make(id) }
    expect(await Effect.runPromise(node.sessions.state(target))).toMatchObject({ harness: "super-pi-planner" })
    await ask("hi", { model: "mock/echo" }, headers)
    expect(await Effect.runPromise(node.sessions.state(target))).toMatchObject({ model: "mock/echo" })
  })

  it("repeats the answer of a request whose key it knows, also as a stream", async () => {
    const headers = { "x-session-id": "keyed", "idempotency-key": "k1" }
    const first = await ask("list it", {}, headers)
    const again = await ask("list it", {}, headers)
    const streamed = await stream("list it", {}, headers)
    expect(again.answer.choices).toEqual(first.answer.choices)
    expect(again.answer.usage).toEqual(first.answer.usage)
    expect(streamed.content).toBe("Let me look.\n\nThere are three files.")
    const inputs = (await transcript(first.id)).filter((entry) => entry.kind === "pi.user")
    expect(inputs).toHaveLength(1)
  })

  it("is the same conversation for the same key where it has no name", async () => {
    const headers = { "idempotency-key": "k2" }
    expect((await ask("hi", {}, headers)).id).toBe((await ask("hi", {}, headers)).id)
  })
})

describe("what a request may choose", () => {
  it("is a mode that tightens", async () => {
    const { id } = await ask("hi", {}, { "x-super-pi-mode": "plan" })
    const state = await Effect.runPromise(node.sessions.state({ conversationId: ConversationId.make(id) }))
    expect(state.mode).toBe("plan")
  })

  it("is an older id of a harness", async () => {
    const { answer, id } = await ask("hi", { model: "super-pi-auto" })
    expect(answer.model).toBe("super-pi-auto")
    const state = await Effect.runPromise(node.sessions.state({ conversationId: ConversationId.make(id) }))
    expect(state.harness).toBe("super-pi-code")
  })

  it("is an image for a model that sees, and a fault for one that does not", async () => {
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } }
    const { id, response } = await ask([{ type: "text", text: "hi" }, image])
    expect(response.status).toBe(200)
    const [input] = (await transcript(id)).filter((entry) => entry.kind === "pi.user")
    expect(input?.model[0]).toMatchObject({
      content: [{ type: "text" }, { type: "image", mediaType: "image/png", data: "aGk=" }],
    })
    const remote = await ask([{ type: "image_url", image_url: { url: "https://example.com/a.png" } }])
    expect(remote.response.status).toBe(400)
    expect(remote.answer.error).toMatchObject({ param: "messages.0.content.0.image_url.url", code: "invalid_params" })
  })
})

describe("a value", () => {
  const format = { type: "json_schema", json_schema: { name: "person", schema } }

  it("is the content, and what was said beside it is reasoning", async () => {
    const { answer } = await ask("value", { response_format: format })
    expect(JSON.parse(answer.choices[0]?.message.content ?? "")).toEqual({ name: "Ada" })
    const { content, reasoning } = await stream("value", { response_format: format })
    expect(JSON.parse(content)).toEqual({ name: "Ada" })
    expect(reasoning).toBe("I think")
  })

  it("may be words that are JSON and fit", async () => {
    expect(
      JSON.parse((await ask("words", { response_format: format })).answer.choices[0]?.message.content ?? ""),
    ).toEqual({ name: "Grace" })
    expect(
      JSON.parse(
        (await ask("words", { response_format: { type: "json_object" } })).answer.choices[0]?.message.content ?? "",
      ),
    ).toEqual({ name: "Grace" })
  })

  it("that is not given is an error", async () => {
    const { answer, response } = await ask("prose", { response_format: format })
    expect(response.status).toBe(502)
    expect(answer.error).toMatchObject({ code: "no_structured_output" })
    const { chunks, events } = await stream("prose", { response_format: format })
    expect(events).toContainEqual({ error: expect.objectContaining({ code: "no_structured_output" }) })
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe("error")
  })

  it("is of its request alone", async () => {
    const headers = { "x-session-id": "formed" }
    await ask("value", { response_format: format }, headers)
    const { answer } = await ask("hi", {}, headers)
    expect(answer.choices[0]?.message.content).toBe("Hello there.")
  })

  it("of a schema that cannot be used is the caller's mistake", async () => {
    const { answer, response } = await ask("value", {
      response_format: { type: "json_schema", json_schema: { schema: { type: 7 } } },
    })
    expect(response.status).toBe(400)
    expect(answer.error).toMatchObject({ param: "response_format", code: "invalid_params" })
  })
})

describe("an error", () => {
  const cases: ReadonlyArray<readonly [title: string, body: object, status: number, error: object]> = [
    [
      "model_not_found where nobody serves it",
      { model: "nothing-like-it", messages: [user("hi")] },
      404,
      { code: "model_not_found", param: "model" },
    ],
    [
      "provider_not_configured where its provider has no key",
      { model: "gpt-4o", messages: [user("hi")] },
      503,
      { code: "provider_not_configured" },
    ],
    ["invalid_params without messages", {}, 400, { code: "invalid_params", param: "messages" }],
    ["invalid_params without a user", { messages: [{ role: "system", content: "x" }] }, 400, { param: "messages" }],
    [
      "invalid_params for a role that is none",
      { messages: [{ role: "robot", content: "x" }] },
      400,
      { param: "messages.0.role" },
    ],
    ["invalid_params for an input that says nothing", { messages: [user("")] }, 400, { param: "messages.0.content" }],
    [
      "invalid_params for a part of another kind",
      { messages: [user([{ type: "input_audio" }])] },
      400,
      { param: "messages.0.content.0.type" },
    ],
    [
      "invalid_params for a mode that is none",
      { messages: [user("hi")], execution_mode: "yolo" },
      400,
      { param: "execution_mode" },
    ],
    [
      "invalid_params for a stream that is neither true nor false",
      { messages: [user("hi")], stream: "yes" },
      400,
      { param: "stream" },
    ],
  ]
  for (const [title, body, status, error] of cases) {
    it(`is ${title}`, async () => {
      const response = await chat(body)
      expect(response.status).toBe(status)
      expect(((await response.json()) as { error: object }).error).toMatchObject(error)
    })
  }

  it("of a body that is no JSON is invalid_params", async () => {
    const response = await post(`${node.url}/v1/chat/completions`, "{")
    expect(response.status).toBe(400)
    expect(((await response.json()) as { error: object }).error).toMatchObject({
      type: "invalid_request_error",
      code: "invalid_params",
    })
  })

  it("of a turn is a status, or an error object before the finish reason error", async () => {
    const { answer, response } = await ask("break")
    expect(response.status).toBe(502)
    expect(response.headers.get("x-should-retry")).toBe("false")
    expect(answer.error).toMatchObject({ code: "model_rejected", message: expect.stringContaining("no such thing") })
    const { chunks, events } = await stream("break")
    expect(events.at(-3)).toMatchObject({ error: { code: "model_rejected" } })
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe("error")
    expect(events.at(-1)).toBe("[DONE]")
  })

  it("of a path that is not there has the same shape", async () => {
    const response = await fetch(`${node.url}/v1/embeddings`, { method: "POST" })
    expect(response.status).toBe(404)
    expect(await response.json()).toMatchObject({ error: { type: "invalid_request_error" } })
  })

  it("does not hold up the next request of its session", async () => {
    const answers = await Promise.all(["break", "luckily"].map((text) => ask(text, {}, { "x-session-id": "unlucky" })))
    expect(answers.map(({ response }) => response.status).sort()).toEqual([200, 502])
  })
})

describe("a client that leaves", () => {
  for (const streams of [true, false]) {
    it(`cancels its turn (${streams ? "a stream" : "a whole answer"})`, async () => {
      const name = `leaver-${streams}`
      await ask("hi", {}, { "x-session-id": name })
      const { conversation_id: conversationId } = await Effect.runPromise(
        node.sessions.findNamed({ namespace: "openai", name, principal: "local" }),
      )
      const watched = Effect.runPromise(
        node.sessions.watch({ conversationId, after: null }).pipe(
          Stream.filter((event) => event.type === "text_delta" || event.type === "turn_cancelled"),
          Stream.tap((event) => Effect.sync(() => event.type === "text_delta" && leaving.abort())),
          Stream.takeUntil((event) => event.type === "turn_cancelled"),
          Stream.runDrain,
        ),
      )
      const leaving = new AbortController()
      const body = JSON.stringify({ model: "super-pi-code", messages: [user("hang")], stream: streams })
      const request = fetch(`${node.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-session-id": name },
        body,
        signal: leaving.signal,
      })
      await expect(request.then((response) => response.text())).rejects.toThrow()
      await watched
      expect((await ask("luckily", {}, { "x-session-id": name })).answer.choices[0]?.message.content).toBe("Lucky.")
    })
  }
})

describe("models", () => {
  it("are the four harnesses with what they can do, and no older ids", async () => {
    const { data } = (await (await fetch(`${node.url}/v1/models`)).json()) as {
      data: ReadonlyArray<{ id: string; capabilities: object }>
    }
    expect(data.map(({ id }) => id)).toEqual([
      "super-pi-code",
      "super-pi-assistant",
      "super-pi-librarian",
      "super-pi-planner",
    ])
    expect(data[3]?.capabilities).toMatchObject({ modes: ["plan"] })
    const one = await fetch(`${node.url}/v1/models/super-pi-planner`)
    expect(await one.json()).toEqual(data[3])
    expect((await fetch(`${node.url}/v1/models/nobody`)).status).toBe(404)
  })
})
