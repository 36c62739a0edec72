/**
 * Plugin Todo: what each action makes of the list, and the tool that writes it with its result.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import fc from "fast-check"
import { todoDocument } from "../../src/domain/builtin-documents.ts"
import type { TodoDocument } from "../../src/domain/document.ts"
import { ConversationId } from "../../src/domain/ids.ts"
import type { JsonObject } from "../../src/domain/json.ts"
import { textOf } from "../../src/domain/message.ts"
import { applyTodo, maxItems, type TodoAction, todoText } from "../../src/harness/plugins/todo/list.ts"
import { todo, todoTool } from "../../src/harness/plugins/todo.ts"
import { planLines } from "../../src/protocols/terminal/plan.ts"
import { Documents, makeDocuments } from "../../src/storage/documents/documents.ts"
import { makeMemoryStore, memoryDatabase } from "../../src/storage/memory/store.ts"
import type { Store } from "../../src/storage/store.ts"
import { contextOf } from "../tools/support.ts"

const empty: TodoDocument = { items: [] }

const listAfter = (list: TodoDocument, ...actions: ReadonlyArray<TodoAction>): TodoDocument =>
  actions.reduce((now, act) => Either.getOrThrow(applyTodo(now, act)), list)

const ids = ({ items }: TodoDocument) => items.map((item) => item.id)

const add = (...texts: ReadonlyArray<string>): TodoAction => ({ action: "add", items: texts.map((text) => ({ text })) })

describe("a list", () => {
  it("grows at its end and numbers its items", () => {
    expect(listAfter(empty, add("a", "b"), add("c"))).toEqual({
      items: [
        { id: "1", text: "a", status: "pending" },
        { id: "2", text: "b", status: "pending" },
        { id: "3", text: "c", status: "pending" },
      ],
      next: 4,
    })
  })

  it("changes what is said and nothing else", () => {
    const list = listAfter(empty, add("a", "b"))
    const changed = listAfter(list, { action: "update", items: [{ id: "2", status: "done" }] })
    expect(changed.items).toEqual([list.items[0], { id: "2", text: "b", status: "done" }])
    expect(listAfter(changed, { action: "update", items: [{ id: "2", text: "B" }] }).items[1]).toEqual({
      id: "2",
      text: "B",
      status: "done",
    })
  })

  it("puts those first that are named, and keeps the order of the others", () => {
    expect(ids(listAfter(empty, add("a", "b", "c", "d"), { action: "reorder", ids: ["3", "1"] }))).toEqual([
      ...["3", "1", "2", "4"],
    ])
  })

  it("never gives an id twice, also after its item is gone", () => {
    const list = listAfter(empty, add("a", "b"), { action: "clear", ids: ["2"] }, add("c"))
    expect(ids(list)).toEqual(["1", "3"])
    expect(ids(listAfter(list, { action: "clear", ids: null }, add("d")))).toEqual(["4"])
    // one that an application wrote
    expect(ids(listAfter({ items: [{ id: "7", text: "x", status: "done" }] }, add("y")))).toEqual(["7", "8"])
  })

  it("refuses what names no item, whole, and says which there are", () => {
    const list = listAfter(empty, add("a"))
    const wrong: ReadonlyArray<TodoAction> = [
      { action: "update", items: [{ id: "1", status: "done" }, { id: "9" }] },
      { action: "clear", ids: ["9"] },
      { action: "reorder", ids: ["1", "9"] },
    ]
    for (const act of wrong) expect(applyTodo(list, act)).toEqual(Either.left('there is no item "9"; the ids are 1'))
    expect(applyTodo(empty, { action: "clear", ids: ["1"] })).toEqual(
      Either.left('there is no item "1"; the list is empty'),
    )
    expect(Either.isLeft(applyTodo(list, add(...Array.from({ length: maxItems }, () => "x"))))).toBe(true)
  })

  it("keeps ids unique and items whole under any actions", () => {
    const id = fc.integer({ min: 1, max: 8 }).map(String)
    const status = fc.constantFrom("pending" as const, "in_progress" as const, "done" as const)
    const act: fc.Arbitrary<TodoAction> = fc.oneof(
      fc.record({
        action: fc.constant("add" as const),
        items: fc.array(fc.record({ text: fc.string() }), { maxLength: 3 }),
      }),
      fc.record({
        action: fc.constant("update" as const),
        items: fc.array(fc.record({ id, status }, { requiredKeys: ["id", "status"] }), { maxLength: 3 }),
      }),
      fc.record({ action: fc.constant("clear" as const), ids: fc.option(fc.array(id, { maxLength: 2 })) }),
      fc.record({ action: fc.constant("reorder" as const), ids: fc.array(id, { maxLength: 4 }) }),
    )
    fc.assert(
      fc.property(fc.array(act, { maxLength: 20 }), (acts) => {
        let list = empty
        const given = new Set<string>()
        for (const one of acts) {
          const result = applyTodo(list, one)
          if (Either.isLeft(result)) continue
          const next = result.right
          expect(new Set(ids(next)).size).toBe(next.items.length)
          const fresh = ids(next).filter((known) => !ids(list).includes(known))
          expect(fresh.filter((known) => given.has(known))).toEqual([])
          for (const known of fresh) given.add(known)
          if (one.action === "reorder") expect([...ids(next)].sort()).toEqual([...ids(list)].sort())
          list = next
        }
      }),
    )
  })

  it("reads as one line an item", () => {
    const list = listAfter(empty, add("a", "b"), { action: "update", items: [{ id: "1", status: "done" }] })
    expect(todoText(list.items)).toBe("1 of 2 done:\n1. [done] a\n2. [pending] b")
    expect(todoText([])).toBe("The todo list is empty.")
    expect(planLines(list.items).map((line) => line.text)).toEqual(["todo: 1 of 2 done", "  ☑ 1. a", "  ☐ 2. b"])
    expect(planLines([{ id: "1", text: "a\u001b[2J\nb", status: "in_progress" }])[1]?.text).not.toContain("\u001b")
  })
})

const conversation = ConversationId.make(1)

const withDocuments = <A, E>(use: (store: Store["Type"]) => Effect.Effect<A, E, Documents>) =>
  Effect.gen(function* () {
    const store = yield* makeMemoryStore(memoryDatabase())
    const [id = conversation] = yield* store.mint("conversation", 1)
    const createdAt = 0
    yield* store.commit({
      conversations: [
        { id, parent: null, owner: null, principal: "local", title: null, createdAt, updatedAt: createdAt },
      ],
    })
    return yield* Effect.provideService(use(store), Documents, makeDocuments(store))
  })

const run = (args: JsonObject) =>
  Effect.gen(function* () {
    const decoded = yield* todoTool.decode(args)
    return yield* todoTool.execute(decoded, contextOf({ root: "/", confined: true }))
  })

describe("the tool", () => {
  it.effect("changes nothing itself: the write goes along with the result, and is made from the stored list", () =>
    withDocuments((store) =>
      Effect.gen(function* () {
        const documents = yield* Documents
        const stored = Effect.map(documents.get(todoDocument, { conversation }), ({ items }) => items)
        const first = yield* run({ action: "add", items: [{ text: "a" }, { text: "b", status: "in_progress" }] })
        expect(yield* stored).toEqual([])
        // A call that was cut off before its commit runs again, and comes to the same.
        const again = yield* run({ action: "add", items: [{ text: "a" }, { text: "b", status: "in_progress" }] })
        expect(again.structuredOutput).toEqual(first.structuredOutput)
        yield* store.commit({ documents: again.control?.documents ?? [] })
        expect(yield* stored).toEqual([
          { id: "1", text: "a", status: "pending" },
          { id: "2", text: "b", status: "in_progress" },
        ])
        const second = yield* run({ action: "update", items: [{ id: 2, status: "done" }] })
        expect(textOf(second.output)).toContain("2. [done] b")
        yield* store.commit({ documents: second.control?.documents ?? [] })
        expect((yield* stored)[1]?.status).toBe("done")
        // It is refused where another commit came in between.
        const late = yield* run({ action: "clear" })
        yield* documents.update(todoDocument, { conversation }, (list) => {
          list.items.pop()
        })
        const refused = yield* Effect.either(store.commit({ documents: late.control?.documents ?? [] }))
        expect(Either.isLeft(refused) && refused.left._tag).toBe("Conflict")
      }),
    ),
  )

  it.effect("writes nothing where nothing changes", () =>
    withDocuments(() =>
      Effect.gen(function* () {
        const listed = yield* run({ action: "list" })
        expect(listed).toMatchObject({ structuredOutput: { items: [] } })
        expect(listed.control).toBeUndefined()
      }),
    ),
  )

  it.effect("says what is wrong with its arguments, all of it", () =>
    withDocuments(() =>
      Effect.gen(function* () {
        const messageOf = (args: JsonObject) =>
          Effect.map(Effect.flip(run(args)), (error) => ("detail" in error ? error.detail : error.message))
        expect(yield* messageOf({ action: "add" })).toContain("items: expected at least one item")
        expect(yield* messageOf({ action: "update", items: [{ status: "done" }, { id: "1" }] })).toBe(
          "items[0].id: expected the id of an item, got nothing\nitems[1]: expected a text or a status, got nothing",
        )
        expect(yield* messageOf({ action: "reorder" })).toContain("ids: expected")
        expect(yield* messageOf({ action: "remove" })).toContain("action: expected one of")
        expect(yield* messageOf({ action: "update", items: [{ id: "5", status: "done" }] })).toContain("no item")
      }),
    ),
  )

  it("touches the state of the conversation, and only reads where it lists", () => {
    expect(todo.tools({})).toHaveLength(1)
    expect(todoTool).toMatchObject({ effects: ["state_write"], replay: "safe", execution: "sequential" })
    expect(todoTool.effectsOf?.({ action: "list" })).toEqual(["read"])
    expect(todoTool.effectsOf?.({ action: "clear" })).toEqual(["state_write"])
  })
})
