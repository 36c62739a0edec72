/**
 * Plugin JevRouter: which of two models a request goes to, read off the transcript.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import type { ExecutionMode } from "../../src/domain/document.ts"
import type { JsonObject } from "../../src/domain/json.ts"
import { type Message, text } from "../../src/domain/message.ts"
import { route } from "../../src/harness/plugins/jev-router/route.ts"
import { defaultPairs, jevRouter, pairFor } from "../../src/harness/plugins/jev-router.ts"
import { promptFor } from "../../src/harness/prompt.ts"
import { Models } from "../../src/models/model.ts"
import { makeModels } from "../../src/models/service.ts"
import { projectWith } from "./plugin-support.ts"

const user: Message = { role: "user", content: [text("go")] }

const answer = (model: string, ...tools: ReadonlyArray<string>): Message => ({
  role: "assistant",
  model,
  stopReason: tools.length === 0 ? "stop" : "tool_calls",
  content: tools.map((name, at) => ({ type: "toolCall", id: `${name}-${at}`, name, arguments: {} })),
})

/** The prompt of a mode, as the conversation stores it. */
const promptIn = (mode: ExecutionMode): Message => {
  const tools = [{ name: "read", description: "", parameters: {} }]
  const { sections } = promptFor({ agent: {}, mode, cwd: "/w", platform: "test", tools })
  return {
    role: "system",
    sections: [...sections].map(([name, value]) => ({ name, text: value })),
    addTools: [],
    removeTools: [],
  }
}

const phaseOf = (messages: ReadonlyArray<Message>, turn: number, mode: ExecutionMode = "auto") =>
  route({ messages, turn, mode, editTools: ["write", "edit"], implementationModels: ["script/fast"] }).phase

describe("the route", () => {
  it("begins with planning and goes over at the first call that edits", () => {
    expect(phaseOf([user], 1)).toBe("planning")
    expect(phaseOf([user, answer("script/strong", "read")], 2)).toBe("planning")
    expect(phaseOf([user, answer("script/strong", "read"), answer("script/strong", "grep", "edit")], 3)).toBe(
      "implementation",
    )
  })

  it("does not go back within a run, whatever joins it or is compacted away", () => {
    const edited = [user, answer("script/strong", "write"), answer("script/fast", "bash")]
    expect(phaseOf([...edited, user], 3)).toBe("implementation")
    // the edit is behind the summary: only an answer of the implementation model is left
    expect(phaseOf([user, answer("script/fast", "bash")], 7)).toBe("implementation")
  })

  it("plans anew in the next run", () => {
    expect(phaseOf([user, answer("script/strong", "write"), answer("script/fast"), user], 1)).toBe("planning")
  })

  it("plans in mode plan, and implements once that was left", () => {
    expect(phaseOf([promptIn("plan"), user, answer("script/strong", "write")], 2, "plan")).toBe("planning")
    const planned = [promptIn("plan"), user, answer("script/strong"), user]
    expect(phaseOf(planned, 1, "auto")).toBe("implementation")
    expect(phaseOf([...planned, promptIn("auto"), answer("script/fast", "read")], 2, "auto")).toBe("implementation")
    const later = [...planned, promptIn("auto"), answer("script/fast"), user]
    expect(phaseOf(later, 1, "auto")).toBe("planning")
  })

  it("never goes back, in any run of any calls", () => {
    const calls = fc.array(fc.subarray(["read", "bash", "write", "edit"]), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(calls, (turns) => {
        const messages: Array<Message> = [user]
        let implementing = false
        turns.forEach((tools, at) => {
          const phase = phaseOf(messages, at + 1)
          expect(implementing && phase === "planning").toBe(false)
          implementing = phase === "implementation"
          messages.push(answer(implementing ? "script/fast" : "script/strong", ...tools))
        })
      }),
    )
  })
})

describe("the pair of models", () => {
  it("comes from the environment, else the options, else the conversation's own model", () => {
    const options = { planningModel: "a", implementationModel: "b" }
    expect(pairFor("own", options, {})).toEqual({ planning: "a", implementation: "b", named: true })
    expect(pairFor("own", options, { JEV_PLANNING_MODEL: "c" })).toMatchObject({ planning: "c", implementation: "b" })
    expect(pairFor("own", { implementationModel: "b" }, { JEV_PLANNING_MODEL: " " })).toMatchObject({
      planning: "own",
      implementation: "b",
    })
    expect(pairFor("own", {}, {})).toBeNull()
    const [[own, pair] = ["", null]] = Object.entries(defaultPairs)
    expect(pairFor(own, {}, {})).toEqual({ ...pair, named: false })
  })
})

const models = makeModels({ env: {}, script: { rules: [] } as never }) // no rule is ever asked

const routed = (given: {
  readonly options?: JsonObject
  readonly env?: Readonly<Record<string, string>>
  readonly messages?: ReadonlyArray<Message>
  readonly turn?: number
  readonly model?: string
}) =>
  Effect.gen(function* () {
    const project = yield* projectWith()
    const hook = jevRouter.hooks.beforeRequest
    if (hook === undefined) return yield* Effect.dieMessage("no hook")
    const { messages = [user], model = "script/own", turn = 1 } = given
    const context = project.context(jevRouter, { options: given.options ?? {}, env: given.env ?? {} })
    const said = yield* hook({ messages, sections: {}, tools: [], model, turn }, context)
    return { model: said?.model, notices: project.notices }
  }).pipe(Effect.provideService(Models, models))

const pair = { planningModel: "script/strong", implementationModel: "script/fast" }

describe("a request", () => {
  it.scoped("goes to the planning model, then to the implementation model", () =>
    Effect.gen(function* () {
      expect((yield* routed({ options: pair })).model).toBe("script/strong")
      const edited = { options: pair, messages: [user, answer("script/strong", "edit")], turn: 2 }
      expect((yield* routed(edited)).model).toBe("script/fast")
      expect((yield* routed({ ...edited, model: "script/fast" })).model).toBeUndefined()
    }),
  )

  it.scoped("is not routed where nobody named a model, or routing is off", () =>
    Effect.gen(function* () {
      expect(yield* routed({})).toEqual({ model: undefined, notices: [] })
      expect((yield* routed({ options: { ...pair, enabled: false } })).model).toBeUndefined()
    }),
  )

  it.scoped("keeps its model where the one wanted is served by nobody, and says so once a run", () =>
    Effect.gen(function* () {
      const env = { JEV_IMPLEMENTATION_MODEL: "claude-haiku-4-5" }
      const first = yield* routed({ options: pair, env })
      expect(first.model).toBe("script/strong")
      expect(first.notices).toHaveLength(1)
      expect(first.notices[0]?.message).toContain("ANTHROPIC_API_KEY")
      const edited = yield* routed({ options: pair, env, messages: [user, answer("script/strong", "edit")], turn: 2 })
      expect(edited).toEqual({ model: undefined, notices: [] })
      const unknown = yield* routed({ options: { planningModel: "no-such-model" } })
      expect(unknown.model).toBeUndefined()
      expect(unknown.notices[0]?.message).toContain("no-such-model")
    }),
  )

  it.scoped("is not told of a default that has no key", () =>
    Effect.gen(function* () {
      const [own = ""] = Object.keys(defaultPairs)
      expect(yield* routed({ model: own })).toEqual({ model: undefined, notices: [] })
    }),
  )
})
