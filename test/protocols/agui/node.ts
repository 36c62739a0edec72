/** A real node behind the gateway, and the official client: a database, a scripted model, loopback HTTP. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { HttpAgent } from "@ag-ui/client"
import { Deferred, Effect, Exit, Layer, Schema, Scope } from "effect"
import { Sessions, type SessionsService } from "../../../src/actors/sessions.ts"
import type { GatewaySettings } from "../../../src/domain/gateway-settings.ts"
import { text } from "../../../src/domain/message.ts"
import { defineHarness } from "../../../src/harness/declare.ts"
import { anyPlugin, definePlugin } from "../../../src/harness/define.ts"
import type { Script } from "../../../src/models/providers/script-file.ts"
import type { AguiEvent } from "../../../src/protocols/agui/protocol.ts"
import { serveGateway } from "../../../src/protocols/gateway.ts"
import { SuperPi } from "../../../src/super-pi.ts"
import { defineTool } from "../../../src/tools/define.ts"
import { protocolService } from "../service.ts"

export interface AguiNode {
  readonly url: string
  readonly sessions: SessionsService
  readonly directory: string
  /** How often the tool `act` acted. */
  readonly acts: () => number
  /** Lets the tool `wait` end, and says when it began. */
  readonly waiting: Deferred.Deferred<void>
  readonly release: Deferred.Deferred<void>
  readonly stop: () => Promise<void>
}

/** The tool `act` has to be allowed by a person. */
const askFirst = anyPlugin(
  definePlugin({
    name: "ask-first",
    description: "Asks before act.",
    hooks: {
      beforeTool: ({ name }) =>
        Effect.succeed(
          name === "act" ? { type: "ask" as const, rule: "ask", title: "Act?", reason: "It has effects." } : undefined,
        ),
    },
  }),
)

const harness = defineHarness(
  {
    id: "test",
    name: "Test",
    description: "For tests",
    prompt: "Test.",
    plugins: ["ask-first", "questionnaire", "todo", "subagent"],
  },
  { plugins: [askFirst] },
)

export const startNode = async (options: {
  readonly rules: Script["rules"]
  readonly directory?: string
  readonly tokens?: GatewaySettings["tokens"]
  readonly chunkMs?: number
}): Promise<AguiNode> => {
  const directory = options.directory ?? realpathSync(mkdtempSync(join(tmpdir(), "super-pi-agui-")))
  const scope = Effect.runSync(Scope.make())
  let acts = 0
  const waiting = Effect.runSync(Deferred.make<void>())
  const release = Effect.runSync(Deferred.make<void>())
  const act = defineTool({
    name: "act",
    description: "Acts.",
    parameters: Schema.Struct({}),
    effects: ["state_write"],
    replay: "unsafe",
    execute: () => Effect.sync(() => ({ output: [text(`acted ${++acts}`)] })),
  })
  const wait = defineTool({
    name: "wait",
    description: "Waits.",
    parameters: Schema.Struct({}),
    effects: ["read"],
    replay: "safe",
    execute: () =>
      Effect.zipRight(Deferred.succeed(waiting, undefined), Deferred.await(release)).pipe(
        Effect.as({ output: [text("waited")] }),
      ),
  })
  const layer = SuperPi.layer({
    storage: { path: join(directory, "node.db") },
    models: { model: "script/test", script: { rules: options.rules } },
    builtinTools: false,
    tools: [act, wait],
    extraPlugins: [askFirst],
    harness: "test",
    extraHarnesses: [harness],
  })
  const started = Effect.gen(function* () {
    const context = yield* Layer.buildWithScope(layer, scope)
    const sessions = yield* Effect.provide(Sessions, context)
    const settings = options.tokens === undefined ? {} : { tokens: options.tokens }
    const { url } = yield* serveGateway(protocolService(sessions), { port: 0, settings })
    return { sessions, url }
  })
  const { sessions, url } = await Effect.runPromise(Scope.extend(started, scope))
  return {
    url,
    sessions,
    directory,
    acts: () => acts,
    waiting,
    release,
    stop: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      if (options.directory === undefined) rmSync(directory, { recursive: true, force: true })
    },
  }
}

export interface Agent extends HttpAgent {
  /** Every event of its runs, as the client's own pipeline passed it. */
  readonly seen: Array<AguiEvent>
}

/** The official client on a thread. */
export const agentOf = (url: string, threadId: string, headers: Record<string, string> = {}): Agent => {
  const seen: Array<AguiEvent> = []
  const agent = new HttpAgent({ url: `${url}/agui/v1/run`, threadId, headers })
  agent.subscribe({ onEvent: ({ event }) => void seen.push(event as AguiEvent) })
  return Object.assign(agent, { seen })
}

let messages = 0
/** Adds a message of the user. */
export const says = (agent: HttpAgent, content: string, id = `m-${process.pid}-${++messages}`): string => {
  agent.messages.push({ id, role: "user", content })
  return id
}

/** A stream of server-sent events by `fetch`: what has come, and a wait for what has not. */
export const openStream = async (url: string, init: RequestInit = {}) => {
  const leave = new AbortController()
  const response = await fetch(url, { ...init, signal: leave.signal })
  const events: Array<AguiEvent> = []
  const ids: Array<string> = []
  const waiting = new Set<() => void>()
  const wake = () => {
    for (const look of [...waiting]) look()
  }
  let ended = false
  const reading = (async () => {
    const decoder = new TextDecoder()
    let rest = ""
    for await (const chunk of response.body ?? []) {
      rest += decoder.decode(chunk as Uint8Array, { stream: true })
      const frames = rest.split("\n\n")
      rest = frames.pop() ?? ""
      for (const frame of frames) {
        for (const line of frame.split("\n")) {
          if (line.startsWith("data: ")) events.push(JSON.parse(line.slice(6)))
          if (line.startsWith("id: ")) ids.push(line.slice(4))
        }
      }
      wake()
    }
  })().catch(() => undefined)
  void reading.then(() => {
    ended = true
    wake()
  })
  /** The first event that satisfies `match`, from `from` on. */
  const first = (match: (event: AguiEvent) => boolean, from = 0): Promise<AguiEvent> =>
    new Promise((resolve, reject) => {
      const look = () => {
        const found = events.slice(from).find(match)
        if (found === undefined && !ended) return
        waiting.delete(look)
        if (found === undefined) reject(new Error(`the stream ended without it: ${JSON.stringify(events.slice(-5))}`))
        else resolve(found)
      }
      waiting.add(look)
      look()
    })
  return { status: response.status, response, events, ids, first, ended: reading, leave: () => leave.abort() }
}

export const post = (url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  })
