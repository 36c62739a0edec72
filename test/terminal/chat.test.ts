/**
 * The chat as a person has it: the real program behind a pseudo-terminal.
 */
import { chmodSync, existsSync, readFileSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Bench, buildProgram, launcher, makeBench } from "../cli/program.ts"
import { hasPty, openTerminal, type Terminal } from "./pty.ts"

const script = {
  rules: [
    { match: "^doc", steps: [{ text: "# Title\n\n- **one**\n- `two`\n\nThe end.", chunks: 12, chunkMs: 2 }] },
    { match: "^hang", steps: [{ text: "Begun and never done", chunks: 2, chunkMs: 60_000 }] },
    { match: "^resume", steps: [{ text: "slowly ".repeat(30), chunks: 30, chunkMs: 100 }] },
    {
      match: "^write",
      steps: [
        { text: "", tools: [{ name: "write", args: { path: "a.txt", content: "one\ntwo\n" } }] },
        { text: "", tools: [{ name: "edit", args: { path: "a.txt", edits: [{ oldText: "two", newText: "2" }] } }] },
        { text: "", tools: [{ name: "bash", args: { command: "seq 1 30; exit 3" } }] },
        { text: "Written." },
      ],
    },
    {
      match: "^ask",
      steps: [
        { text: "", tools: [{ name: "bash", args: { command: "awk 'BEGIN { print 6 * 7 }'" } }] },
        { text: "Asked." },
      ],
    },
    { match: "", steps: [{ text: "Hello." }] },
  ],
}

describe.skipIf(!hasPty)("a chat in a terminal", () => {
  let bench: Bench
  const open = (args: ReadonlyArray<string>, env: Record<string, string> = {}): Terminal =>
    openTerminal([process.execPath, launcher, ...args], { cwd: bench.directory, env: { ...bench.env, ...env } })
  const chat = async (...args: ReadonlyArray<string>): Promise<Terminal> => {
    const terminal = open(["chat", "-m", "script/a", ...args])
    await terminal.until(/· idle/)
    return terminal
  }
  /** A chat in the middle of an answer that does not go on. */
  const hanging = async (): Promise<Terminal> => {
    const terminal = await chat()
    terminal.type("hang\r")
    await terminal.until(/Begun and/)
    return terminal
  }
  const leave = async (terminal: Terminal): Promise<void> => {
    terminal.type("/exit\r")
    expect(await terminal.ended).toBe(0)
  }

  beforeAll(async () => {
    bench = makeBench()
    await buildProgram()
    bench.env.SUPER_PI_SCRIPT = bench.write("script.json", JSON.stringify(script))
  }, 600_000)
  afterAll(() => bench.remove())

  it("shows Markdown as it streams, and where the conversation stands below", async () => {
    const terminal = await chat()
    terminal.type("doc\r")
    await terminal.until(/The end\.\n.*· idle · .* in, .* out/)
    expect(terminal.shown()).toContain("› doc\nTitle\n\n• one\n• two\n\nThe end.\nconversation ")
    expect(terminal.raw()).not.toContain("**")
    await leave(terminal)
    expect(terminal.shown()).not.toContain("conversation 1 · script/a · auto")
  }, 60_000)

  it("shows what a call changed and what a command said, folded, and all of it when asked", async () => {
    const terminal = await chat()
    terminal.type("write\r")
    await terminal.until(/Written\.\n.*idle/)
    const shown = terminal.shown()
    expect(shown).toMatch(/✓ write a\.txt \(\+2 -0, .*\)\n {2}@@ -0,0 \+1,2 @@\n {2}\+one\n {2}\+two/)
    expect(shown).toMatch(/✓ edit a\.txt \(\+1 -1, .*\)\n {2}@@ -1,2 \+1,2 @@\n {3}one\n {2}-two\n {2}\+2/)
    expect(shown).toMatch(
      /✗ bash seq 1 30; exit 3 \(exit 3, .*\)\n {2}1\n {2}2\n {2}… 22 more lines; \/output shows them\n {2}25/,
    )
    terminal.type("/output\r")
    await terminal.until(/bash\n1\n2\n3\n(?:\d+\n)+30/)
    await leave(terminal)
  }, 60_000)

  it("asks for a permission on the spot, and takes the answer", async () => {
    const terminal = await chat("--mode", "accept-edits")
    terminal.type("ask\r")
    await terminal.until(/1\) .*\n.*2\) /)
    terminal.type("y\r")
    await terminal.until(/42\n(?:.*\n)*Asked\.\n.*idle/)
    await leave(terminal)
  }, 60_000)

  it("changes model and mode without a turn, and refuses a model that nobody serves", async () => {
    const terminal = await chat()
    terminal.type("/mode plan\r")
    await terminal.until(/script\/a · plan · idle/)
    terminal.type("/model nothing-of-that-kind\r")
    await terminal.until(/expected a model that can be asked, got/)
    terminal.type("/model mock/echo\r")
    await terminal.until(/from the next request on: mock\/echo, plan/)
    terminal.type("/status\r")
    await terminal.until(/entries +0\ntokens +none yet/)
    terminal.type("/context\r")
    await terminal.until(/messages +0, from 0 entries/)
    await leave(terminal)
  }, 60_000)

  it("cancels a turn on Ctrl-C, and leaves on the second one", async () => {
    const terminal = await hanging()
    terminal.type("\u0003")
    await terminal.until(/cancelled\n.*idle/)
    terminal.type("\u0003")
    expect(await terminal.ended).toBe(0)
  }, 60_000)

  it("shows a prompt that is typed while text runs below that text, and what it says of itself above", async () => {
    const terminal = await hanging()
    terminal.type("second\r")
    await terminal.until(/Begun and\s*\n› second\nqueued: asked when this turn has ended\n/)
    terminal.type("/mode\r")
    await terminal.until(
      /› \/mode\n.*auto.*\n(?:.*\n)*Begun and\s*\n› second\nqueued: asked when this turn has ended\n.*\n(?:.*\n)*›$/,
    )
    terminal.type("\u0003")
    await terminal.until(/Begun and\s*\n› second\nqueued: .*\n(?:.*\n)*cancelled\n(?:.*\n)*.*idle/)
    await terminal.until(/\nnot asked any more: what was queued as \d+\n(?:.*\n)*.*idle/)
    await leave(terminal)
  }, 60_000)

  it("leaves the text of a conversation behind with it", async () => {
    const terminal = await hanging()
    terminal.type("/new\r")
    await terminal.until(/Begun and\s*\n(?:.*\n)*super-pi .*\n(?:.*\n)*.*idle/)
    terminal.type("hello\r")
    await terminal.until(/› hello\nHello\.\n.*idle/)
    await leave(terminal)
  }, 60_000)

  it("completes commands and files, finds earlier lines, and takes several lines as one", async () => {
    const terminal = await chat()
    terminal.type("hello one\r")
    await terminal.until(/Hello\.\n.*idle/)
    terminal.type("/sta\t")
    await terminal.until(/› \/status$/)
    terminal.type("\u0015see @scri\t")
    await terminal.until(/› see @script\.json$/)
    terminal.type("\u0015\u0012lo o")
    await terminal.until(/search "lo o": hello one/)
    terminal.type("\u0005")
    await terminal.until(/› hello one$/)
    terminal.type("\u0015/m\t")
    await terminal.until(/› \/mode$/)
    terminal.type("\t")
    await terminal.until(/\/mode {2}\/model/)
    terminal.type("\u0015first\u001b\rsecond\u001b[200~, pasted\rthird\u001b[201~\r")
    await terminal.until(/› first\n {2}second, pasted\n {2}third\nHello\./)
    await leave(terminal)
  }, 60_000)

  it("draws itself anew for another size", async () => {
    const terminal = await chat()
    terminal.type("hello\r")
    await terminal.until(/Hello\.\n.*idle/)
    const whole = terminal.shown()
    terminal.resize(30, 20)
    await terminal.until(/› hello\nHello\.\nconversation \d+ · script\/a ·.{0,8}…\n›$/)
    terminal.resize(80, 40)
    await terminal.until(/idle · \d+ in, \d+ out\n›$/)
    expect(terminal.shown()).toBe(whole)
    await leave(terminal)
  }, 60_000)

  it("goes on with the turn of a chat that was killed", async () => {
    const killed = await chat()
    killed.type("resume\r")
    await killed.until(/slowly slowly/)
    killed.kill()
    expect(await killed.ended).toBe(137)
    const again = await chat("-c").catch((error: unknown) => Promise.reject(error))
    await again.until(/(?:slowly\s+){30}conversation \d+ · .* · idle/)
    await leave(again)
  }, 60_000)

  it("hands the terminal to a super-pi-tui on the PATH, with a private socket that it serves", async () => {
    const tui = bench.write(
      "super-pi-tui",
      [
        `#!${process.execPath}`,
        'const { createConnection } = require("node:net")',
        'const { statSync, writeFileSync } = require("node:fs")',
        'const { dirname } = require("node:path")',
        "const [, , flag, socket, other, conversation] = process.argv",
        "const mode = (path) => (statSync(path).mode & 0o777).toString(8)",
        'const client = createConnection(socket, () => client.write(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "session.state", params: { conversationId: Number(conversation) } }) + "\\n"))',
        'client.once("data", (data) => {',
        "  const { result } = JSON.parse(data)",
        "  const env = [process.env.SUPER_PI_RPC_SOCKET === socket, process.env.SUPER_PI_CONVERSATION_ID === conversation]",
        '  writeFileSync("tui.json", JSON.stringify({ flag, other, socket, modes: [mode(socket), mode(dirname(socket))], env, tty: process.stdin.isTTY, model: result.model }))',
        '  console.log("full screen")',
        "  process.exit(7)",
        "})",
      ].join("\n"),
    )
    chmodSync(tui, 0o755)
    const PATH = `${dirname(tui)}:${bench.env.PATH}`
    const terminal = open(["-m", "script/a"], { PATH })
    expect(await terminal.ended).toBe(7)
    expect(terminal.shown()).toContain("full screen")
    const told = JSON.parse(readFileSync(join(bench.directory, "tui.json"), "utf8"))
    expect(told).toMatchObject({
      flag: "--socket",
      other: "--conversation",
      modes: ["600", "700"],
      env: [true, true],
      tty: true,
      model: "script/a",
    })
    expect(existsSync(told.socket)).toBe(false)
    expect(statSync(dirname(told.socket), { throwIfNoEntry: false })).toBeUndefined()

    const lines = open(["-m", "script/a", "--no-tui"], { PATH })
    await lines.until(/\/help lists what can be typed\n.*idle/)
    await leave(lines)
  }, 60_000)
})
