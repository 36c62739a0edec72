/**
 * Whatever JSON comes: an answer or a status that names the mistake, never a fault of the server; and the readers of bodies never throw anything
 * but `InvalidRequest`.
 */
import { Either } from "effect"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { readChat } from "../../../src/protocols/openai/chat-request.ts"
import { reading } from "../../../src/protocols/openai/fields.ts"
import { readResponse } from "../../../src/protocols/openai/response-request.ts"
import { type OpenAiNode, post, startNode } from "./node.ts"

let node: OpenAiNode
beforeAll(async () => {
  node = await startNode({ script: { rules: [{ match: "", steps: [{ text: "Hello." }] }] } })
})
afterAll(() => node.close())

/** Values that are near to what is expected, and anything else. */
const near = <A>(...values: ReadonlyArray<A>) => fc.oneof(fc.constantFrom(...values), fc.jsonValue({ maxDepth: 2 }))
const optional = <A>(value: fc.Arbitrary<A>) => fc.option(value, { nil: undefined })

const part = fc.record({
  type: near("text", "input_text", "image_url", "input_image", "refusal"),
  text: near("hi", ""),
  image_url: near<unknown>("data:image/png;base64,aGk=", { url: "data:image/png;base64,aGk=" }, "https://a.b/c.png"),
})
const content = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.array(fc.oneof(part, fc.jsonValue({ maxDepth: 1 })), { maxLength: 3 }),
  fc.jsonValue({ maxDepth: 1 }),
)
const call = fc.record({
  id: near("c1", ""),
  type: near("function"),
  function: near<unknown>({ name: "ls", arguments: "{}" }, { name: "", arguments: "x" }),
})
const message = fc.record(
  {
    role: near("system", "developer", "user", "assistant", "tool"),
    content,
    tool_calls: fc.oneof(fc.array(call, { maxLength: 2 }), fc.jsonValue({ maxDepth: 1 })),
    tool_call_id: near("c1", "c2"),
  },
  { requiredKeys: [] },
)
const format = near<unknown>(
  undefined,
  { type: "text" },
  { type: "json_object" },
  { type: "json_schema", json_schema: { schema: { type: "object" } } },
  { type: "json_schema" },
)
const common = {
  model: near("super-pi-code", "mock/echo", "nobody", "gpt-4o", "__proto__"),
  execution_mode: optional(near("plan", "auto")),
  session_id: optional(near("s", "t", "\u0000")),
}
const chat = fc.record(
  {
    ...common,
    messages: fc.oneof(
      fc.array(fc.oneof(message, fc.constant({ role: "user", content: "hi" })), { maxLength: 5 }),
      fc.jsonValue({ maxDepth: 1 }),
    ),
    stream: optional(near(true, false)),
    stream_options: optional(near<unknown>({ include_usage: true })),
    response_format: format,
  },
  { requiredKeys: [] },
)
const item = fc.oneof(
  message,
  fc.record({
    type: near("message", "function_call", "function_call_output", "reasoning"),
    call_id: near("c"),
    name: near("ls"),
    arguments: near("{}"),
    output: content,
  }),
)
const response = fc.record(
  {
    ...common,
    input: fc.oneof(fc.string(), fc.array(item, { maxLength: 4 }), fc.jsonValue({ maxDepth: 1 })),
    instructions: optional(near("Be brief.")),
    previous_response_id: optional(near("resp_1_1", "resp_0_0", "x")),
    text: optional(near<unknown>({ format: { type: "json_object" } })),
    metadata: optional(near<unknown>({ a: "b" })),
    stream: optional(near(true, false)),
  },
  { requiredKeys: [] },
)

describe("a body of any JSON", () => {
  it("is read, or refused with the path of what is wrong", () => {
    fc.assert(
      fc.property(fc.oneof(chat, response, fc.jsonValue()), (body) => {
        for (const read of [readChat, readResponse]) {
          const asked = reading(() => read(body, {}))
          if (Either.isLeft(asked)) expect(asked.left.message).toMatch(/^.+: expected .+, got /s)
          else reading(asked.right.history)
        }
      }),
      { numRuns: 2000 },
    )
  })

  for (const [path, bodies] of [
    ["chat/completions", chat],
    ["responses", response],
  ] as const) {
    it(`never makes ${path} fail on our side`, async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.oneof({ weight: 5, arbitrary: bodies as fc.Arbitrary<unknown> }, { weight: 1, arbitrary: fc.jsonValue() }),
          async (body) => {
            const reply = await post(`${node.url}/v1/${path}`, JSON.stringify(body) ?? "null")
            const text = await reply.text()
            expect([200, 400, 404, 502, 503], text).toContain(reply.status)
            // Ours would be `internal_error`; these are the model's, and models without a key.
            if (reply.status > 404) expect(text).toMatch(/no_structured_output|provider_not_configured/)
          },
        ),
        { numRuns: 150 },
      )
    })
  }

  it("answers to bodies that are no JSON, and goes on", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "binary", maxLength: 200 }), async (body) => {
        const reply = await post(`${node.url}/v1/chat/completions`, body)
        expect(reply.status).toBe(400)
      }),
      { numRuns: 30 },
    )
    const reply = await post(`${node.url}/v1/chat/completions`, {
      model: "mock/echo",
      messages: [{ role: "user", content: "still here" }],
    })
    expect(reply.status).toBe(200)
  })
})
