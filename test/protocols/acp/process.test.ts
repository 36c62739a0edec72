/**
 * `super-pi acp` as a process: a real client on the command line drives it, it dies in the middle of a prompt and forgets nothing, and its
 * stdout carries the protocol only.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { buildProgram, launcher, makeBench } from "../../cli/program.ts"
import { missing, program } from "../../clients/programs.ts"
import { connectEditor, type Editor } from "./editor.ts"

const execute = promisify(execFile)
const absent = missing("acpx", "node24")
const bench = makeBench()
const workspace = join(bench.directory, "work")
const children: Array<ChildProcess> = []

beforeAll(async () => {
  mkdirSync(workspace)
  await buildProgram()
}, 180_000)
afterAll(() => {
  for (const child of children) child.kill("SIGKILL")
  bench.remove()
})

const script = bench.write(
  "script.json",
  JSON.stringify({
    rules: [
      { match: "^hello", steps: [{ text: "good morning" }] },
      {
        match: "^work",
        steps: [
          { text: "I look first.", tools: [{ id: "l1", name: "ls", args: { path: "." } }] },
          { text: "Now I think", hang: true, times: 1 },
          { text: "Done." },
        ],
      },
    ],
  }),
)
const env = { ...bench.env, SUPER_PI_SCRIPT: script }

const start = async (): Promise<{ readonly child: ChildProcess; readonly editor: Editor }> => {
  const child = spawn(process.execPath, [launcher, "acp", "--model", "script/test"], {
    cwd: workspace,
    env,
    stdio: ["pipe", "pipe", "inherit"],
  })
  children.push(child)
  child.stdin.on("error", () => {})
  return { child, editor: await connectEditor({ toAgent: child.stdin, fromAgent: child.stdout }) }
}

describe("super-pi acp", () => {
  it.skipIf(absent !== null)(`runs a prompt of acpx${absent === null ? "" : ` (${absent})`}`, async () => {
    const agent = `${process.execPath} ${launcher} acp --model script/test`
    const { stdout } = await execute(
      program("node24"),
      [
        program("acpx"),
        "--agent",
        agent,
        "--cwd",
        workspace,
        "--approve-all",
        "--format",
        "json",
        "--json-strict",
        "exec",
        "hello",
      ],
      { cwd: workspace, env },
    )
    interface Line {
      readonly result?: object
      readonly params?: {
        readonly update?: { readonly sessionUpdate: string; readonly content?: { readonly text: string } }
      }
    }
    const lines: ReadonlyArray<Line> = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
    const said = lines.map(({ params }) =>
      params?.update?.sessionUpdate === "agent_message_chunk" ? (params.update.content?.text ?? "") : "",
    )
    expect(said.join("")).toBe("good morning")
    expect(lines.at(-1)?.result).toMatchObject({ stopReason: "end_turn" })
  })

  it("killed in the middle of a prompt, it tells all that was said when the session is loaded, and the turn goes on", async () => {
    const first = await start()
    const { sessionId } = await first.editor.agent.request("session/new", { cwd: workspace, mcpServers: [] })
    await first.editor.agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: "hello" }] })
    const prompted = first.editor.agent
      .request("session/prompt", { sessionId, prompt: [{ type: "text", text: "work" }] })
      .catch(() => "gone")
    await first.editor.until(() => first.editor.said("agent_message_chunk").endsWith("Now I think"))
    first.child.kill("SIGKILL")
    expect(await prompted).toBe("gone")

    const second = await start()
    await second.editor.agent.request("session/load", { sessionId, cwd: workspace, mcpServers: [] })
    expect(second.editor.said("user_message_chunk")).toBe("hellowork")
    expect(second.editor.said("agent_message_chunk")).toMatch(/^good morningI look first\./)
    // In the order of the wire: the client hands updates and answers out as it likes.
    const { lines } = second.editor
    const told = lines.slice(
      0,
      lines.findLastIndex((line) => line.result !== undefined),
    )
    const calls = told.filter((line) => JSON.stringify(line.params ?? null).includes('"l1"'))
    expect(calls.at(-1)?.params).toMatchObject({ update: { toolCallId: "l1", status: "completed" } })
    // In this process too the model hangs where it hung.
    await second.editor.agent.notify("session/cancel", { sessionId })
    const ended = await second.editor.agent.request("session/prompt", {
      sessionId,
      prompt: [{ type: "text", text: "hello" }],
    })
    expect(ended.stopReason).toBe("end_turn")
    expect(second.editor.said("agent_message_chunk")).toMatch(/good morning$/)
    expect([...first.editor.faults, ...second.editor.faults]).toEqual([])
    const closed = new Promise((done) => second.child.on("close", done))
    second.editor.close()
    expect(await closed).toBe(0)
  })
})
