/**
 * One conversation, every protocol at once, each by real processes: a gateway, an editor's agent and a chat share one database; a browser and
 * a JSON-RPC client are at the gateway. The model is a service on loopback that goes on living when the node dies.
 */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { Schema } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Entry } from "../../../src/domain/entry.ts"
import { Event } from "../../../src/domain/event.ts"
import type { Script, ScriptStep } from "../../../src/models/providers/script-file.ts"
import { buildProgram, makeBench, type Running } from "../../cli/program.ts"
import { type StandIn, startStandIn } from "../../models/stand-in.ts"
import { hasPty } from "../../terminal/pty.ts"
import { type Browser, openBrowser } from "./browser.ts"
import { type Chat, openChat } from "./chat.ts"
import type { Client } from "./client.ts"
import { type Editor, openEditor } from "./editor.ts"
import { openSocket, type Socket, storyOf } from "./socket.ts"

const names = ["socket", "browser", "editor", "chat"]
const rule = (match: string, ...steps: [ScriptStep, ...Array<ScriptStep>]) => ({ match: `${match}$`, steps })
const rules: Script["rules"] = [
  ...names.map((name) => rule(`hello from the ${name}`, { text: `Hello to the ${name}.` })),
  ...["r1", "r2", "r3", "r4", "r5", "r6"].map((id) => {
    const args = { command: `awk 'BEGIN { print "${id}" }'` }
    return rule(`run ${id}`, { text: `I run ${id}.`, tools: [{ id, name: "bash", args }] }, { text: `${id} ran.` })
  }),
  ...names.map((name) => rule(`wait for the ${name}`, { text: `Waiting for the ${name}.`, hang: true })),
  // Hangs when it is asked for the first time, in whichever life of the node.
  ...["one", "two"].map((life) => rule(`work ${life}`, { text: `Work ${life} is done.`, hang: true, times: 1 })),
]
/** What the end of a question says of who answered. */
const known: Record<string, string> = { socket: "rpc", browser: "ag-ui", editor: "test-editor", chat: "chat" }
const texts = new Set(rules.flatMap(({ steps }) => steps.map(({ text }) => text ?? "")))

const bench = makeBench()
const workspace = join(bench.directory, "work")
const database = join(bench.directory, "shared.db")
const common = ["--db", database, "--model", "local-model"]

let model: StandIn
let gateway: Running
let url = ""
let editor: Editor
let socket: Socket
/** A second program, which only looks. */
let observer: Socket
let browser: Browser
let chat: Chat | null = null
let all: ReadonlyArray<Client> = []

/** Starts the gateway, on the port that it had. */
const startGateway = async (): Promise<void> => {
  const port = url === "" ? "0" : new URL(url).port
  gateway = bench.start(["gateway", port, ...common])
  await gateway.until(/serving on http[\s\S]*WebSocket/, "stderr")
}

beforeAll(async () => {
  await buildProgram()
  mkdirSync(workspace)
  model = await startStandIn({ rules })
  Object.assign(bench.env, {
    SUPER_PI_OPENAI_BASE_URL: `${model.url}/v1`,
    SUPER_PI_OPENAI_MODEL: "local-model",
    OPENAI_API_KEY: "sk-of-the-test",
  })
  let said = ""
  gateway = bench.start(["gateway", "0", ...common])
  gateway.child.stderr?.on("data", (chunk: string) => {
    said += chunk
  })
  await gateway.until(/serving on http[\s\S]*WebSocket/, "stderr")
  url = /http:\/\/[\d.:]+/.exec(said)?.[0] ?? ""
  const place = { cwd: workspace, env: bench.env, args: common }
  editor = await openEditor(place)
  const { conversationId } = editor
  socket = await openSocket(`${url.replace("http", "ws")}/rpc`, conversationId)
  observer = await openSocket(`${url.replace("http", "ws")}/rpc`, conversationId)
  browser = await openBrowser(url, conversationId)
  if (hasPty) chat = await openChat({ ...place, conversationId, texts })
  all = [socket, browser, editor, ...(chat === null ? [] : [chat])]
}, 240_000)

afterAll(async () => {
  for (const client of [...all, observer]) client?.close()
  bench.remove()
  await model?.close()
})

/** The transcript as it is stored, as a story. */
const stored = async (): Promise<ReadonlyArray<string>> => {
  const { result } = await socket.call("session.transcript", { conversationId: editor.conversationId })
  return storyOf(result as ReadonlyArray<Entry>)
}

/** Waits until every client has the end of the story, and compares the whole with what is stored. */
const allTell = async (last: string, clients: ReadonlyArray<Client> = all): Promise<void> => {
  await Promise.all(clients.map((client) => client.until((story) => story.at(-1) === last)))
  const story = await stored()
  expect(story.at(-1)).toBe(last)
  for (const client of clients) {
    const told = client.story()
    // A chat that is opened again begins with the newest entries.
    const expected = client.recalls() ? story.slice(-told.length) : story
    expect([client.name, told]).toEqual([client.name, expected])
  }
  expect(story.length).toBeGreaterThan(0)
}

describe("one conversation, every protocol at once", () => {
  it("shows a prompt from each to all others, and the same answer to all", async () => {
    for (const client of all) {
      await client.prompt(`hello from the ${client.name}`)
      await allTell(`said: Hello to the ${client.name}.`)
    }
    expect(editor.faults()).toEqual([])
  }, 120_000)

  it("asks every one, and each of them in turn answers", async () => {
    for (const [at, client] of all.entries()) {
      const id = `r${at + 1}`
      await (all[(at + 1) % all.length] ?? client).prompt(`run ${id}`)
      await Promise.all(all.map((one) => one.asked()))
      expect(await client.allow()).not.toBe(false)
      await allTell(`said: ${id} ran.`)
      const settled = socket.events().filter((event) => event.type === "question_settled")
      expect(settled).toHaveLength(at + 1)
      expect(settled.at(-1)).toMatchObject({ result: "allowed", by: expect.stringContaining(known[client.name] ?? "") })
    }
  }, 120_000)

  it("lets exactly one of two answers count that come at once", async () => {
    for (const [id, others] of [
      ["r5", [socket, browser]],
      ["r6", all],
    ] as const) {
      const before = socket.events().filter((event) => event.type === "question_settled").length
      await socket.prompt(`run ${id}`)
      await Promise.all(all.map((one) => one.asked()))
      const answers = await Promise.all(others.map((one) => one.allow()))
      await allTell(`said: ${id} ran.`)
      const settled = socket.events().filter((event) => event.type === "question_settled")
      expect(settled).toHaveLength(before + 1)
      expect(answers.filter((counted) => counted === true).length).toBeLessThanOrEqual(1)
      if (others.length > 2) continue
      // An answer that is typed too late is not taken for a prompt.
      await chat?.prompt("1")
      await chat?.sees(/that question was settled before/)
      expect(answers.filter((counted) => counted === true)).toHaveLength(1)
    }
    const { result } = await socket.call("session.transcript", { conversationId: editor.conversationId })
    expect(storyOf(result as ReadonlyArray<Entry>).filter((line) => line === "bash: ok")).toHaveLength(all.length + 2)
  }, 120_000)

  it("ends the turn for all when one cancels it", async () => {
    for (const [at, client] of all.entries()) {
      const last = `said: Waiting for the ${client.name}.`
      await (all[(at + 1) % all.length] ?? client).prompt(`wait for the ${client.name}`)
      await Promise.all(all.map((one) => one.until((story) => story.at(-1) === last)))
      await client.cancel()
      await Promise.all(all.map((one) => one.rest()))
      await allTell(last)
    }
  }, 120_000)

  it("gives two programs the very same events under the same numbers", async () => {
    const [mine, theirs] = [socket.events(), observer.events()]
    const from = Math.max(mine[0]?.seq_no ?? 0, theirs[0]?.seq_no ?? 0)
    const to = Math.min(mine.at(-1)?.seq_no ?? 0, theirs.at(-1)?.seq_no ?? 0)
    const between = (events: ReadonlyArray<Event>) => events.filter(({ seq_no: at }) => at > from && at <= to)
    expect(between(theirs).length).toBeGreaterThan(100)
    expect(between(theirs)).toEqual(between(mine))
    const decode = Schema.decodeUnknownSync(Event, { onExcessProperty: "error" })
    for (const event of mine) expect(decode(event).v).toBe(1)
  })

  /** Every one of them is still in the conversation. */
  const goesOn = async (): Promise<void> => {
    for (const client of all) {
      await client.prompt(`hello from the ${client.name}`)
      await allTell(`said: Hello to the ${client.name}.`)
    }
  }

  it("goes on in another process when the gateway is killed in a turn, and nobody misses or repeats anything", async () => {
    const last = "said: Work one is done."
    await socket.prompt("work one")
    await Promise.all(all.map((client) => client.until((story) => story.at(-1) === last)))
    gateway.child.kill("SIGKILL")
    await gateway.ended
    await startGateway()
    await socket.comeBack()
    await browser.comeBack()
    await Promise.all(all.map((client) => client.rest()))
    await allTell(last)
    await goesOn()
    expect(editor.faults()).toEqual([])
  }, 120_000)

  it("goes on when every process is killed in a turn and started again, and nobody misses or repeats anything", async () => {
    const last = "said: Work two is done."
    await editor.prompt("work two")
    await Promise.all(all.map((client) => client.until((story) => story.at(-1) === last)))
    const killed = [editor.kill(), chat?.kill(), gateway.ended]
    gateway.child.kill("SIGKILL")
    await Promise.all(killed)
    await startGateway()
    for (const client of all) await client.comeBack()
    await Promise.all(all.map((client) => client.rest()))
    await allTell(last)
    await goesOn()
    expect(editor.faults()).toEqual([])
  }, 120_000)
})
