/**
 * OpenCode, the real program, with the gateway as its model provider: one prompt is answered, its session is a durable conversation, and the
 * title that it asks for beside it is no part of that. Skipped where its binary does not run.
 */
import { execFile, execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { textOf } from "../../../src/domain/message.ts"
import type { Script } from "../../../src/models/providers/script-file.ts"
import { missing, program } from "../../clients/programs.ts"
import { type OpenAiNode, startNode } from "./node.ts"

const binary = program("opencode")

/** Why it does not run here, or null. */
const absence = (): string | null => {
  const absent = missing("opencode")
  if (absent !== null) return absent
  // It makes directories in its home, whatever it is asked for.
  const home = mkdtempSync(join(tmpdir(), "super-pi-opencode-"))
  const places = ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"].map((name) => [name, home])
  try {
    execFileSync(binary, ["--version"], {
      env: { ...process.env, HOME: home, ...Object.fromEntries(places) },
      stdio: "pipe",
      timeout: 60_000,
    })
    return null
  } catch (error) {
    return error instanceof Error ? (error.message.split("\n")[0] ?? "it fails") : String(error)
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}
const reason = absence()

describe(reason === null ? "OpenCode" : `OpenCode (skipped: ${reason})`, () => {
  let node: OpenAiNode
  beforeAll(async () => {
    const rules: Script["rules"] = [
      { match: "Generate a title", steps: [{ text: "Adding two numbers" }] },
      { match: "15 plus 27", steps: [{ text: "It is 42.", usage: [10, 4] }] },
      { match: "and doubled", steps: [{ text: "It is 84." }] },
    ]
    node = await startNode({ script: { rules } })
  })
  afterAll(() => node.close())

  const run = async (...words: ReadonlyArray<string>): Promise<string> => {
    const home = join(node.directory, "home")
    const project = join(node.directory, "project")
    mkdirSync(join(home, "config", "opencode"), { recursive: true })
    mkdirSync(project, { recursive: true })
    const provider = {
      npm: "@ai-sdk/openai-compatible",
      name: "Super-Pi",
      options: { baseURL: `${node.url}/v1`, apiKey: "local-key" },
      models: {
        "super-pi-code": { name: "Super-Pi Code", limit: { context: 128_000, output: 8192 } },
        "super-pi-assistant": { name: "Super-Pi Assistant", limit: { context: 128_000, output: 8192 } },
      },
    }
    const config = {
      enabled_providers: ["super-pi"],
      small_model: "super-pi/super-pi-assistant",
      provider: { "super-pi": provider },
    }
    writeFileSync(join(home, "config", "opencode", "opencode.json"), JSON.stringify(config))
    const env = {
      PATH: process.env.PATH,
      HOME: home,
      XDG_CONFIG_HOME: join(home, "config"),
      XDG_DATA_HOME: join(home, "data"),
      XDG_CACHE_HOME: join(home, "cache"),
      XDG_STATE_HOME: join(home, "state"),
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_AUTOUPDATE: "1",
    }
    const running = promisify(execFile)(binary, ["run", ...words, "--model", "super-pi/super-pi-code"], {
      cwd: project,
      env,
    })
    running.child.stdin?.end()
    return (await running).stdout
  }

  it.skipIf(reason !== null)(
    "runs a prompt, and goes on with its session, in one durable conversation",
    { timeout: 180_000 },
    async () => {
      expect(await run("What is 15 plus 27?")).toContain("It is 42.")
      expect(await run("and doubled?", "--continue")).toContain("It is 84.")
      const sessions = await Effect.runPromise(node.sessions.listNamed({ namespace: "openai", principal: "local" }))
      expect(sessions).toHaveLength(1)
      const [session] = sessions
      if (session === undefined) return
      expect(session.name).toMatch(/^ses_/)
      const entries = await Effect.runPromise(node.sessions.transcript({ conversationId: session.conversation_id }))
      const said = entries.filter((entry) => entry.kind === "pi.user" || entry.kind === "pi.assistant")
      const texts = said
        .flatMap((entry) => entry.model)
        .map((message) => (message.role === "user" || message.role === "assistant" ? textOf(message.content) : ""))
      expect(texts).toHaveLength(4)
      expect(texts[0]).toContain("What is 15 plus 27?")
      expect(texts[1]).toBe("It is 42.")
      expect(texts[3]).toBe("It is 84.")
      // The title was asked for beside it, in a conversation that is gone again.
      const left = () => Effect.runPromise(node.sessions.list({ principal: "local" }))
      await expect
        .poll(async () => (await left()).map((one) => one.conversation_id), { timeout: 30_000 })
        .toEqual([session.conversation_id])
    },
  )
})
