/**
 * The command line as a person runs it: real processes of the built program.
 */
import { execFile } from "node:child_process"
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Bench, buildProgram, launcher, makeBench } from "./program.ts"

let bench: Bench
const echo = ["--model", "mock/echo"]

const script = {
  chunkMs: 1,
  rules: [
    { match: "^hang", steps: [{ text: "I begin", hang: true }] },
    { match: "^fail$", steps: [{ status: 400, message: "the request is refused" }] },
    { match: "^cut off", steps: [{ text: "Half an", stopReason: "length" }] },
    { match: "^control", steps: [{ text: "a\u001b[2Jb" }] },
    {
      match: "^tool",
      steps: [
        { text: "Looking.", tools: [{ name: "bash", args: { command: "echo seen > seen.txt; cat seen.txt" } }] },
        { text: "Looked." },
      ],
    },
    { match: ".*", steps: [{ text: "An answer." }] },
  ],
}

const scripted = () => ({
  SUPER_PI_SCRIPT: join(bench.directory, "script.json"),
  SUPER_PI_DEFAULT_MODEL: "script/test",
})

const lines = (text: string): Array<Record<string, unknown>> =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))

beforeAll(async () => {
  bench = makeBench()
  await buildProgram()
  bench.write("script.json", JSON.stringify(script))
})

afterAll(() => bench.remove())

describe("super-pi run", () => {
  it("prints the answer and nothing else", async () => {
    expect(await bench.run(["run", "hello there", ...echo])).toEqual({
      code: 0,
      stdout: "You said: hello there\n",
      stderr: "",
    })
    expect(await bench.run(["-p", "hi", ...echo])).toEqual({ code: 0, stdout: "You said: hi\n", stderr: "" })
  })

  it("takes its prompt from a pipe, also without a command", async () => {
    expect(await bench.run(echo, { input: "two\nlines\n" })).toEqual({
      code: 0,
      stdout: "You said: two\nlines\n",
      stderr: "",
    })
    const empty = await bench.run(["run", ...echo], { input: " \n" })
    expect([empty.code, empty.stdout]).toEqual([2, ""])
    expect(empty.stderr).toContain("stdin holds no prompt")
  })

  it("goes on with the most recent conversation, and with a given one", async () => {
    const [first] = lines((await bench.run(["run", "one", ...echo, "--output-format", "json"])).stdout)
    const [second] = lines((await bench.run(["run", "two", "-c", "--output-format", "json"])).stdout)
    const id = String(first?.conversation_id)
    const [third] = lines((await bench.run(["run", "three", "--conversation", id, "--output-format", "json"])).stdout)
    expect([second?.conversation_id, third?.conversation_id]).toEqual([first?.conversation_id, first?.conversation_id])
    expect([second?.text, third?.text]).toEqual(["You said: two", "You said: three"])
  })

  it("prints one JSON result", async () => {
    const { code, stdout } = await bench.run(["run", "hi", ...echo, "--output-format", "json"])
    expect(code).toBe(0)
    expect(lines(stdout)).toEqual([
      {
        type: "result",
        conversation_id: expect.any(Number),
        submission_id: expect.any(Number),
        text: "You said: hi",
        stop_reason: "stop",
        model: "mock/echo",
        usage: expect.objectContaining({ input: expect.any(Number), output: expect.any(Number) }),
        turns: 1,
        duration_ms: expect.any(Number),
        is_error: false,
      },
    ])
  })

  it("streams every event, then the result", async () => {
    const { stdout } = await bench.run(["run", "tool please", "--output-format", "stream-json"], { env: scripted() })
    const events = lines(stdout)
    expect(events[0]?.type).toBe("snapshot")
    expect(events[events.length - 1]).toMatchObject({ type: "result", text: "Looked.", turns: 2, is_error: false })
    const numbers = events.slice(0, -1).map((event) => Number(event.seq_no))
    expect(numbers).toEqual(numbers.map((_, index) => (numbers[0] ?? 0) + index))
    const types = events.map((event) => event.type)
    for (const type of [
      "turn_started",
      "tool_started",
      "tool_output",
      "tool_completed",
      "text_delta",
      "turn_completed",
      "submission_updated",
    ]) {
      expect(types).toContain(type)
    }
  })

  it("says that the answer was cut off, also in a pipe", async () => {
    const text = await bench.run(["run", "cut off please"], { env: scripted() })
    expect([text.code, text.stdout]).toEqual([0, "Half an\n"])
    expect(text.stderr).toBe("super-pi: warning: the answer was cut off at the model's output limit\n")
    const json = await bench.run(["run", "cut off please", "--output-format", "json"], { env: scripted() })
    expect(lines(json.stdout)).toMatchObject([{ stop_reason: "length", is_error: false }])
  })

  it("answers each input line with one result line, and goes on after a bad one", async () => {
    const input =
      '{"prompt":"one"}\nnot json\n{"prompt":5}\n{"prompt":"x","conversation_id":999999}\n{"prompt":"two"}\n{"prompt":"three","conversation_id":null}\n'
    const { code, stdout } = await bench.run(["--input-format", "stream-json", ...echo], { input })
    const results = lines(stdout)
    expect(results.map((result) => result.is_error)).toEqual([false, true, true, true, false, false])
    expect(results.map((result) => result.text)).toEqual([
      "You said: one",
      null,
      null,
      null,
      "You said: two",
      "You said: three",
    ])
    expect(results[4]?.conversation_id).toBe(results[0]?.conversation_id)
    expect(results[5]?.conversation_id).not.toBe(results[0]?.conversation_id)
    expect(code).toBe(1)
  })

  it("says what to set where no provider has a key, and begins nothing", async () => {
    const before = await bench.run(["session", "list"])
    for (const args of [["run", "hi"], ["chat"]]) {
      const { code, stdout, stderr } = await bench.run(args, { input: "hi\n" })
      expect([code, stdout]).toEqual([1, ""])
      expect(stderr).toMatch(/^super-pi: .*GEMINI_API_KEY.*\n$/)
    }
    expect((await bench.run(["session", "list"])).stdout.split("\n").length).toBe(before.stdout.split("\n").length)
  })

  it("fails with the provider's own message, also as a result", async () => {
    const text = await bench.run(["run", "fail"], { env: scripted() })
    expect([text.code, text.stdout]).toEqual([1, ""])
    expect(text.stderr).toContain("the request is refused")
    const json = await bench.run(["run", "fail", "--output-format", "json"], { env: scripted() })
    expect(lines(json.stdout)).toMatchObject([{ type: "result", is_error: true, stop_reason: "error", text: null }])
    expect(json.code).toBe(1)
  })

  it("cancels the turn durably on Ctrl-C", async () => {
    const run = bench.start(["run", "hang", "--output-format", "stream-json"], { env: scripted() })
    await run.until(/text_delta/)
    run.child.kill("SIGINT")
    const { code, stdout } = await run.ended
    expect(code).toBe(130)
    const result = lines(stdout).pop()
    expect(result).toMatchObject({ type: "result", stop_reason: "aborted", is_error: true })
    const { stdout: shown } = await bench.run(["session", "list", "--json"])
    expect(lines(shown).flat()).toContainEqual(
      expect.objectContaining({ conversation_id: result?.conversation_id, busy: false }),
    )
  })

  it("stops cleanly on SIGTERM and leaves the turn to whoever opens the database next", async () => {
    const run = bench.start(["run", "hang on", "--output-format", "stream-json"], { env: scripted() })
    await run.until(/text_delta/)
    run.child.kill("SIGTERM")
    const { code, stdout, stderr } = await run.ended
    expect([code, stderr]).toEqual([143, ""])
    const id = lines(stdout)[0]?.conversation_id
    const listed = async () => lines((await bench.run(["session", "list", "--json"])).stdout).flat()
    expect(await listed()).toContainEqual(expect.objectContaining({ conversation_id: id, busy: true }))
    const chat = await bench.run(["chat", "--conversation", String(id)], { input: "/cancel\n", env: scripted() })
    expect(chat).toMatchObject({ code: 0, stderr: "" })
    expect(chat.stdout).toContain("cancelled")
    expect(await listed()).toContainEqual(expect.objectContaining({ conversation_id: id, busy: false }))
  })

  it("exits quietly when its reader is gone", async () => {
    const run = bench.start(["session", "list", "--json"])
    run.child.stdout?.destroy()
    expect((await run.ended).stderr).toBe("")
  })
})

describe("super-pi chat in a pipe", () => {
  it("answers line by line without escape codes, and leaves at the end", async () => {
    const { code, stdout, stderr } = await bench.run(["chat", ...echo], { input: "one\n/bogus\ntwo \\\nmore\n" })
    expect([code, stderr]).toEqual([0, ""])
    expect(stdout).not.toContain("\u001b")
    expect(stdout).toMatch(/You said: one\nunknown command \/bogus; did you mean .*\nYou said: two \nmore\n$/)
  })

  it("leaves at /exit, and removes a conversation in which nothing was asked", async () => {
    const { code, stdout } = await bench.run(["chat", ...echo], { input: "/help\n/exit\nnever\n" })
    expect(code).toBe(0)
    expect(stdout).not.toContain("never")
    const id = /conversation (\d+)/.exec(stdout)?.[1] ?? ""
    expect((await bench.run(["session", "show", id])).code).toBe(1)
  })

  it("fails at the end when a prompt had no answer", async () => {
    const { code, stdout } = await bench.run(["chat"], { input: "fail\nhello\n", env: scripted() })
    expect(code).toBe(1)
    expect(stdout).toContain("the request is refused")
    expect(stdout).toContain("An answer.")
  })

  it("shows what a model writes without obeying it", async () => {
    const { stdout } = await bench.run(["chat"], { input: "control\n", env: scripted() })
    expect(stdout).toContain("ab\n")
  })
})

describe("reading commands", () => {
  it("list, show, export and remove a conversation", async () => {
    const [result] = lines(
      (await bench.run(["run", "tool now", "--output-format", "json"], { env: scripted() })).stdout,
    )
    const id = String(result?.conversation_id)
    expect((await bench.run(["session", "list"])).stdout).toMatch(new RegExp(`^ *${id}  `, "m"))
    expect((await bench.run(["session", "show", id])).stdout).toMatch(
      /> tool now[\s\S]*→ bash[\s\S]*seen[\s\S]*Looked\./,
    )
    const markdown = (await bench.run(["session", "export", id])).stdout
    expect(markdown).toMatch(/## User\n\ntool now[\s\S]*\*\*Call\*\* `bash`[\s\S]*Looked\./)
    const whole = JSON.parse((await bench.run(["session", "export", id, "--json"])).stdout)
    expect(whole).toMatchObject({ format: "super-pi.session", version: 1, conversation: { id: Number(id) } })
    expect(await bench.run(["session", "rm", id])).toMatchObject({ code: 0, stdout: `removed conversation ${id}\n` })
    expect(await bench.run(["session", "show", id])).toMatchObject({
      code: 1,
      stderr: `super-pi: conversation ${id} was not found; see: super-pi session list\n`,
    })
  })

  it("work while another process owns the database, and see its live tree", async () => {
    const socket = join(bench.directory, "node.sock")
    const owner = bench.start(["rpc", "--unix", socket, ...echo])
    await owner.until(/serving JSON-RPC/, "stderr")
    expect((await bench.run(["session", "list"])).code).toBe(0)
    expect((await bench.run(["run", "through the owner", ...echo])).stdout).toBe("You said: through the owner\n")
    const tree = await bench.run(["tree"])
    expect(tree.code).toBe(0)
    expect(tree.stdout).toMatch(/conversation-\d+/)
    const doctor = JSON.parse((await bench.run(["doctor", "--json"])).stdout)
    const check = doctor.checks.find((one: { name: string }) => one.name === "owner")
    expect(check).toMatchObject({ status: "ok", detail: expect.stringContaining(`process ${owner.child.pid}`) })
    owner.child.kill("SIGTERM")
    expect((await owner.ended).code).toBe(0)
    expect(await bench.run(["tree"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("no node is running on"),
    })
  })

  it("show the tree of the node that takes over, when the one that was watched has ended", async () => {
    const serve = () => bench.start(["rpc", "--unix", join(bench.directory, "watched.sock"), ...echo])
    const owner = serve()
    await owner.until(/serving JSON-RPC/, "stderr")
    const watcher = bench.start(["tree", "--watch"])
    await watcher.until(/guardian/)
    owner.child.kill("SIGKILL")
    await owner.ended
    const successor = serve()
    await successor.until(/serving JSON-RPC/, "stderr")
    await bench.run(["run", "to the next owner", ...echo])
    await watcher.until(/conversation-\d+/)
    watcher.child.kill("SIGINT")
    expect(await watcher.ended).toMatchObject({ code: 130, stderr: "" })
    successor.child.kill("SIGTERM")
    await successor.ended
  })

  it("say what a path is that is no database of ours, and leave it alone", async () => {
    const text = bench.write(
      "notes.txt",
      "just notes, long enough to be read as a header of a database file\n".repeat(20),
    )
    const directory = join(bench.directory, "folder")
    mkdirSync(directory)
    const cases: ReadonlyArray<readonly [string, RegExp]> = [
      [text, /is not a Super-Pi database/],
      [directory, /expected a file, got a directory/],
      [join(bench.directory, "missing.db"), /there is no database at .*missing\.db/],
    ]
    for (const [path, message] of cases) {
      const { code, stderr } = await bench.run(["session", "list", "--db", path])
      expect(code).toBe(1)
      expect(stderr).toMatch(message)
      expect(stderr.trim().split("\n")).toHaveLength(1)
    }
    expect((await bench.run(["run", "hi", ...echo, "--db", text])).stderr).toMatch(/is not a Super-Pi database/)
  })

  it("show no models and say what to set without a key", async () => {
    const { code, stdout, stderr } = await bench.run(["models"])
    expect([code, stdout]).toEqual([0, ""])
    expect(stderr).toContain("ANTHROPIC_API_KEY")
    const keyed = await bench.run(["models", "--json"], { env: { ANTHROPIC_API_KEY: "sk-test-secret" } })
    expect(JSON.parse(keyed.stdout).every((model: { provider: string }) => model.provider === "anthropic")).toBe(true)
  })
})

describe("super-pi rpc", () => {
  it("serves on stdio with its flags as the defaults of new conversations", async () => {
    const requests = [
      { jsonrpc: "2.0", id: 1, method: "session.open", params: { requestId: "flags" } },
      { jsonrpc: "2.0", id: 2, method: "node.info" },
    ]
    const { code, stdout, stderr } = await bench.run(["rpc", "--stdio", "--mode", "plan", "--cwd", "/", ...echo], {
      input: requests.map((request) => `${JSON.stringify(request)}\n`).join(""),
    })
    expect([code, stderr]).toEqual([0, ""])
    const answers = lines(stdout)
    expect(answers.find((answer) => answer.id === 1)?.result).toMatchObject({ state: "idle", mode: "plan", cwd: "/" })
    expect(answers.find((answer) => answer.id === 2)?.result).toMatchObject({ name: "super-pi" })
  })

  it("refuses more or less than one place to serve", async () => {
    for (const args of [["rpc"], ["rpc", "4001", "--stdio"]]) {
      expect(await bench.run(args)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("--unix PATH, --stdio or PORT"),
      })
    }
  })
})

describe("super-pi doctor", () => {
  it("checks everything, shows no secret and fails only on a failure", async () => {
    const good = await bench.run(["doctor", "--json"], { env: { OPENAI_API_KEY: "sk-test-secret" } })
    const report = JSON.parse(good.stdout)
    expect(good.stdout).not.toContain("secret")
    expect([good.code, report.ok]).toEqual([0, true])
    const names = report.checks.map((check: { name: string }) => check.name)
    for (const name of ["node", "settings", "database", "owner", "data", "disk", "terminal", "git"])
      expect(names).toContain(name)
    const bad = await bench.run(["doctor"], { env: { SUPER_PI_OPENAI_AUTH_COMMAND: "/nonexistent/token" } })
    expect(bad.code).toBe(1)
    expect(bad.stdout).toMatch(
      /^fail +auth command +\/nonexistent\/token does not exist; correct SUPER_PI_OPENAI_AUTH_COMMAND$/m,
    )
  })
})

describe("the launcher", () => {
  const launch = (args: ReadonlyArray<string>) =>
    new Promise<{ code: number | null; stderr: string }>((done) => {
      execFile(process.execPath, [...args], (error, _stdout, stderr) =>
        done({ code: Number(error?.code ?? 0), stderr }),
      )
    })

  it("says how to build where nothing is built", async () => {
    const directory = join(bench.directory, "unbuilt", "bin")
    mkdirSync(directory, { recursive: true })
    writeFileSync(join(directory, "..", "package.json"), '{"type":"module"}')
    copyFileSync(launcher, join(directory, "super-pi"))
    expect(await launch([join(directory, "super-pi")])).toEqual({
      code: 1,
      stderr: "super-pi: it is not built yet; run npm start (installs and builds what is missing) or npm run build\n",
    })
  })

  it("says which Node.js is needed where it is older", async () => {
    const older = 'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.18.3" } })'
    const { code, stderr } = await launch(["--import", `data:text/javascript,${encodeURIComponent(older)}`, launcher])
    expect(code).toBe(1)
    expect(stderr).toMatch(/^super-pi: Node\.js 20\.19 or newer is needed, this is 20\.18\.3; .*\n$/)
  })
})

describe("a wrong command line", () => {
  it("ends with code 2 and one line that names the word and the nearest valid one", async () => {
    const cases: ReadonlyArray<readonly [ReadonlyArray<string>, string]> = [
      [["rnu", "hi"], 'super-pi: unknown command "rnu"; did you mean "run"? See: super-pi --help\n'],
      [
        ["run", "hi", "--efort", "low"],
        "super-pi: unknown option --efort; did you mean --effort? See: super-pi run --help\n",
      ],
      [["rpc", "99999999"], 'super-pi: PORT: expected a number from 0 to 65535, got "99999999"\n'],
      [
        ["run", "hi", "--cwd", "/nonexistent"],
        "super-pi: --cwd: expected a directory, but /nonexistent does not exist\n",
      ],
    ]
    for (const [args, stderr] of cases) expect(await bench.run(args)).toEqual({ code: 2, stdout: "", stderr })
  })

  it("has help and version everywhere", async () => {
    const { version } = JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"))
    expect(await bench.run(["--version"])).toEqual({ code: 0, stdout: `super-pi ${version}\n`, stderr: "" })
    expect((await bench.run(["session", "export", "--help"])).stdout).toContain(
      "Usage: super-pi session export [OPTIONS] ID",
    )
  })

  it("warns about a broken settings file and goes on", async () => {
    mkdirSync(join(bench.directory, "config"), { recursive: true })
    const file = bench.write("config/settings.json", '{"defaultModle": "x"}')
    const { code, stdout, stderr } = await bench.run(["run", "hi", ...echo])
    expect([code, stdout]).toEqual([0, "You said: hi\n"])
    expect(stderr).toBe(`super-pi: warning: ${file}: unknown key "defaultModle"; did you mean "defaultModel"?\n`)
  })
})
