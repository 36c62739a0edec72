/**
 * Histories for property tests: valid ones, and damaged ones as storage or an older version may have left them.
 */
import fc from "fast-check"
import type { AssistantPart, Message } from "../../src/domain/message.ts"

/** Text with emoji and, when asked for, lone surrogates. */
const anyText = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.constantFrom("\ud83d", "a\udc00b", "", " \n", "🎉"),
)
const goodText = fc.oneof(fc.string({ minLength: 1 }), fc.constantFrom("hello", "🎉 done")).map((text) => `x${text}`)

const goodArguments = fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 2 }), {
  maxKeys: 3,
  noNullPrototype: true,
}) as fc.Arbitrary<Record<string, never>>

/** One exchange: user, answer with or without calls, results in call order. */
const exchange = (index: number): fc.Arbitrary<ReadonlyArray<Message>> =>
  fc
    .record({
      asked: goodText,
      said: goodText,
      thinking: fc.option(goodText, { nil: undefined }),
      calls: fc.array(fc.record({ name: fc.constantFrom("read", "ls"), args: goodArguments }), { maxLength: 3 }),
      result: goodText,
      system: fc.boolean(),
    })
    .map(({ asked, said, thinking, calls, result, system }): ReadonlyArray<Message> => {
      const content: Array<AssistantPart> = []
      if (thinking !== undefined) content.push({ type: "thinking", text: thinking, meta: { p: { s: "sig" } } })
      content.push({ type: "text", text: said })
      calls.forEach(({ name, args }, i) => {
        content.push({ type: "toolCall", id: `c${index}_${i}`, name, arguments: JSON.parse(JSON.stringify(args)) })
      })
      return [
        ...(system
          ? [{ role: "system", sections: [{ name: "s", text: asked }], addTools: [], removeTools: [] } as const]
          : []),
        { role: "user", content: [{ type: "text", text: asked }] },
        { role: "assistant", content, model: "p/m", stopReason: calls.length > 0 ? "tool_calls" : "stop" },
        ...calls.map(
          ({ name }, i): Message => ({
            role: "tool",
            callId: `c${index}_${i}`,
            toolName: name,
            content: [{ type: "text", text: result }],
            isError: false,
          }),
        ),
      ]
    })

/** A history that every service accepts, ending with a user message. */
export const validHistory: fc.Arbitrary<ReadonlyArray<Message>> = fc
  .integer({ min: 0, max: 5 })
  .chain((n) =>
    fc.tuple(
      ...Array.from({ length: n }, (_, i) => exchange(i)),
      goodText.map((text): ReadonlyArray<Message> => [{ role: "user", content: [{ type: "text", text }] }]),
    ),
  )
  .map((parts) => parts.flat())

/** Metadata as a provider package would have left it, but for its values. */
const damagedMeta = fc.record(
  { anthropic: fc.anything(), openai: fc.anything(), google: fc.record({ thoughtSignature: fc.anything() }) },
  { requiredKeys: [] },
)

const damagedPart = fc.oneof(
  fc.record({ type: fc.constantFrom("text", "thinking"), text: anyText, meta: damagedMeta }),
  fc.record({
    type: fc.constant("thinking"),
    text: anyText,
    meta: fc.record({
      anthropic: fc.record({ signature: fc.anything() }),
      openai: fc.record({ itemId: fc.anything(), reasoningEncryptedContent: fc.anything() }, { requiredKeys: [] }),
    }),
  }),
  fc.record({ type: fc.constant("text"), text: anyText }),
  fc.record({ type: fc.constant("text"), text: anyText, meta: fc.anything() }),
  fc.record({ type: fc.constant("thinking"), text: anyText, signature: fc.option(anyText, { nil: undefined }) }),
  fc.record({ type: fc.constant("image"), mediaType: fc.constantFrom("image/png", "image/tiff"), data: anyText }),
  fc.record({
    type: fc.constant("toolCall"),
    id: fc.oneof(fc.constantFrom("a", "b", "c", "", "\ud800"), fc.anything()),
    name: fc.oneof(fc.constantFrom("read", "", "1 bad name!", "x".repeat(99)), fc.anything()),
    arguments: fc.oneof(goodArguments, fc.anything(), fc.constant('{"path":"x"}')),
    meta: fc.option(fc.anything(), { nil: undefined }),
  }),
  fc.anything(),
)

const damagedContent = fc.oneof(
  { weight: 8, arbitrary: fc.array(damagedPart, { maxLength: 4 }) },
  anyText,
  fc.anything(),
)

const damagedMessage: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ role: fc.constant("user"), content: damagedContent }) },
  {
    weight: 4,
    arbitrary: fc.record({
      role: fc.constant("assistant"),
      content: damagedContent,
      model: fc.oneof(fc.constant("p/m"), fc.anything()),
      stopReason: fc.constantFrom("stop", "tool_calls", "aborted", "error", "deferred", "length", undefined),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      role: fc.constant("tool"),
      callId: fc.oneof(fc.constantFrom("a", "b", "c", "", "\ud800"), fc.anything()),
      toolName: fc.oneof(fc.constant("read"), fc.anything()),
      content: damagedContent,
      isError: fc.oneof(fc.boolean(), fc.anything()),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      role: fc.constant("system"),
      sections: fc.oneof(fc.array(fc.record({ name: anyText, text: fc.option(anyText) })), fc.anything()),
      addTools: fc.oneof(
        fc.array(fc.record({ name: anyText, description: anyText, parameters: goodArguments })),
        fc.anything(),
      ),
      removeTools: fc.oneof(fc.array(anyText), fc.anything()),
    }),
  },
  { weight: 1, arbitrary: fc.anything() },
)

/** Anything that a damaged store may hold in place of a history. */
export const damagedHistory = fc.array(damagedMessage, { maxLength: 12 }) as fc.Arbitrary<ReadonlyArray<Message>>

/** A valid history with messages lost, repeated or swapped. */
export const shuffledHistory: fc.Arbitrary<ReadonlyArray<Message>> = validHistory.chain((messages) =>
  fc
    .array(fc.nat(Math.max(0, messages.length - 1)), { maxLength: messages.length + 4 })
    .map((order) => order.flatMap((i) => messages[i] ?? [])),
)
