/**
 * Plugin SlashCommands: what each command becomes, custom ones, and what stays text.
 */
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import fc from "fast-check"
import { ExecutionMode } from "../../src/domain/document.ts"
import { text, textOf, type UserPart } from "../../src/domain/message.ts"
import { expandBuiltin } from "../../src/harness/plugins/slash-commands/builtin.ts"
import { expand, readTyped, splitWords, unescaped } from "../../src/harness/plugins/slash-commands/expand.ts"
import { goalSection, makeSlashCommands } from "../../src/harness/plugins/slash-commands.ts"
import { Models } from "../../src/models/model.ts"
import { makeModels } from "../../src/models/service.ts"
import { type Project, projectWith } from "./plugin-support.ts"

type Given = Parameters<Project["context"]>[1]
type Plugin = ReturnType<typeof makeSlashCommands>

const inputOf = (
  project: Project,
  content: string | ReadonlyArray<UserPart>,
  given: Given = {},
  plugin: Plugin = makeSlashCommands(),
) =>
  Effect.gen(function* () {
    const hook = plugin.hooks.onInput
    if (hook === undefined) return yield* Effect.dieMessage("no hook")
    const parts = typeof content === "string" ? [text(content)] : content
    const answer = yield* hook({ content: parts }, project.context(plugin, given))
    return {
      text: answer?.content === undefined ? null : textOf(answer.content),
      agent: answer?.agent ?? null,
      content: answer?.content,
      settles: answer?.settles ?? null,
    }
  })

describe("the commands that come with Super-Pi", () => {
  it.scoped("change what the conversation runs with, and leave their words", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const cases = [
        ["/plan move the parser", { mode: "plan" }, "Make a plan, and change nothing:\nmove the parser"],
        ["/PLAN", { mode: "plan" }, "Make a plan for what we are working on, and change nothing."],
        ["/boost why is it slow?", { boost: true }, "why is it slow?"],
        ["/model openai/gpt-5 and now?", { model: "openai/gpt-5" }, "and now?"],
        ["/model flash", { model: "flash" }, "The model is now flash."],
        ["/mode plan\nlook first", { mode: "plan" }, "look first"],
        [
          "/goal all tests pass",
          { goal: "all tests pass" },
          "Work towards this goal until it is reached, and say when it is:\nall tests pass",
        ],
        ["/goal clear", { goal: null }, "The goal does not hold any more."],
      ] as const
      for (const [typed, agent, said] of cases) {
        expect(yield* inputOf(project, typed)).toMatchObject({ text: said, agent })
      }
      expect(project.notices).toEqual([])
    }),
  )

  it.scoped("ask no model where they only change something, and nothing comes with them", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const image: UserPart = { type: "image", mediaType: "image/png", data: "AA==" }
      const settles = (content: string | ReadonlyArray<UserPart>) =>
        Effect.map(inputOf(project, content), (made) => made.settles)
      expect(yield* settles("/mode plan")).toBe("The mode is now plan.")
      expect(yield* settles("/model flash")).toBe("The model is now flash.")
      expect(yield* settles("/goal clear")).toBe("The goal does not hold any more.")
      for (const asks of ["/mode plan look", "/model flash and now?", "/plan", "/boost", "/goal x", "/mode pln"]) {
        expect(yield* settles(asks)).toBeNull()
      }
      expect(yield* settles([text("/mode plan"), image])).toBeNull()
    }),
  )

  it.scoped("stay text where they name a model that nobody serves, or whose provider has no key", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const models = makeModels({ env: {}, model: "mock/echo" })
      const asked = (typed: string) => Effect.provideService(inputOf(project, typed), Models, models)
      expect(yield* asked("/model mock/echo")).toMatchObject({ agent: { model: "mock/echo" } })
      for (const typed of ["/model nothing/at-all", "/model anthropic/claude-sonnet-4-5 go on"]) {
        expect(yield* asked(typed)).toMatchObject({ text: null, agent: null, settles: null })
      }
      expect(project.notices).toHaveLength(2)
      expect(project.notices[0]?.message).toContain('/model: model "nothing/at-all" is served by no provider')
      expect(project.notices[1]?.message).toContain("the input stays as it is")
    }),
  )

  it.scoped("keep what comes with the text, for example an image", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const image: UserPart = { type: "image", mediaType: "image/png", data: "AA==" }
      const { content } = yield* inputOf(project, [text("/plan this"), image])
      expect(content?.[1]).toEqual(image)
    }),
  )

  it.scoped("stay text where they are wrong, and say what was expected", () =>
    Effect.gen(function* () {
      const cases = [
        [
          "/mode pln",
          '/mode: expected one of plan, accept-edits, auto (the nearest is "plan"), got "pln"; the input stays as it is',
        ],
        ["/model", "/model: expected the name of a model, got nothing; the input stays as it is"],
        ["/goal", "/goal: expected a text, got nothing, and there is no goal yet; the input stays as it is"],
      ] as const
      for (const [typed, message] of cases) {
        const project = yield* projectWith()
        expect(yield* inputOf(project, typed)).toMatchObject({ text: null, agent: null })
        expect(project.notices).toEqual([{ level: "warning", message }])
      }
    }),
  )

  it("never raise the mode, whatever is typed, unless the harness says so", () => {
    const modes = fc.constantFrom(...ExecutionMode.literals)
    const rank = (mode: ExecutionMode) => ExecutionMode.literals.indexOf(mode)
    const typed = fc.oneof(
      fc.tuple(fc.constantFrom("plan", "mode", "goal", "boost", "model"), fc.oneof(modes, fc.string())),
      fc.tuple(fc.constant("mode"), modes),
    )
    fc.assert(
      fc.property(typed, modes, ([name, rest], mode) => {
        const made = expandBuiltin({ name, rest }, { mode, agent: {}, raiseMode: false })
        if (made?.type === "expanded" && made.agent.mode !== undefined) {
          expect(rank(made.agent.mode)).toBeLessThanOrEqual(rank(mode))
        }
      }),
      { numRuns: 1_000 },
    )
    const raised = expandBuiltin({ name: "mode", rest: "auto" }, { mode: "plan", agent: {}, raiseMode: true })
    expect(raised).toMatchObject({ type: "expanded", agent: { mode: "auto" } })
  })

  it.scoped("are nothing in a subagent: a model wrote its input", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ ".agents/commands/x.md": "X" })
      for (const typed of ["/mode plan", "/x", "//x"]) {
        expect(yield* inputOf(project, typed, { depth: 1 })).toMatchObject({ text: null, agent: null })
      }
    }),
  )
})

describe("boost and goal", () => {
  it.scoped("a boost is for the run that its input began: the next input ends it", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const plugin = makeSlashCommands()
      expect((yield* inputOf(project, "/boost x", { agent: { boost: true } })).agent).toEqual({ boost: true })
      expect((yield* inputOf(project, "thanks", { agent: { boost: true } })).agent).toEqual({ boost: false })
      expect((yield* inputOf(project, "/plan y", { agent: { boost: true } })).agent).toEqual({
        boost: false,
        mode: "plan",
      })
      const request = { model: "m", messages: [], sessionId: "s" }
      const hook = plugin.hooks.beforeProviderRequest
      const asked = (agent: { boost?: boolean }) =>
        hook === undefined ? Effect.dieMessage("no hook") : hook(request, project.context(plugin, { agent }))
      expect(yield* asked({ boost: true })).toEqual({ ...request, effort: "max" })
      expect(yield* asked({})).toBeUndefined()
    }),
  )

  it.scoped("a goal is a section of every prompt until it is cleared, and /goal goes on with it", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const plugin = makeSlashCommands()
      const hook = plugin.hooks.beforeRequest
      if (hook === undefined) return yield* Effect.dieMessage("no hook")
      const request = { messages: [], sections: {}, tools: [], model: "m", turn: 1 }
      const sectionOf = (goal: string | null) =>
        Effect.map(hook(request, project.context(plugin, { agent: { goal } })), (said) => said?.sections?.[goalSection])
      expect(yield* sectionOf("ship it")).toContain("ship it")
      expect(yield* sectionOf(null)).toBeNull()
      expect((yield* inputOf(project, "/goal", { agent: { goal: "ship it" } })).text).toBe(
        "Go on towards the goal: ship it",
      )
    }),
  )

  it.scoped("the boost's model is an option", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const plugin = makeSlashCommands()
      const hook = plugin.hooks.beforeRequest
      if (hook === undefined) return yield* Effect.dieMessage("no hook")
      const request = { messages: [], sections: {}, tools: [], model: "m", turn: 1 }
      const options = { boostModel: "big" }
      expect(yield* hook(request, project.context(plugin, { options, agent: { boost: true } }))).toMatchObject({
        model: "big",
      })
      expect(yield* hook(request, project.context(plugin, { options }))).not.toHaveProperty("model")
    }),
  )
})

describe("custom commands", () => {
  it.scoped("come from the project and the person, nearest first, and take arguments", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({
        ".agents/commands/review.md": "---\ndescription: Reviews\nmodel: big\n---\nReview $1 for $2. All: $ARGUMENTS\n",
        ".agents/commands/git/log.md": "Show the log",
        "~config/commands/review.md": "PERSON'S",
        "~config/commands/mine.md": "MINE",
      })
      const plugin = makeSlashCommands()
      expect(yield* inputOf(project, '/review src/a.ts "race conditions"', {}, plugin)).toMatchObject({
        text: 'Review src/a.ts for race conditions. All: src/a.ts "race conditions"',
        agent: { model: "big" },
      })
      expect((yield* inputOf(project, "/git:log", {}, plugin)).text).toBe("Show the log")
      expect((yield* inputOf(project, "/mine now", {}, plugin)).text).toBe("MINE\n\nArguments: now")
      expect(project.notices).toEqual([
        {
          level: "warning",
          message: `commands: ${project.configDir}/commands/review.md: /review is ${project.root}/.agents/commands/review.md; this one is not used`,
        },
      ])
    }),
  )

  it.scoped("cannot take the name of a built-in one, and are read anew when they change", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ ".agents/commands/plan.md": "NOT THIS", ".agents/commands/x.md": "ONE" })
      const plugin = makeSlashCommands()
      expect((yield* inputOf(project, "/plan x", {}, plugin)).text).not.toContain("NOT THIS")
      expect((yield* inputOf(project, "/x", {}, plugin)).text).toBe("ONE")
      expect(project.notices[0]?.message).toContain("/plan is a command that comes with Super-Pi")
      yield* Effect.promise(() => writeFile(join(project.root, ".agents/commands/x.md"), "ANOTHER"))
      expect((yield* inputOf(project, "/x", {}, plugin)).text).toBe("ANOTHER")
    }),
  )

  it.scoped("that are broken are reported once, and the input stays text", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({
        ".agents/commands/empty.md": "---\ndescription: x\n---\n",
        ".agents/commands/bad.md": "---\nmodel: 3\n---\nX",
        ".agents/commands/a b.md": "X",
      })
      const plugin = makeSlashCommands()
      for (const typed of ["/empty", "/bad", "/empty"]) {
        expect((yield* inputOf(project, typed, {}, plugin)).text).toBeNull()
      }
      const place = `commands: ${project.root}/.agents/commands`
      expect(project.notices.map(({ message }) => message)).toEqual([
        `${place}/a b.md: name: expected letters, digits, _ and -, got "a b"; the command is skipped`,
        `${place}/empty.md: expected a text, got nothing; the input stays as it is`,
        `${place}/bad.md: model: expected the name of a model, got 3; the input stays as it is`,
      ])
    }),
  )

  it("put in every argument once and never look at it again", () => {
    expect(expand("$1 $2 $ARGUMENTS", "$2 b")).toBe("$2 b $2 b")
    expect(expand("\\$1 costs $1", "x")).toBe("$1 costs x")
    expect(expand("$10 $ARGUMENTSX", "a")).toBe("$10 $ARGUMENTSX\n\nArguments: a")
    expect(expand("[$3]", "a b")).toBe("[]")
    fc.assert(
      fc.property(fc.string(), (given) => {
        expect(expand("<$ARGUMENTS>", given)).toBe(`<${given}>`)
      }),
    )
  })

  it("split words as a shell does", () => {
    expect(splitWords(`a "b c" 'd "e"' f\\ g ""`)).toEqual(["a", "b c", 'd "e"', "f g", ""])
    fc.assert(
      fc.property(fc.array(fc.string()), (words) => {
        const quoted = words.map((word) => `'${word.replace(/'/g, `'\\''`)}'`).join(" ")
        expect(splitWords(quoted)).toEqual(words)
      }),
      { numRuns: 500 },
    )
  })
})

describe("what stays text", () => {
  it.scoped("paths, unknown names and slashes further in; a near miss is hinted at", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      for (const typed of [
        "/usr/bin/env is missing",
        "/etc/hosts",
        "/xyzzy do",
        "please /plan it",
        "/",
        "/ plan",
        "",
      ]) {
        expect(yield* inputOf(project, typed)).toMatchObject({ text: null, agent: null })
      }
      expect(project.notices).toEqual([])
      expect((yield* inputOf(project, "/plna it")).text).toBeNull()
      expect(project.notices).toEqual([
        { level: "info", message: "/plna is no command and stays text; did you mean /plan?" },
      ])
    }),
  )

  it.scoped("an escaped command loses its escape and nothing else", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      expect(yield* inputOf(project, "//plan is a command")).toMatchObject({ text: "/plan is a command", agent: null })
      expect(yield* inputOf(project, "\\/plan is a command")).toMatchObject({ text: "/plan is a command" })
      expect(yield* inputOf(project, "// a comment")).toMatchObject({ text: null })
      expect(unescaped("//server/share")).toBeNull()
    }),
  )

  it("no text breaks it, and only what begins with a slash and a letter is a command", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (given) => {
        const typed = readTyped(given)
        if (typed !== null) expect(given.trim()).toMatch(/^\/[A-Za-z]/)
      }),
      { numRuns: 1_000 },
    )
  })

  it.effect("unknown options are refused", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      expect(
        Either.isRight(Either.try(() => project.context(makeSlashCommands(), { options: { boostEffort: "huge" } }))),
      ).toBe(false)
    }).pipe(Effect.scoped),
  )
})
