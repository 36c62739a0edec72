/**
 * Tool definitions: the schema that models get, and what a wrong argument is told.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Either, Schema } from "effect"
import { ConversationId } from "../../src/domain/ids.ts"
import type { JsonObject } from "../../src/domain/json.ts"
import { defineTool, invalidArguments, toolFailure } from "../../src/tools/define.ts"
import { effectKeyOf } from "../../src/tools/effect-key.ts"
import type { Tool, ToolContext } from "../../src/tools/tool.ts"
import { makeTools, Tools, toolsLayer } from "../../src/tools/tools.ts"

const context: ToolContext = {
  callId: "c1",
  conversation: ConversationId.make(1),
  idempotencyKey: "k1",
  effectKey: (name) => effectKeyOf("k1", name),
  workspace: { root: "/", confined: false },
  emit: () => Effect.void,
}

const sample = defineTool({
  name: "sample",
  description: "A sample",
  parameters: Schema.Struct({
    path: Schema.NonEmptyString.annotations({ description: "a path" }),
    limit: Schema.optional(Schema.Int.pipe(Schema.between(1, 10)).annotations({ description: "how many" })),
    flag: Schema.optional(Schema.Boolean),
    kind: Schema.optional(Schema.Literal("a", "b")),
    edits: Schema.optional(
      Schema.Array(Schema.Struct({ from: Schema.String, to: Schema.String })).pipe(Schema.minItems(1)),
    ),
  }),
  effects: ["read"],
  execute: (args) => Effect.succeed({ output: [], structuredOutput: { path: args.path, limit: args.limit ?? null } }),
})

const detailOf = (args: JsonObject) =>
  sample.decode(args).pipe(
    Effect.flip,
    Effect.map((error) => error.detail.split("\n")),
  )

describe("a tool definition", () => {
  it("gives the model a plain JSON Schema without references or filter names", () => {
    expect(sample.spec.parameters).toEqual({
      type: "object",
      required: ["path"],
      properties: {
        path: { type: "string", description: "a path", minLength: 1 },
        limit: { type: "integer", description: "how many", minimum: 1, maximum: 10 },
        flag: { type: "boolean" },
        kind: { type: "string", enum: ["a", "b"] },
        edits: {
          type: "array",
          minItems: 1,
          description: "an array of at least 1 item(s)",
          items: {
            type: "object",
            required: ["from", "to"],
            properties: { from: { type: "string" }, to: { type: "string" } },
            additionalProperties: false,
          },
        },
      },
      additionalProperties: false,
    })
  })

  it("is unsafe to replay and runs in parallel unless it says otherwise", () => {
    expect([sample.replay, sample.execution]).toEqual(["unsafe", "parallel"])
  })

  it.effect("names the path, what was expected and what came, one line per fault", () =>
    Effect.gen(function* () {
      expect(yield* detailOf({})).toEqual(["path: expected a non-empty string, got nothing"])
      expect(yield* detailOf({ path: "", limit: 11, kind: "c" })).toEqual([
        'path: expected a non-empty string, got ""',
        "limit: expected an integer from 1 to 10, got 11",
        'kind: expected one of "a", "b", got "c"',
      ])
      expect(yield* detailOf({ path: "x", edits: [{ from: "a", to: 1 }] })).toEqual([
        "edits[0].to: expected a string, got 1",
      ])
      expect(yield* detailOf({ path: "x", edits: [] })).toEqual(["edits: expected an array of at least 1 item, got []"])
    }),
  )

  it.effect("names the nearest field for one that it does not know", () =>
    Effect.gen(function* () {
      expect(yield* detailOf({ path: "x", limits: 3 })).toEqual([
        'limits: expected the field name "limit", got an unknown field with 3',
      ])
    }),
  )

  it.effect("repairs nulls for absent fields, numbers and booleans as text, and lists as JSON text", () =>
    Effect.gen(function* () {
      const args = { path: "x", limit: "3", flag: "true", kind: null, edits: '[{"from":"a","to":"b"}]' }
      expect(yield* sample.decode(args)).toEqual({ path: "x", limit: 3, flag: true, edits: [{ from: "a", to: "b" }] })
      expect(yield* sample.decode({ path: "12" })).toEqual({ path: "12" })
    }),
  )

  it.effect("validates again when it runs, so a stored call with arguments of an older version fails readably", () =>
    Effect.gen(function* () {
      const result = yield* Effect.either(sample.execute({ path: 3 }, context))
      expect(Either.isLeft(result) && result.left.message).toBe("path: expected a non-empty string, got 3")
      expect((yield* sample.execute({ path: "x" }, context)).structuredOutput).toEqual({ path: "x", limit: null })
    }),
  )
})

describe("a tool made by hand", () => {
  it.effect("may check its arguments itself, for example against a schema that came from elsewhere", () => {
    const tool: Tool = {
      ...sample,
      spec: { ...sample.spec, name: "remote" },
      decode: (args) =>
        "x" in args
          ? Effect.succeed(args)
          : Effect.fail(invalidArguments("remote", "x: expected a value, got nothing")),
    }
    return Effect.gen(function* () {
      const error = yield* Effect.flip(tool.decode({}))
      expect(error).toMatchObject({
        _tag: "InvalidArguments",
        tool: "remote",
        detail: "x: expected a value, got nothing",
      })
      expect(String(error)).toContain("remote: x: expected a value, got nothing")
    })
  })
})

describe("the tools service", () => {
  it("finds a tool by name, and the last of a name wins", () => {
    const other = { ...sample, effects: [] }
    const tools = makeTools([sample, other])
    expect(tools.get("sample")).toBe(other)
    expect(tools.list).toHaveLength(1)
    expect(tools.get("none")).toBeUndefined()
  })

  it.effect("gives every tool the services that it needs from the layer", () => {
    class Greeting extends Effect.Tag("Greeting")<Greeting, { readonly word: string }>() {}
    const greet = defineTool({
      name: "greet",
      description: "Greets",
      parameters: Schema.Struct({}),
      effects: [],
      execute: () =>
        Effect.flatMap(Greeting, ({ word }) => Effect.fail(toolFailure("greet", `${word} failed`, { word }))),
    })
    return Effect.gen(function* () {
      const tool = (yield* Tools).get("greet")
      const failure = yield* Effect.flip(tool?.execute({}, context) ?? Effect.die("no tool"))
      expect(failure.message).toBe("hi failed")
    }).pipe(Effect.provide(toolsLayer([greet])), Effect.provideService(Greeting, Greeting.of({ word: "hi" } as never)))
  })
})
