/**
 * `bash`: one command as a process group, whatever it does.
 */
import { readdirSync, readFileSync } from "node:fs"
import { readFile, rm } from "node:fs/promises"
import { join } from "node:path"
import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { BuiltinTools } from "../../src/tools/builtin-tools.ts"
import { call, contextOf, failureOf, outputOf, textCall, workspaceWith } from "./support.ts"

/** Command lines of living processes whose command line contains `mark`. */
const processesWith = (mark: string): ReadonlyArray<string> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, "utf8")
        const state = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.[0]
        return line.includes(mark) && state !== "Z" && Number(pid) !== process.pid ? [line] : []
      } catch {
        return []
      }
    })

/** Waits until none is left; polling is all that the system offers. */
const gone = (mark: string) =>
  Effect.promise(async () => {
    while (processesWith(mark).length > 0) await new Promise((resolve) => setTimeout(resolve, 10))
  })

const marker = () => `mark_${Math.random().toString(36).slice(2)}`

layer(BuiltinTools.standalone, { excludeTestServices: true })("bash", (it) => {
  it.scoped("gives output and errors in the order in which they were written, in the workspace root", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith()
      const result = yield* call(
        "bash",
        { command: "echo one; echo two >&2; echo three > /dev/stderr; pwd" },
        workspace,
      )
      expect(outputOf(result)).toBe(`one\ntwo\nthree\n${workspace.root}`)
      expect(result.isError).toBe(false)
      expect(result.structuredOutput).toMatchObject({
        exitCode: 0,
        signal: null,
        truncated: false,
        fullOutputPath: null,
      })
    }),
  )

  it.scoped("reports a failing exit code as an error that carries the output", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith()
      const result = yield* call("bash", { command: "echo partial; exit 7" }, workspace)
      expect(outputOf(result)).toBe("partial\n\n[Exit code 7.]")
      expect(result.isError).toBe(true)
      expect(result.structuredOutput).toMatchObject({ exitCode: 7, output: "partial" })
    }),
  )

  it.scoped("has no input: a command that reads ends at once", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith()
      expect(yield* textCall("bash", { command: "cat; read x || echo no input" }, workspace)).toBe("no input")
    }),
  )

  it.scoped("says so when there is no output", () =>
    Effect.gen(function* () {
      expect(yield* textCall("bash", { command: "true" }, yield* workspaceWith())).toBe("(no output)")
    }),
  )

  it.scoped("keeps the node's keys out of the environment and puts the workspace's variables in", () =>
    Effect.gen(function* () {
      process.env.ANTHROPIC_API_KEY = "secret-key"
      const workspace = { ...(yield* workspaceWith()), env: { PROJECT: "p1" } }
      const output = yield* textCall("bash", { command: "env" }, workspace)
      delete process.env.ANTHROPIC_API_KEY
      expect(output).not.toContain("secret-key")
      expect(output).toContain("PROJECT=p1")
      expect(output).toContain("PATH=")
      expect(output).toContain("GIT_TERMINAL_PROMPT=0")
    }),
  )

  it.scoped("streams output while the command runs, characters whole across chunks", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith()
      const heard = yield* Deferred.make<void>()
      let streamed = ""
      const emit = (chunk: string) =>
        Effect.suspend(() => {
          streamed += chunk
          return streamed.includes("ready") ? Effect.asVoid(Deferred.succeed(heard, undefined)) : Effect.void
        })
      // The command goes on only after its first line was heard; the euro sign is written in three pieces.
      const command =
        "printf 'ready\\n'; while [ ! -e go ]; do sleep 0.01; done; printf '\\xe2'; sleep 0.05; printf '\\x82'; sleep 0.05; printf '\\xac'"
      const running = yield* Effect.fork(call("bash", { command }, workspace, emit))
      yield* Deferred.await(heard)
      yield* call("write", { path: "go", content: "" }, workspace)
      expect(outputOf(yield* Fiber.join(running))).toBe("ready\n€")
      expect(streamed).toBe("ready\n€")
    }),
  )

  it.scoped("ends after its time limit and says how to get more, with the output so far", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith()
      const mark = marker()
      const result = yield* call(
        "bash",
        { command: `echo begun; bash -c 'sleep 1000; echo ${mark}'`, timeout: 0.3 },
        workspace,
      )
      expect(outputOf(result)).toMatch(/^begun\n\n\[Timed out after 0\.3 s; .*set timeout\.\]$/)
      expect(result.isError).toBe(true)
      expect(result.structuredOutput).toMatchObject({ timedOut: true })
      expect(processesWith(mark)).toEqual([])
    }),
  )

  it.scoped("ends every process of the group when it is cancelled, also those that ignore TERM", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith()
      const mark = marker()
      const started = yield* Deferred.make<void>()
      const emit = (chunk: string) =>
        chunk.includes("up") ? Effect.asVoid(Deferred.succeed(started, undefined)) : Effect.void
      const command = `bash -c 'trap "" TERM; while true; do sleep 0.05; done; echo ${mark}' & bash -c 'sleep 1000; echo ${mark}' & echo up; wait`
      const running = yield* Effect.fork(call("bash", { command }, workspace, emit))
      yield* Deferred.await(started)
      expect(processesWith(mark).length).toBeGreaterThan(0)
      yield* Fiber.interrupt(running)
      yield* gone(mark)
    }),
  )

  it.scoped("returns when the shell ends although a background child keeps the pipe open and writes on", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith()
      const mark = marker()
      const result = yield* call(
        "bash",
        {
          command: `bash -c 'while true; do echo noise ${mark} > /dev/null; echo more; sleep 0.02; done' & echo started; echo $! > pid`,
        },
        workspace,
      )
      expect(outputOf(result)).toContain("started")
      expect(result.structuredOutput).toMatchObject({ exitCode: 0 })
      // It survives the call, and is not killed by a closed pipe when it writes again.
      yield* Effect.sleep("100 millis")
      expect(processesWith(mark).length).toBeGreaterThan(0)
      const pid = Number(yield* Effect.promise(() => readFile(join(workspace.root, "pid"), "utf8")))
      process.kill(pid, "SIGKILL")
      yield* gone(mark)
    }),
  )

  it.scoped("survives a command that starts children without end until it is cancelled", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith()
      const mark = marker()
      const command = `for i in $(seq 1 40); do (sleep 1000; echo ${mark}) & done; sleep 1000`
      const result = yield* call("bash", { command, timeout: 0.5 }, workspace)
      expect(result.structuredOutput).toMatchObject({ timedOut: true })
      yield* gone(mark)
    }),
  )

  it.scoped("reports the signal when the shell is killed", () =>
    Effect.gen(function* () {
      const result = yield* call("bash", { command: "echo last words; kill -9 $$" }, yield* workspaceWith())
      expect(outputOf(result)).toBe("last words\n\n[Ended by signal SIGKILL.]")
      expect(result.structuredOutput).toMatchObject({ exitCode: null, signal: "SIGKILL" })
    }),
  )

  it.scoped("keeps start and end of a flood of 100 MB and saves all of it to a file that read may open", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith()
      let heard = 0
      const emit = (chunk: string) =>
        Effect.sync(() => {
          heard += chunk.length
        })
      const command = "echo first; head -c 104857600 /dev/zero | tr '\\0' 'x' | fold -w 99; echo; echo last"
      const result = yield* call("bash", { command }, workspace, emit)
      const output = outputOf(result)
      expect(output.length).toBeLessThan(60_000)
      expect(output).toMatch(/^first\nx{99}\n/)
      expect(output).toMatch(/\nlast$/)
      const path = /saved in (\S+)/.exec(output)?.[1] ?? ""
      expect(result.structuredOutput).toMatchObject({ truncated: true, fullOutputPath: path })
      expect(heard).toBeGreaterThan(0)
      expect(yield* textCall("read", { path, limit: 1 }, workspace)).toMatch(/^1\tfirst\n/)
      expect(yield* textCall("grep", { path, pattern: "^last$" }, workspace)).toMatch(/:last$/)
      expect(result.details).toMatchObject({
        bytes: 104857600 + Math.ceil(104857600 / 99) - 1 + "first\n\nlast\n".length,
      })
      yield* Effect.promise(() => rm(path))
    }),
  )

  it.scoped("shows binary output and terminal escapes as text", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith()
      const output = yield* textCall(
        "bash",
        { command: "printf '\\x1b[31mred\\x1b[0m \\x00\\xff|50%%\\r100%%\\r\\n'" },
        workspace,
      )
      expect(output).toBe("100%")
      expect(yield* textCall("bash", { command: "printf '\\x1b[1mbold\\x1b[0m \\x01\\xff'" }, workspace)).toBe(
        "bold \ufffd\ufffd",
      )
    }),
  )

  it.scoped("names a missing workspace and wrong arguments", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith()
      const missing = { ...workspace, root: join(workspace.root, "none") }
      expect(yield* failureOf("bash", { command: "true" }, missing)).toContain(`the directory ${missing.root}`)
      expect(yield* failureOf("bash", {}, workspace)).toBe("command: expected a non-empty string, got nothing")
      expect(yield* failureOf("bash", { command: "x", timeout: 0 }, workspace)).toBe(
        "timeout: expected a number from 0.1 to 3600, got 0",
      )
      expect(yield* failureOf("bash", { command: "#".repeat(200_000) }, workspace)).toMatch(
        /at most 120\.0 KB, got 195\.3 KB/,
      )
    }),
  )

  it.scoped("takes a command of 100 KB, with quotes and line ends as they are", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith()
      const command = `x='${"y".repeat(100_000)}'\necho "\${#x} $0 'it is'"\ncat <<'END'\n$HOME \`x\`\nEND\n`
      expect(yield* textCall("bash", { command }, workspace)).toBe("100000 bash 'it is'\n$HOME `x`")
      expect(contextOf(workspace).callId).toBe("call-1")
    }),
  )
})
