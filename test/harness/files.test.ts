/**
 * Rules, Skills, Hooks, SlashCommands and TranscriptLogger in conversations: real actors, a store, a scripted model, and deaths.
 */
import { spawn } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { Effect, type Scope, Stream } from "effect"
import type { Entry } from "../../src/domain/entry.ts"
import { textOf } from "../../src/domain/message.ts"
import { promptOf } from "../../src/domain/prompt.ts"
import { SuperPi, type SuperPiService } from "../../src/super-pi.ts"
import { bundleProgram, type Program } from "../support/program.ts"
import { life } from "./files-life.ts"
import { type Project, projectWith } from "./plugin-support.ts"

const plugins = ["slash-commands", "hooks", "rules", "skills", "transcript-logger"]

const run = <A>(
  project: Project,
  rules: ReadonlyArray<unknown>,
  use: (superPi: SuperPiService) => Effect.Effect<A, unknown, Scope.Scope>,
) =>
  Effect.scoped(Effect.flatMap(SuperPi, use)).pipe(
    Effect.provide(
      SuperPi.layer({
        storage: "memory",
        models: { env: {}, model: "script/test", script: { rules } as never }, // the script's schema checks it
        defaults: { cwd: project.root, mode: "auto" },
        paths: { configDir: project.configDir, dataDir: project.dataDir },
        harness: "files",
        extraHarnesses: [{ id: "files", name: "F", description: "F", prompt: "F", plugins }],
      }),
    ),
  )

const messages = (entries: ReadonlyArray<Entry>) => entries.flatMap((entry) => entry.model)
const results = (entries: ReadonlyArray<Entry>): ReadonlyArray<string> =>
  messages(entries).flatMap((one) => (one.role === "tool" ? [textOf(one.content)] : []))
const inputs = (entries: ReadonlyArray<Entry>): ReadonlyArray<string> =>
  messages(entries).flatMap((one) => (one.role === "user" ? [textOf(one.content)] : []))

describe("in a conversation", () => {
  it.scopedLive("rules, skills and a goal are in the prompt, and stay there without being sent again", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({
        "AGENTS.md": "USE TABS",
        "lib/AGENTS.md": "NO DEPENDENCIES HERE",
        "lib/x.txt": "content",
        ".agents/skills/release/SKILL.md": "---\nname: release\ndescription: Makes a release\n---\nTAG FIRST\n",
      })
      const script = [
        {
          match: "ship",
          steps: [
            { tools: [{ name: "skill", args: { name: "release" } }] },
            { tools: [{ name: "read", args: { path: "lib/x.txt" } }] },
            { text: "shipped" },
          ],
        },
        { match: "", steps: [{ text: "ok" }] },
      ]
      const entries = yield* run(project, script, (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          yield* conversation.ask("hello")
          yield* conversation.ask("/goal ship version 2")
          yield* conversation.ask("hello again")
          return yield* conversation.transcript
        }),
      )
      const { sections } = promptOf(messages(entries))
      expect(sections.get("rules")).toContain("USE TABS")
      expect(sections.get("skills")).toContain("- release: Makes a release")
      expect(sections.get("goal")).toContain("ship version 2")
      expect(sections.get("nested_rules")).toContain("NO DEPENDENCIES HERE")
      expect(results(entries)[0]).toContain("TAG FIRST")
      const changes = messages(entries).flatMap((one) => (one.role === "system" ? one.sections : []))
      for (const name of ["rules", "skills", "goal", "nested_rules"]) {
        expect(changes.filter((section) => section.name === name)).toHaveLength(1)
      }
    }),
  )

  it.scopedLive("hooks block a call, note a result and make the model go on", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({
        "~config/hooks.json": JSON.stringify({
          PreToolUse: [{ matcher: "bash", command: "if grep -q forbidden; then echo 'not here' >&2; exit 2; fi" }],
          PostToolUse: [{ matcher: "ls", command: `echo '{"additionalContext": "REMEMBER"}'` }],
          Stop: [{ command: `if grep -q '"stop_hook_active":false'; then echo 'write tests' >&2; exit 2; fi` }],
        }),
      })
      const script = [
        {
          match: "^go$",
          steps: [
            { tools: [{ name: "bash", args: { command: "echo forbidden" } }] },
            { tools: [{ name: "bash", args: { command: "echo allowed" } }] },
            { tools: [{ name: "ls", args: {} }] },
            { text: "first answer" },
          ],
        },
        { match: "write tests", steps: [{ text: "second answer" }] },
      ]
      const { entries, text } = yield* run(project, script, (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          const settled = yield* conversation.ask("go")
          return { entries: yield* conversation.transcript, text: settled.text }
        }),
      )
      const [blocked, allowed, listed] = results(entries)
      expect(blocked).toContain("not here")
      expect(allowed).toContain("allowed")
      expect(listed).toContain("[hook] REMEMBER")
      expect(inputs(entries).at(-1)).toContain("write tests")
      expect(text).toBe("second answer")
    }),
  )

  it.scopedLive("commands change what it runs with, and what is wrong is told to who watches", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({
        ".agents/commands/greet.md": "Greet $1 warmly",
        ".agents/hooks.json": JSON.stringify({ Stop: [{ command: "touch ran" }] }),
      })
      const script = [{ match: "", steps: [{ text: "ok" }] }]
      const { entries, mode, notices } = yield* run(project, script, (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          const events = yield* Stream.runCollect(conversation.run("/greet Ada"))
          yield* conversation.ask("/plan it")
          const { mode } = yield* conversation.state
          const notices = [...events].flatMap((event) => (event.type === "notice" ? [event.message] : []))
          return { entries: yield* conversation.transcript, mode, notices }
        }),
      )
      expect(inputs(entries)).toEqual(["Greet Ada warmly", "Make a plan, and change nothing:\nit"])
      expect(mode).toBe("plan")
      expect(notices.filter((notice) => notice.includes("super-pi trust"))).toHaveLength(1)
      expect(existsSync(join(project.root, "ran"))).toBe(false)
    }),
  )

  it.scopedLive("the built-in harness for code carries them", () =>
    Effect.gen(function* () {
      const { code } = yield* Effect.promise(() => import("../../src/harness/builtin/code.ts"))
      expect(plugins.filter((plugin) => !code.plugins.includes(plugin))).toEqual([])
    }),
  )
})

describe("a node that is killed at any commit", () => {
  let program: Program
  beforeAll(async () => {
    program = await bundleProgram("test/harness/files-node.ts")
  })
  afterAll(() => program.remove())

  const dies = (database: string, base: string, commit: number): Promise<boolean> =>
    new Promise((resolve, reject) => {
      const child = spawn(process.execPath, [program.file, database, base, String(commit)], {
        stdio: ["ignore", "ignore", "inherit"],
      })
      child.on("error", reject)
      child.on("close", (_, signal) => resolve(signal === "SIGKILL"))
    })

  it.scopedLive(
    "leaves a transcript with every entry and the end of the run once",
    () =>
      Effect.gen(function* () {
        const placesOf = (project: Project) => {
          const base = join(project.root, "..")
          return { base, database: join(base, "data", "test.db") }
        }
        const check = (base: string, entries: ReadonlyArray<Entry>) => {
          const [file = ""] = readdirSync(join(base, "data", "transcripts"))
          const text = readFileSync(join(base, "data", "transcripts", file), "utf8")
          const lines = text
            .trimEnd()
            .split("\n")
            .map((line) => JSON.parse(line))
          expect(lines.flatMap((line) => (line.type === "entry" ? [line.id] : []))).toEqual(entries.map(({ id }) => id))
          expect(lines.filter((line) => line.type === "run")).toHaveLength(1)
        }
        const undisturbed = placesOf(yield* projectWith({ "AGENTS.md": "RULES" }))
        const { commits, entries } = yield* life(undisturbed)
        check(undisturbed.base, entries)
        let deaths = 0
        for (let commit = 1; commit <= commits; commit++) {
          const places = placesOf(yield* projectWith({ "AGENTS.md": "RULES" }))
          // How often a live document is flushed depends on the time: the last commits may be missing in a life.
          if (yield* Effect.promise(() => dies(places.database, places.base, commit))) deaths++
          const after = yield* life(places)
          expect(after.status).toBe("done")
          check(places.base, after.entries)
        }
        expect(deaths).toBeGreaterThan(commits / 2)
      }),
    300_000,
  )
})
