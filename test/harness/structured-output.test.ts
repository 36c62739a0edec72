/**
 * Plugin StructuredOutput: schemas as tools, values that fit, and what becomes of those that do not.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import fc from "fast-check"
import { EntryKind } from "../../src/domain/entry.ts"
import { ConversationId, EntryId } from "../../src/domain/ids.ts"
import { isJsonObject, type Json, type JsonObject } from "../../src/domain/json.ts"
import { type Message, text, textOf } from "../../src/domain/message.ts"
import { entriesOfRun, jsonAnswer, outputOutcome, refusals } from "../../src/domain/structured-output.ts"
import { outputParameters } from "../../src/harness/plugins/structured-output/parameters.ts"
import { validator } from "../../src/harness/plugins/structured-output/validator.ts"
import { structuredOutput, structuredOutputTool } from "../../src/harness/plugins/structured-output.ts"
import { makeMemoryStore, memoryDatabase } from "../../src/storage/memory/store.ts"
import { Store, type StoreService } from "../../src/storage/store.ts"
import { contextOf } from "../tools/support.ts"
import { projectWith } from "./plugin-support.ts"

const person: JsonObject = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer", minimum: 0 } },
  required: ["name"],
  additionalProperties: false,
}

const faults = (schema: JsonObject, value: Json) => Effect.map(validator(schema), (check) => check(value))

describe("the check of a value", () => {
  it.effect("names each fault with its path, what was expected and what came", () =>
    Effect.gen(function* () {
      expect(yield* faults(person, { name: "Ada", age: 36 })).toEqual([])
      expect([...(yield* faults(person, { age: -1, nick: "A" }))].sort()).toEqual([
        "age: expected it to be >= 0, got -1",
        "name: expected a value, got nothing",
        "nick: expected no such field",
      ])
      const list = { type: "array", items: { type: "object", properties: { kind: { enum: ["a", "b"] } } } }
      expect(yield* faults(list, [{ kind: "a" }, { kind: "c" }])).toEqual([
        '[1].kind: expected one of ["a","b"], got "c"',
      ])
      expect(yield* faults({ type: ["string", "null"] }, 4)).toEqual(["value: expected string or null, got 4"])
      expect(yield* faults({ const: 1 }, 2)).toEqual(["value: expected 1, got 2"])
      expect((yield* faults({ type: "string", format: "date" }, "soon"))[0]).toContain('match format "date"')
      expect(
        yield* faults(
          { items: { type: "integer" } },
          Array.from({ length: 50 }, () => "x"),
        ),
      ).toHaveLength(21)
    }),
  )

  it.effect("follows the draft that the schema names, and references within it", () =>
    Effect.gen(function* () {
      const tuple = { type: "array", items: [{ type: "string" }, { type: "integer" }] }
      expect(yield* faults({ $schema: "http://json-schema.org/draft-07/schema#", ...tuple }, ["a", "b"])).toHaveLength(
        1,
      )
      expect(yield* faults(tuple, ["a", 1])).toEqual([])
      const prefix = { $schema: "https://json-schema.org/draft/2020-12/schema", prefixItems: [{ type: "string" }] }
      expect(yield* faults(prefix, [1])).toHaveLength(1)
      const tree = {
        $defs: {
          node: { type: "object", properties: { next: { $ref: "#/$defs/node" } }, additionalProperties: false },
        },
        $ref: "#/$defs/node",
      }
      expect(yield* faults(tree, { next: { next: {} } })).toEqual([])
      expect(yield* faults(tree, { next: { last: {} } })).toEqual(["next.last: expected no such field"])
    }),
  )

  it.effect("refuses a schema that is none, and one of a draft or a place that it does not know", () =>
    Effect.gen(function* () {
      const detailOf = (schema: JsonObject) => Effect.map(Effect.flip(validator(schema)), (error) => error.detail)
      expect(yield* detailOf({ type: "strnig" })).toContain("type: expected one of")
      expect(yield* detailOf({ properties: { a: { minimum: "1" } } })).toContain(
        "properties.a.minimum: expected number",
      )
      expect(yield* detailOf({ $schema: "http://json-schema.org/draft-03/schema#" })).toContain("draft-07")
      expect(yield* detailOf({ $ref: "https://example.com/schema.json" })).toContain("example.com")
    }),
  )
})

describe("a schema as a tool", () => {
  it("is the tool's parameters where it describes an object, without what names the schema itself", () => {
    const { parameters, valueOf } = outputParameters({ $schema: "x", $id: "y", ...person })
    expect(parameters).toEqual(person)
    expect(valueOf({ name: "Ada" })).toEqual({ name: "Ada" })
  })

  it("is a field of them otherwise, and references still find their targets", () => {
    const list: JsonObject = {
      type: "array",
      items: { anyOf: [{ $ref: "#/$defs/n" }, { $ref: "#" }] },
      $defs: { n: { type: "integer" } },
    }
    const { parameters, valueOf } = outputParameters(list)
    expect(parameters).toEqual({
      type: "object",
      properties: {
        value: { type: "array", items: { anyOf: [{ $ref: "#/$defs/n" }, { $ref: "#/properties/value" }] } },
      },
      required: ["value"],
      additionalProperties: false,
      $defs: { n: { type: "integer" } },
    })
    expect(valueOf({ value: [1, [2]] })).toEqual([1, [2]])
    expect(valueOf({})).toBeUndefined()
  })

  it.effect("accepts wrapped what the schema accepts", () =>
    Effect.gen(function* () {
      const list: JsonObject = { type: "array", items: { anyOf: [{ type: "integer" }, { $ref: "#" }] } }
      const [plain, wrapped] = [yield* validator(list), yield* validator(outputParameters(list).parameters)]
      const value = fc.letrec<{ value: Json }>((tie) => ({
        value: fc.oneof({ maxDepth: 3 }, fc.integer(), fc.string(), fc.array(tie("value"), { maxLength: 3 })),
      })).value
      fc.assert(
        fc.property(value, (one) => {
          expect(wrapped({ value: one }).length === 0).toBe(plain(one).length === 0)
        }),
      )
    }),
  )
})

const conversation = ConversationId.make(1)

const user = (words: string, kind: string = EntryKind.user) => ({
  kind,
  model: [{ role: "user", content: [text(words)] }] satisfies ReadonlyArray<Message>,
})

const answered = (words: string) => ({
  kind: EntryKind.assistant,
  model: [
    { role: "assistant", content: [text(words)], model: "script/test", stopReason: "stop" },
  ] satisfies ReadonlyArray<Message>,
})

const result = (isError: boolean, details: Json) => ({
  kind: EntryKind.toolResult,
  model: [
    { role: "tool", callId: "1", toolName: "structured_output", content: [text("said")], isError, details },
  ] satisfies ReadonlyArray<Message>,
})

type Written = ReturnType<typeof user> | ReturnType<typeof answered> | ReturnType<typeof result>

/** A store with a conversation of these entries. */
const storeWith = (written: ReadonlyArray<Written>) =>
  Effect.gen(function* () {
    const store = yield* makeMemoryStore(memoryDatabase())
    const [id = conversation] = yield* store.mint("conversation", 1)
    const at = { createdAt: 0, updatedAt: 0 }
    yield* store.commit({
      conversations: [{ id, parent: null, owner: null, principal: "local", title: null, ...at }],
    })
    const ids = yield* store.mint("entry", written.length)
    const entries = written.map((one, n) => ({
      id: ids[n] ?? EntryId.make(0),
      conversation: id,
      data: null,
      head: null,
      edits: [],
      task: null,
      createdAt: 0,
      ...one,
    }))
    if (entries.length > 0) yield* store.commit({ entries })
    return store
  })

const call = (store: StoreService, args: JsonObject, maxRepairs = 1, schema = person) =>
  Effect.gen(function* () {
    const tool = structuredOutputTool(schema, maxRepairs)
    const decoded = yield* tool.decode(args)
    return yield* tool.execute(decoded, contextOf({ root: "/", confined: true }))
  }).pipe(Effect.provideService(Store, store))

describe("a call", () => {
  it.effect("with a value that fits ends the run and carries the value", () =>
    Effect.gen(function* () {
      const store = yield* storeWith([user("who?")])
      expect(yield* call(store, { name: "Ada" })).toMatchObject({
        structuredOutput: { name: "Ada" },
        details: { value: { name: "Ada" } },
        control: { terminate: true },
      })
      const wrapped = yield* call(store, { value: [1] }, 1, { type: "array" })
      expect(wrapped.structuredOutput).toEqual([1])
      expect((yield* call(store, {}, 1, { type: "array" })).isError).toBe(true)
    }),
  )

  it.effect("with another value goes back with its faults, and the try after the last repair ends the run", () =>
    Effect.gen(function* () {
      const first = yield* call(yield* storeWith([user("who?")]), { age: 1 })
      expect(first.control).toBeUndefined()
      expect(first.isError).toBe(true)
      expect(textOf(first.output)).toContain("name: expected a value, got nothing\nCall structured_output again")
      const tried = [user("who?"), result(true, { errors: ["x"] })]
      const second = yield* call(yield* storeWith(tried), { age: 1 })
      expect(second).toMatchObject({ isError: true, control: { terminate: true } })
      expect((yield* call(yield* storeWith(tried), { age: 1 }, 2)).control).toBeUndefined()
      expect((yield* call(yield* storeWith([user("who?")]), { age: 1 }, 0)).control).toEqual({ terminate: true })
      // what an earlier run tried does not count
      expect((yield* call(yield* storeWith([...tried, user("again")]), { age: 1 })).control).toBeUndefined()
    }),
  )

  it.effect("with a schema that is none fails and says so", () =>
    Effect.gen(function* () {
      const store = yield* storeWith([user("who?")])
      const failed = yield* Effect.either(call(store, {}, 1, { type: "object", properties: { a: { type: "no" } } }))
      expect(Either.isLeft(failed) && "message" in failed.left && failed.left.message).toContain("not a JSON Schema")
    }),
  )
})

const yielded = (written: ReadonlyArray<Written>, options: JsonObject) =>
  Effect.gen(function* () {
    const project = yield* projectWith()
    const hook = structuredOutput.hooks.onYield
    if (hook === undefined) return yield* Effect.dieMessage("no hook")
    const last = written.at(-1)?.model[0]
    const words = last?.role === "assistant" ? textOf(last.content) : ""
    const context = project.context(structuredOutput, { options })
    return yield* hook({ text: words, entry: EntryId.make(1) }, context).pipe(
      Effect.provideService(Store, yield* storeWith(written)),
    )
  })

describe("an answer in words", () => {
  it.scoped("is asked for as a value, once", () =>
    Effect.gen(function* () {
      const options = { schema: person }
      expect((yield* yielded([user("who?"), answered("Ada.")], options))?.continue).toContain("structured_output")
      const asked = [user("who?"), answered("Ada."), user("call it", EntryKind.continue), answered("No.")]
      expect(yield* yielded(asked, options)).toBeUndefined()
      expect((yield* yielded(asked, { ...options, maxRepairs: 2 }))?.continue).toBeDefined()
    }),
  )

  it.scoped("stays where it is the value itself, where a call gave one before, and without a schema", () =>
    Effect.gen(function* () {
      const options = { schema: person }
      expect(yield* yielded([user("who?"), answered('```json\n{"name":"Ada"}\n```')], options)).toBeUndefined()
      expect((yield* yielded([user("who?"), answered('{"age":1}')], options))?.continue).toBeDefined()
      const given = [user("who?"), result(false, { value: { name: "Ada" } }), answered("Done.")]
      expect(yield* yielded(given, options)).toBeUndefined()
      expect(yield* yielded([user("who?"), answered("Ada.")], {})).toBeUndefined()
    }),
  )

  it.scoped("is what a subagent gives: it has no such tool, and is not asked again", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const { beforeRequest, onYield } = structuredOutput.hooks
      const request = {
        messages: [],
        sections: {},
        tools: ["read", "structured_output"],
        model: "script/test",
        turn: 1,
      }
      const options = { schema: person }
      const below = project.context(structuredOutput, { options, depth: 1 })
      const store = yield* storeWith([user("who?"), answered("Ada.")])
      const asked = <A, E>(effect: Effect.Effect<A, E, Store> | undefined) =>
        effect === undefined ? Effect.dieMessage("no hook") : Effect.provideService(effect, Store, store)
      expect(yield* asked(beforeRequest?.(request, below))).toEqual({ tools: ["read"] })
      expect(yield* asked(onYield?.({ text: "Ada.", entry: EntryId.make(1) }, below))).toBeUndefined()
      const top = project.context(structuredOutput, { options })
      expect(yield* asked(beforeRequest?.(request, top))).toBeUndefined()
    }),
  )

  it("has no tool where there is no schema", () => {
    expect(structuredOutput.tools({ maxRepairs: 1 })).toEqual([])
    expect(structuredOutput.tools({ maxRepairs: 1, schema: person })[0]?.spec).toMatchObject({
      name: "structured_output",
      parameters: person,
    })
  })
})

describe("what a run gave", () => {
  const numbered = (written: ReadonlyArray<Written>) => written.map((one, at) => ({ id: EntryId.make(at + 1), ...one }))

  it("is the last value that was taken, else why the last one was not, else words", () => {
    const good = (value: Json) => result(false, { value })
    expect(outputOutcome(numbered([good(1), result(true, { errors: ["bad"] }), good(2)]))).toEqual({
      type: "value",
      value: 2,
    })
    expect(outputOutcome(numbered([good(null)]))).toEqual({ type: "value", value: null })
    expect(outputOutcome(numbered([result(true, { errors: ["a", "b"] }), answered("sorry")]))).toEqual({
      type: "refused",
      errors: ["a", "b"],
    })
    expect(outputOutcome(numbered([result(true, null)]))).toEqual({ type: "refused", errors: ["said"] })
    expect(outputOutcome(numbered([answered("words")]))).toEqual({ type: "none", text: "words" })
    expect(outputOutcome(numbered([good(1), user("next"), answered("words")]), EntryId.make(2)).type).toBe("none")
  })

  it("counts from the last input of a person", () => {
    const entries = [user("a"), result(true, null), user("b"), result(true, null), user("go on", EntryKind.continue)]
    expect(refusals(entriesOfRun(entries, EntryKind.continue))).toBe(1)
    expect(refusals(entries)).toBe(2)
  })

  it("may be JSON as it stands or in one block, and is nothing else", () => {
    expect(jsonAnswer(' {"a": [1]} ')).toEqual({ a: [1] })
    expect(jsonAnswer("```json\n[1]\n```")).toEqual([1])
    expect(jsonAnswer("It is 4.")).toBeUndefined()
    expect(jsonAnswer("")).toBeUndefined()
    expect(isJsonObject(jsonAnswer("{}"))).toBe(true)
  })
})
