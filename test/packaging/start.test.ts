/**
 * `npm start` without arguments: the chat where a model provider is configured, wherever that is; else the demonstration.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { createInterface } from "node:readline"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { meansToChat } from "../../src/cli/start.ts"

const root = path.resolve(import.meta.dirname, "../..")
let home: string
const children = new Set<ChildProcess>()

beforeAll(() => {
  home = mkdtempSync(path.join(tmpdir(), "super-pi-start-"))
  const command = path.join(home, "token")
  writeFileSync(command, "#!/bin/sh\necho token\n")
  chmodSync(command, 0o700)
})

afterAll(() => {
  for (const child of children) child.kill("SIGKILL")
  rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
})

let homes = 0

/** The first line that `npm start` prints; its stdin is empty. */
const opens = async (settings: object | null, env: Record<string, string> = {}): Promise<string> => {
  const own = path.join(home, String(++homes))
  mkdirSync(path.join(own, "config"), { recursive: true })
  if (settings !== null) writeFileSync(path.join(own, "config", "settings.json"), JSON.stringify(settings))
  const child = spawn(process.execPath, [path.join(root, "scripts", "start.mjs")], {
    cwd: own,
    env: {
      ...{ PATH: process.env.PATH ?? "", HOME: own, NO_COLOR: "1", TMPDIR: own },
      ...{ SUPER_PI_CONFIG_DIR: path.join(own, "config"), SUPER_PI_DATA_DIR: path.join(own, "data") },
      ...env,
    },
    // A group of its own: the script starts the program, and the demonstration a node.
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  })
  children.add(child)
  const ended = once(child, "close")
  const lines = createInterface({ input: child.stdout })
  const [line] = await Promise.race([once(lines, "line"), ended.then(() => ["(nothing)"])])
  if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, "SIGTERM")
  await ended
  children.delete(child)
  return String(line)
}

const chat = /^super-pi .* conversation \d+/
const demonstration = /^Super-Pi: a durable turn outlives/

describe("npm start", () => {
  it("opens the demonstration where nothing is configured", async () => {
    expect(await opens(null)).toMatch(demonstration)
  })

  it("opens the chat with a provider of the settings file, whose token comes from a command", async () => {
    const settings = { models: { openaiBaseUrl: "http://127.0.0.1:9/v1", openaiModels: ["local-model"] } }
    const env = { SUPER_PI_OPENAI_AUTH_COMMAND: path.join(home, "token") }
    const line = await opens(settings, env)
    expect(line).toMatch(chat)
    expect(line).toContain("openai/local-model")
  })

  it("opens the chat with a default model of the settings file", async () => {
    expect(await opens({ defaultModel: "mock/echo" })).toMatch(chat)
  })
})

describe("a person means to chat", () => {
  it.each([
    ["with a key", { ANTHROPIC_API_KEY: "k" }, {}],
    ["with an auth command", { SUPER_PI_OPENAI_AUTH_COMMAND: "/bin/token" }, {}],
    ["with a model in the environment", { SUPER_PI_DEFAULT_MODEL: "mock/echo" }, {}],
    ["with a model in the settings", {}, { defaultModel: "mock/echo" }],
    ["with a model in the section of models", {}, { models: { defaultModel: "mock/echo" } }],
    ["with another service, also without a key yet", {}, { models: { geminiBaseUrl: "http://127.0.0.1:9" } }],
    ["with another service in the environment", { SUPER_PI_OPENAI_BASE_URL: "http://127.0.0.1:9" }, {}],
  ])("%s", async (_how, env, settings) => {
    expect(await meansToChat(env, settings)).toBe(true)
  })

  it.each([
    ["with nothing", {}, {}],
    ["with empty variables", { OPENAI_API_KEY: "", SUPER_PI_OPENAI_BASE_URL: " " }, {}],
    [
      "with settings that concern no provider",
      {},
      { synchronous: "FULL" as const, models: { effort: "low" as const } },
    ],
  ])("not %s", async (_how, env, settings) => {
    expect(await meansToChat(env, settings)).toBe(false)
  })
})
