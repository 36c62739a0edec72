/**
 * Plugin Hooks: the file, trust, what commands get and answer, and how they end.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, readFileSync, watch } from "node:fs"
import { readFile, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import fc from "fast-check"
import type { Json, JsonObject } from "../../src/domain/json.ts"
import { text, textOf } from "../../src/domain/message.ts"
import { answerOf, type HookAnswer, strictest } from "../../src/harness/plugins/hooks/answer.ts"
import { hooksFor, readHooks } from "../../src/harness/plugins/hooks/config.ts"
import { type HookRun, runHook } from "../../src/harness/plugins/hooks/run.ts"
import { changeTrust, hashOf, readTrust, trustFile } from "../../src/harness/plugins/hooks/trust.ts"
import { hooksSection, makeHooks } from "../../src/harness/plugins/hooks.ts"
import { hasLivingMembers } from "../../src/tools/living-members.ts"
import { bundleProgram } from "../support/program.ts"
import { type Project, projectWith } from "./plugin-support.ts"

type Given = Parameters<Project["context"]>[1]
type Plugin = ReturnType<typeof makeHooks>

const file = (events: Json): string => JSON.stringify({ hooks: events })
const on = (command: string, matcher?: string): Json => [
  { ...(matcher === undefined ? {} : { matcher }), hooks: [{ type: "command", command }] },
]
/** A command that answers this. */
const answering = (value: Json): string => `cat >/dev/null; printf '%s' '${JSON.stringify(value)}'`

const hookOf = <K extends keyof Plugin["hooks"]>(plugin: Plugin, name: K) => {
  const hook = plugin.hooks[name]
  if (hook === undefined) throw new Error(`no hook ${name}`)
  return hook as NonNullable<Plugin["hooks"][K]>
}

const callOf = (name = "bash", args: JsonObject = { command: "ls" }) => ({
  id: "c1",
  name,
  args,
  effects: ["exec"] as const,
})

const judge = (project: Project, call = callOf(), given: Given = {}, plugin = makeHooks()) =>
  hookOf(plugin, "beforeTool")(call, project.context(plugin, given))

const observe = (project: Project, plugin: Plugin, output = "OUTPUT") =>
  Effect.map(hookOf(plugin, "afterTool")(callOf(), { output: [text(output)] }, project.context(plugin)), (result) =>
    result === undefined ? null : textOf(result.output),
  )

const session = (project: Project, plugin: Plugin, turn = 1, given: Given = {}) =>
  Effect.map(
    hookOf(plugin, "beforeRequest")(
      { messages: [], sections: {}, tools: [], model: "script/test", turn },
      project.context(plugin, given),
    ),
    (answer) => answer?.sections?.[hooksSection] ?? null,
  )

const stop = (project: Project, plugin: Plugin, given: Given = {}) =>
  hookOf(plugin, "onYield")({ text: "done", entry: 1 as never /* an entry id */ }, project.context(plugin, given))

/** With a hooks file of the person. */
const withHooks = (events: Json, more: Readonly<Record<string, string>> = {}) =>
  projectWith({ "~config/hooks.json": file(events), ...more })

describe("the file", () => {
  it("says what is wrong with each entry, and keeps the others", () => {
    const { faults, hooks } = readHooks(
      {
        hooks: {
          PreTooluse: [],
          PreToolUse: [
            { matcher: "bash", hooks: [{ command: "good" }, { command: "" }, { type: "prompt", command: "x" }] },
            { matcher: "(", hooks: [{ command: "never" }] },
            { matcher: 3, hooks: [] },
            { command: "short form", timeout: 5 },
            { hooks: [{ command: "slow", timeout: 601 }] },
            7,
          ],
          Stop: "x",
        },
      },
      "hooks.json",
    )
    expect(hooks.map((hook) => [hook.command, hook.timeoutMs])).toEqual([
      ["good", null],
      ["short form", 5_000],
    ])
    expect(faults).toEqual([
      'PreTooluse: expected one of SessionStart, PreToolUse, PostToolUse, Stop (the nearest is "PreToolUse"), got an event that is not supported',
      'PreToolUse[0].hooks[1].command: expected a shell command, got ""',
      'PreToolUse[0].hooks[2].type: expected "command", got "prompt"',
      expect.stringMatching(/^PreToolUse\[1\]\.matcher: expected a tool's name or a regular expression .*, got "\("/),
      expect.stringMatching(/^PreToolUse\[2\]\.matcher: expected .*, got 3$/),
      "PreToolUse[4].hooks[0].timeout: expected seconds above 0, at most 600, got 601",
      'PreToolUse[5]: expected an object with "hooks", got 7',
      'Stop: expected a list, got "x"',
    ])
  })

  it("never breaks, whatever it holds", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        readHooks(value, "f")
        readHooks({ hooks: { PreToolUse: value } }, "f")
        readHooks({ PreToolUse: [value] }, "f")
      }),
      { numRuns: 1_000 },
    )
  })

  it("matches a tool's whole name, in any case, by name, alternatives or expression", () => {
    const matches = (matcher: string, tool: string) =>
      hooksFor(readHooks({ PreToolUse: [{ matcher, command: "c" }] }, "f").hooks, "PreToolUse", tool).length === 1
    expect([matches("Bash", "bash"), matches("edit|write", "write"), matches("mcp__.*", "mcp__x__y")]).toEqual([
      true,
      true,
      true,
    ])
    expect([matches("*", "bash"), matches("", "bash")]).toEqual([true, true])
    expect([matches("ba", "bash"), matches("ash", "bash"), matches("a|b", "bash")]).toEqual([false, false, false])
  })

  it.scoped("that is broken is reported once and skipped", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ "~config/hooks.json": '{"hooks": {', ".agents/hooks.json/": "" })
      const plugin = makeHooks()
      expect(yield* judge(project, callOf(), {}, plugin)).toBeUndefined()
      expect(yield* judge(project, callOf(), {}, plugin)).toBeUndefined()
      expect(project.notices.map(({ message }) => message)).toEqual([
        `hooks: ${project.root}/.agents/hooks.json: expected a file, got a directory; the file is skipped`,
        expect.stringMatching(/^hooks: .*config\/hooks\.json: not JSON \(.*\); it is skipped$/),
      ])
    }),
  )
})

describe("trust", () => {
  const content = file({ PreToolUse: on(answering({ decision: "deny", reason: "no" })) })

  it.scoped("hooks of a project do not run before a person has approved the file, nor after it has changed", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ ".agents/hooks.json": content })
      const path = join(project.root, ".agents/hooks.json")
      const plugin = makeHooks()
      expect(yield* judge(project, callOf(), {}, plugin)).toBeUndefined()
      expect(yield* judge(project, callOf(), {}, plugin)).toBeUndefined()
      expect(project.notices.map(({ message }) => message)).toEqual([
        `hooks: ${path}: it belongs to the project and was not approved; its hooks do not run. See them and approve them with: super-pi trust`,
      ])
      yield* Effect.promise(() => changeTrust(project.dataDir, new Map([[path, hashOf(content)]])))
      expect(yield* judge(project, callOf(), {}, plugin)).toMatchObject({ type: "block", reason: "no" })
      yield* Effect.promise(() => writeFile(path, `${content}\n`))
      expect(yield* judge(project, callOf(), {}, plugin)).toBeUndefined()
      expect(project.notices.at(-1)?.message).toContain("it has changed since it was approved")
    }),
  )

  it.scoped("a harness may trust a file by its hash", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ ".super-pi/hooks.json": content })
      const options = { trusted: [hashOf(content)] }
      expect(yield* judge(project, callOf(), { options })).toMatchObject({ type: "block" })
    }),
  )

  it.scoped("is kept for its owner only, by path; what is damaged trusts nothing", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const change = (entries: ReadonlyArray<readonly [string, string | null]>) =>
        Effect.promise(() => changeTrust(project.dataDir, new Map(entries)))
      yield* change([
        ["/a", "sha256:1"],
        ["/b", "sha256:2"],
      ])
      yield* change([["/a", null]])
      const path = trustFile(project.dataDir)
      expect([...readTrust(yield* Effect.promise(() => readFile(path, "utf8")))]).toEqual([["/b", "sha256:2"]])
      expect((yield* Effect.promise(() => stat(path))).mode & 0o777).toBe(0o600)
      for (const damaged of ["", "[", "[]", '{"/a": 1}']) expect(readTrust(damaged).size).toBe(0)
    }),
  )
})

describe("before a call", () => {
  it.scoped("allow, deny and ask are the call's decision, in both ways of writing", () =>
    Effect.gen(function* () {
      const cases: ReadonlyArray<readonly [Json, JsonObject | undefined]> = [
        [{ decision: "allow" }, { type: "allow" }],
        [{ decision: "approve" }, { type: "allow" }],
        [
          { decision: "deny", reason: "R" },
          { type: "block", reason: "R" },
        ],
        [
          { decision: "block", reason: "R" },
          { type: "block", reason: "R" },
        ],
        [
          { decision: "ask", reason: "R" },
          { type: "ask", reason: "R" },
        ],
        [
          { continue: false, stopReason: "S" },
          { type: "block", reason: "S" },
        ],
        [
          { hookSpecificOutput: { permissionDecision: "deny", permissionDecisionReason: "P" } },
          { type: "block", reason: "P" },
        ],
        [{ hookSpecificOutput: { updatedInput: { command: "pwd" } } }, { type: "rewrite", args: { command: "pwd" } }],
        [{ hookSpecificOutput: { updatedInput: { command: "ls" } } }, undefined],
        [{}, undefined],
      ]
      for (const [answer, decision] of cases) {
        const project = yield* withHooks({ PreToolUse: on(answering(answer)) })
        const made = yield* judge(project)
        if (decision === undefined) expect(made).toBeUndefined()
        else expect(made).toMatchObject(decision)
      }
    }),
  )

  it.scoped("exit code 2 refuses with what it says on stderr; other codes are reported and refuse nothing", () =>
    Effect.gen(function* () {
      const refusing = yield* withHooks({ PreToolUse: on("echo not that >&2; exit 2") })
      expect(yield* judge(refusing)).toMatchObject({ type: "block", reason: "not that" })
      const failing = yield* withHooks({ PreToolUse: on("echo oops >&2; exit 3") })
      expect(yield* judge(failing)).toBeUndefined()
      expect(failing.notices[0]?.message).toMatch(/exit code 3: oops$/)
    }),
  )

  it.scoped("a hook that does not answer blocks the call", () =>
    Effect.gen(function* () {
      const cases: ReadonlyArray<readonly [string, RegExp]> = [
        ["no-such-command-here", /could not be run \(exit code 127\)/],
        ["kill -KILL $$", /a signal ended it/],
        ["echo '{ broken'", /begins with \{ and is not JSON/],
        [`echo '{"decision": "denny"}'`, /expected allow, deny or ask \(the nearest is "deny"\), got "denny"/],
        [`printf '{"reason": "%070000d"}' 1`, /longer than/],
      ]
      for (const [command, reason] of cases) {
        const project = yield* withHooks({ PreToolUse: on(command) })
        expect(yield* judge(project)).toMatchObject({ type: "block", reason: expect.stringMatching(reason) })
      }
      const slow = yield* withHooks({ PreToolUse: on("sleep 600") })
      const decision = yield* judge(slow, callOf(), { options: { timeoutMs: 50 } })
      expect(decision).toMatchObject({ type: "block", reason: expect.stringMatching(/did not end in time/) })
    }),
  )

  it.scoped("of several hooks the strictest counts; one for another tool does not run", () =>
    Effect.gen(function* () {
      const project = yield* withHooks({
        PreToolUse: [
          {
            hooks: [
              { command: answering({ decision: "allow" }) },
              { command: answering({ decision: "ask", reason: "A" }) },
            ],
          },
          { matcher: "edit", hooks: [{ command: answering({ decision: "deny" }) }] },
        ],
      })
      expect(yield* judge(project)).toMatchObject({ type: "ask", reason: "A" })
      expect(yield* judge(project, callOf("edit"))).toMatchObject({ type: "block" })
    }),
  )

  it("never loosens by one more answer", () => {
    const rank = { deny: 3, ask: 2, allow: 1 } as const
    const answer = fc.constantFrom("allow", "deny", "ask", null).map(
      (decision): HookAnswer => ({
        decision,
        reason: null,
        context: null,
        input: null,
        failure: null,
        warning: null,
      }),
    )
    const of = (answers: ReadonlyArray<HookAnswer>) => rank[strictest(answers) ?? "allow"]
    fc.assert(
      fc.property(fc.array(answer), answer, (answers, more) => {
        expect(of([...answers, more])).toBeGreaterThanOrEqual(of(answers))
      }),
    )
  })

  it.scoped("where there is no workspace, hooks of the person run in their own directory", () =>
    Effect.gen(function* () {
      const project = yield* withHooks({ PreToolUse: on("pwd >&2; exit 2") })
      const decision = yield* judge(project, callOf(), { cwd: "not/there" })
      expect(decision).toMatchObject({ type: "block", reason: project.configDir })
    }),
  )

  it.scoped("the command gets the call on stdin, the workspace as its directory, and no secret of the node", () =>
    Effect.gen(function* () {
      process.env.SUPER_PI_TEST_API_KEY = "SECRET"
      const project = yield* withHooks({
        PreToolUse: on("cat > got.json; env > env.txt; pwd > pwd.txt"),
      })
      yield* judge(project, callOf("bash", { command: "ls -l" }), { mode: "accept-edits" })
      delete process.env.SUPER_PI_TEST_API_KEY
      const read = (name: string) => Effect.promise(() => readFile(join(project.root, name), "utf8"))
      expect(JSON.parse(yield* read("got.json"))).toEqual({
        session_id: "1",
        hook_event_name: "PreToolUse",
        cwd: project.root,
        permission_mode: "accept-edits",
        harness: "test",
        depth: 0,
        tool_name: "bash",
        tool_input: { command: "ls -l" },
        tool_use_id: "c1",
      })
      const env = yield* read("env.txt")
      expect(env).not.toContain("SECRET")
      expect(env).toContain(`SUPER_PI_PROJECT_DIR=${project.root}`)
      expect((yield* read("pwd.txt")).trim()).toBe(project.root)
    }),
  )
})

describe("after a call", () => {
  it.scoped("what hooks say before and after it comes behind its output", () =>
    Effect.gen(function* () {
      const project = yield* withHooks({
        PreToolUse: on(answering({ additionalContext: "BEFORE" })),
        PostToolUse: on(answering({ decision: "block", reason: "LINT", additionalContext: "AFTER" })),
      })
      const plugin = makeHooks()
      yield* judge(project, callOf(), {}, plugin)
      expect(yield* observe(project, plugin)).toBe("OUTPUT\n[hook] BEFORE\n[hook] LINT\n[hook] AFTER")
      // Of the call before, once.
      expect(yield* observe(project, plugin)).toBe("OUTPUT\n[hook] LINT\n[hook] AFTER")
    }),
  )

  it.scoped("the command gets the result", () =>
    Effect.gen(function* () {
      const project = yield* withHooks({ PostToolUse: on("cat > got.json") })
      expect(yield* observe(project, makeHooks())).toBeNull()
      const got = JSON.parse(yield* Effect.promise(() => readFile(join(project.root, "got.json"), "utf8")))
      expect(got.tool_response).toEqual({ output: "OUTPUT", is_error: false })
    }),
  )
})

describe("the start of a session", () => {
  it.scoped("runs once, and its text or context is a section from then on", () =>
    Effect.gen(function* () {
      const project = yield* withHooks({ SessionStart: on("cat >> starts.txt; echo PLAIN TEXT") })
      const plugin = makeHooks()
      expect(yield* session(project, plugin)).toBe("PLAIN TEXT")
      expect(yield* session(project, plugin, 2)).toBe("PLAIN TEXT")
      const starts = yield* Effect.promise(() => readFile(join(project.root, "starts.txt"), "utf8"))
      expect(
        starts
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line).source),
      ).toEqual(["startup"])
    }),
  )

  it.scoped("runs again in another process, which resumes", () =>
    Effect.gen(function* () {
      const project = yield* withHooks({ SessionStart: on("cat >> starts.txt") })
      expect(yield* session(project, makeHooks())).toBeNull()
      yield* session(project, makeHooks(), 3)
      const starts = yield* Effect.promise(() => readFile(join(project.root, "starts.txt"), "utf8"))
      expect(
        starts
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line).source),
      ).toEqual(["startup", "resume"])
    }),
  )
})

describe("the end of a turn", () => {
  it.scoped("a Stop hook that refuses goes on with its reason, and is told that it did", () =>
    Effect.gen(function* () {
      const script = `if grep -q '"stop_hook_active":true'; then exit 0; else echo 'run the tests' >&2; exit 2; fi`
      const project = yield* withHooks({ Stop: on(script) })
      const plugin = makeHooks()
      expect(yield* stop(project, plugin)).toEqual({ continue: "run the tests" })
      expect(yield* stop(project, plugin)).toBeUndefined()
      expect(yield* stop(project, plugin)).toEqual({ continue: "run the tests" })
      yield* hookOf(plugin, "beforeAgentStart")({ inputs: [] }, project.context(plugin))
      expect(yield* stop(project, plugin)).toEqual({ continue: "run the tests" })
    }),
  )

  it.scoped("does not run for a subagent", () =>
    Effect.gen(function* () {
      const project = yield* withHooks({ Stop: on("exit 2") })
      expect(yield* stop(project, makeHooks(), { depth: 1 })).toBeUndefined()
    }),
  )
})

describe("how a command ends", () => {
  const running = (project: Project, command: string, more: Partial<HookRun> = {}) =>
    runHook({
      command,
      cwd: project.root,
      env: { PATH: process.env.PATH ?? "" },
      input: {},
      timeoutMs: 60_000,
      maxBytes: 1_000,
      ...more,
    })

  /** The number in a file, once it is there. */
  const numberIn = async (directory: string, name: string): Promise<number> => {
    const path = join(directory, name)
    const read = () => (existsSync(path) ? Number(readFileSync(path, "utf8")) : 0)
    const watching = watch(directory)
    try {
      while (read() === 0) await once(watching, "change")
      return read()
    } finally {
      watching.close()
    }
  }

  /** Settles when no process of the group is left. */
  const gone = async (group: number): Promise<void> => {
    while (hasLivingMembers(group)) await new Promise((resolve) => setTimeout(resolve, 5))
  }

  it.scoped("with everything that it started", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const exit = yield* running(project, "sleep 600 & echo $$ > pid; echo done")
      expect(exit).toMatchObject({ type: "ended", code: 0, stdout: "done\n" })
      yield* Effect.promise(async () => gone(await numberIn(project.root, "pid")))
    }),
  )

  it.scoped("when nobody waits any more", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const fiber = yield* Effect.fork(running(project, "echo $$ > pid; sleep 600"))
      const group = yield* Effect.promise(() => numberIn(project.root, "pid"))
      expect(hasLivingMembers(group)).toBe(true)
      yield* Fiber.interrupt(fiber)
      yield* Effect.promise(() => gone(group))
    }),
  )

  it.scoped("when its node is killed", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const program = yield* Effect.acquireRelease(
        Effect.promise(() => bundleProgram("test/harness/hooks-node.ts")),
        ({ remove }) => Effect.promise(remove),
      )
      const node = spawn(process.execPath, [program.file, "echo $$ > pid; sleep 600", project.root], {
        stdio: "ignore",
      })
      const group = yield* Effect.promise(() => numberIn(project.root, "pid"))
      node.kill("SIGKILL")
      yield* Effect.promise(() => gone(group))
    }),
  )

  it.scoped("although it reads nothing, writes without end, or leaves somebody outside of its group", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const large = { text: "x".repeat(1_000_000) }
      expect(yield* running(project, "exit 0", { input: large })).toMatchObject({ type: "ended", code: 0 })
      const loud = yield* running(project, "head -c 5000000 /dev/zero | tr '\\0' a; echo b >&2")
      expect(loud).toMatchObject({ type: "ended", truncated: true, stderr: "b\n" })
      expect(loud.type === "ended" ? loud.stdout.length : 0).toBe(1_000)
      const outside = yield* running(project, "setsid sh -c 'echo $$ > outside; sleep 600' & echo here")
      expect(outside).toMatchObject({ type: "ended", code: 0, stdout: "here\n" })
      if (existsSync(join(project.root, "outside"))) {
        process.kill(-Number(readFileSync(join(project.root, "outside"), "utf8")), "SIGKILL")
      }
    }),
  )

  it.scoped("where its directory is not there", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const exit = yield* running(project, "true", { cwd: join(project.root, "gone") })
      expect(exit.type).toBe("notStarted")
    }),
  )

  it("is judged the same for every exit", () => {
    const exit = fc.record({
      type: fc.constant("ended" as const),
      code: fc.option(fc.integer({ min: 0, max: 255 })),
      stdout: fc.oneof(fc.string(), fc.json()),
      stderr: fc.string(),
      truncated: fc.boolean(),
    })
    const hook = { event: "PreToolUse", matcher: null, command: "c", timeoutMs: null, file: "f" } as const
    fc.assert(
      fc.property(exit, (given) => {
        const answer = answerOf(hook, given, false)
        // Refused, failed or reported: no code but 0 passes in silence.
        if (given.code !== 0) expect(answer.decision ?? answer.failure ?? answer.warning).not.toBeNull()
        if (given.code !== 0) expect(answer.decision).not.toBe("allow")
      }),
      { numRuns: 500 },
    )
  })
})
