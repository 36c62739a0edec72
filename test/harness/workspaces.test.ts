/**
 * Workspaces: what each kind offers, where its tools act, and what becomes of scratch directories. With real conversations and the scripted
 * model.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import type { AgentDocument } from "../../src/domain/document.ts"
import type { Entry } from "../../src/domain/entry.ts"
import { textOf } from "../../src/domain/message.ts"
import type { WorkspaceSpec } from "../../src/domain/workspace-spec.ts"
import { type ModelsOption, SuperPi } from "../../src/index.ts"
import { BuiltinTools } from "../../src/tools/builtin-tools.ts"
import type { Tool } from "../../src/tools/tool.ts"
import { serves } from "../../src/tools/workspace-kinds.ts"
import { keptScratch, scratchPath, sweepScratch } from "../../src/tools/workspace-scratch.ts"
import { temporaryDirectory, writeFiles } from "../tools/support.ts"

const models = {
  env: {},
  script: {
    rules: [
      {
        match: "write",
        steps: [
          { tools: [{ name: "write", args: { path: "a.txt", content: "mine" } }] },
          { tools: [{ name: "bash", args: { command: "cat a.txt; pwd" } }] },
          { text: "done" },
        ],
      },
      { match: "look", steps: [{ tools: [{ name: "bash", args: { command: "ls" } }] }, { text: "done" }] },
      {
        match: "long",
        steps: [
          { tools: [{ name: "write", args: { path: "a.txt", content: "mine" } }] },
          { tools: [{ name: "bash", args: { command: "cat a.txt; sleep 600" } }] },
          { tools: [{ name: "bash", args: { command: "ls" } }] },
          { tools: [{ name: "bash", args: { command: "ls" } }] },
          { text: "done" },
        ],
      },
      {
        match: "both",
        steps: [
          {
            tools: [
              { name: "write", args: { path: "a", content: "1" } },
              { name: "write", args: { path: "b", content: "2" } },
            ],
          },
          { tools: [{ name: "ls", args: {} }] },
          { text: "done" },
        ],
      },
      { match: "", steps: [{ text: "hello" }] },
    ],
  },
} satisfies ModelsOption

const resultsOf = (entries: ReadonlyArray<Entry>): ReadonlyArray<string> =>
  entries.flatMap(({ model }) => model.flatMap((message) => (message.role === "tool" ? [textOf(message.content)] : [])))

/** What the tools say that a conversation in `workspace` calls for an input. */
const asked = (agent: AgentDocument, inputs: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const conversation = yield* (yield* SuperPi).open({ agent })
    for (const input of inputs) yield* conversation.ask(input)
    return { results: resultsOf(yield* conversation.transcript), state: yield* conversation.state }
  })

const inside = <A, E>(cwd: string, program: Effect.Effect<A, E, SuperPi>) =>
  Effect.provide(program, SuperPi.layer({ storage: "memory", models, defaults: { model: "script/test", cwd } }))

describe("what a workspace can serve", () => {
  const tool = (name: string, effects: Tool["effects"]) => ({
    effects,
    spec: { name, description: "", parameters: {} },
  })
  const kinds: Readonly<Record<string, WorkspaceSpec>> = {
    local: { kind: "local" },
    offline: { kind: "local", network: false },
    none: { kind: "none" },
    nothing: { kind: "none", network: false },
    scratch: { kind: "scratch" },
  }
  const table: ReadonlyArray<readonly [name: string, effects: Tool["effects"], kinds: ReadonlyArray<string>]> = [
    ["read", ["read"], ["local", "offline", "scratch"]],
    ["grep", ["read"], ["local", "offline", "scratch"]],
    ["write", ["fs_write"], ["local", "offline", "scratch"]],
    ["bash", ["exec"], ["local", "offline", "scratch"]],
    ["artifact_put", ["read", "state_write"], ["local", "offline", "none", "nothing", "scratch"]],
    ["artifact_get", ["read"], ["local", "offline", "none", "nothing", "scratch"]],
    ["fetch", ["net_read"], ["local", "none", "scratch"]],
    ["publish", ["net_write"], ["local", "none", "scratch"]],
    ["unstated", [], ["local", "scratch"]],
    ["todo", ["state_write"], ["local", "offline", "none", "nothing", "scratch"]],
  ]
  for (const [name, effects, served] of table) {
    it(`${name} (${effects.join(", ") || "no effects stated"}) is served by ${served.join(", ")}`, () => {
      const found = Object.keys(kinds).filter((kind) => serves(kinds[kind] ?? { kind: "none" }, tool(name, effects)))
      expect(found).toEqual(served)
    })
  }

  it("every built-in tool is served by local and shared", () => {
    for (const one of BuiltinTools.list) {
      expect(serves({ kind: "local" }, one)).toBe(true)
      expect(serves({ kind: "shared", root: "/x" }, one)).toBe(true)
    }
  })
})

describe("a conversation", () => {
  it.scopedLive("in a shared workspace acts in its root and not outside of it", () =>
    Effect.gen(function* () {
      const [cwd, root] = [yield* temporaryDirectory, yield* temporaryDirectory]
      yield* writeFiles(cwd, { "secret.txt": "secret" })
      const agent: AgentDocument = { workspace: { kind: "shared", root } }
      const { results, state } = yield* inside(cwd, asked(agent, ["write", "look"]))
      expect(results[1]).toContain(`mine${root}`)
      expect(readFileSync(join(root, "a.txt"), "utf8")).toBe("mine")
      expect(state.cwd).toBe(root)
      expect(existsSync(join(cwd, "a.txt"))).toBe(false)
    }),
  )

  it.scopedLive("without files is not offered file tools and commands, and refused when it calls them", () =>
    Effect.gen(function* () {
      const cwd = yield* temporaryDirectory
      const { results } = yield* inside(cwd, asked({ workspace: { kind: "none" } }, ["write"]))
      expect(results[0]).toContain('There is no tool "write"; the tools are artifact_put, artifact_get, artifact_list.')
      expect(readdirSync(cwd)).toEqual([])
    }),
  )

  it.scopedLive("of a root that is not there, or not named, is an error that says so", () =>
    Effect.gen(function* () {
      const cwd = yield* temporaryDirectory
      const open = (workspace: WorkspaceSpec) =>
        inside(
          cwd,
          Effect.flatMap(SuperPi, (pi) => Effect.flip(pi.open({ agent: { workspace } }))),
        )
      expect((yield* open({ kind: "shared", root: join(cwd, "missing") })).message).toContain(
        "agent.workspace.root: expected",
      )
      expect((yield* open({ kind: "shared", root: "here" })).message).toContain("the absolute path of a directory")
      expect((yield* open({ kind: "scratch", base: join(cwd, "missing") })).message).toContain("agent.workspace.base")
    }),
  )

  it.scopedLive("with knowledge acts in the roots of the settings, and in no other place", () =>
    Effect.gen(function* () {
      const [cwd, one, two] = [yield* temporaryDirectory, yield* temporaryDirectory, yield* temporaryDirectory]
      yield* writeFiles(one, { "n.md": "first" })
      yield* writeFiles(two, { "m.md": "second" })
      yield* writeFiles(cwd, { "secret.txt": "secret" })
      const agent: AgentDocument = { workspace: { kind: "knowledge" } }
      const reads = ["n.md", join(two, "m.md"), join(cwd, "secret.txt")]
      const reading = (path = "") => [{ tools: [{ name: "read", args: { path } }] }, { text: "done" }] as const
      const rules = reads.map((path, at) => ({ match: `ask ${at}`, steps: reading(path) }))
      const layer = SuperPi.layer({
        storage: "memory",
        models: { env: {}, script: { rules } },
        defaults: { model: "script/test", cwd, workspaces: { knowledgePaths: [one, two] } },
      })
      const { results } = yield* Effect.provide(asked(agent, ["ask 0", "ask 1", "ask 2"]), layer)
      expect(results[0]).toContain("first")
      expect(results[1]).toContain("second")
      expect(results[2]).toContain("expected a path inside the workspace")
    }),
  )
})

describe("a scratch directory", () => {
  const scratch = (base: string, lifetime?: "task" | "conversation"): AgentDocument => ({
    workspace: { kind: "scratch", base, ...(lifetime === undefined ? {} : { lifetime }) },
  })

  it.scopedLive("is made for a task, keeps its files from turn to turn, and goes with the task", () =>
    Effect.gen(function* () {
      const base = yield* temporaryDirectory
      const { results } = yield* inside(base, asked(scratch(base), ["write", "look"]))
      expect(results[1]).toContain("mine")
      expect(results[1]).not.toContain("Note:")
      expect(results[2]).toBe("(no output)")
      expect(readdirSync(base)).toEqual([])
    }),
  )

  it.scopedLive("is one for calls that begin at once", () =>
    Effect.gen(function* () {
      const base = yield* temporaryDirectory
      const { results } = yield* inside(base, asked(scratch(base), ["both"]))
      expect(results[2]).toBe("a (1 byte)\nb (1 byte)")
    }),
  )

  it.scopedLive("of a task that was restarted is a new, empty one, and the first result says so", () =>
    Effect.gen(function* () {
      const base = yield* temporaryDirectory
      const database = join(yield* temporaryDirectory, "app.db")
      const life = SuperPi.layer({
        storage: { path: database, serve: false },
        models,
        defaults: { model: "script/test", cwd: base },
      })
      const id = yield* Effect.gen(function* () {
        const conversation = yield* (yield* SuperPi).open({ agent: scratch(base) })
        const written = conversation
          .run("long")
          .pipe(Stream.takeUntil((event) => event.type === "tool_output" && event.delta.includes("mine")))
        yield* Stream.runDrain(written)
        return conversation.id
      }).pipe(Effect.provide(life))
      const results = yield* Effect.gen(function* () {
        const conversation = (yield* SuperPi).conversation(id)
        const [first] = (yield* conversation.transcript).filter(({ kind }) => kind === "pi.user")
        expect(first).toBeDefined()
        yield* Stream.runDrain(
          conversation.events.pipe(
            Stream.takeUntil(
              (event) =>
                (event.type === "state_changed" && event.to === "idle") ||
                (event.type === "snapshot" && event.session.state === "idle"),
            ),
          ),
        )
        return resultsOf(yield* conversation.transcript)
      }).pipe(Effect.provide(life))
      expect(results[1]).toContain("interrupted")
      expect(results[2]).toContain("Note: this is a new, empty scratch directory.")
      expect(results[2]).not.toContain("a.txt")
      expect(results[3]).toBe("(no output)")
    }),
  )

  it.scopedLive("of a conversation outlives its tasks", () =>
    Effect.gen(function* () {
      const base = yield* temporaryDirectory
      const { results } = yield* inside(base, asked(scratch(base, "conversation"), ["write", "look"]))
      expect(results[2]).toContain("a.txt")
      expect(readdirSync(base)).toHaveLength(1)
    }),
  )

  it.scopedLive("that nobody used for longer than its time is swept, and nothing else in the base", () =>
    Effect.gen(function* () {
      const base = yield* temporaryDirectory
      const now = Date.now()
      yield* Effect.promise(async () => {
        const [old, young] = [scratchPath(base, "d", 1), scratchPath(base, "d", 2)]
        await keptScratch(old)
        await keptScratch(young)
        mkdirSync(join(base, "other"))
        const long = new Date(now - 25 * 3600_000)
        for (const path of [old, join(base, "other")]) utimesSync(path, long, long)
        expect(await sweepScratch(base, 24, now)).toBe(1)
        expect(readdirSync(base).sort()).toEqual(["other", "super-pi-scratch-d-2"])
      })
    }),
  )
})
