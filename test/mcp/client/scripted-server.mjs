/**
 * An MCP server over stdio with the behaviors that tests need, without any library: what goes wrong here goes wrong on purpose. It notes
 * what it is told in the file MCP_NOTES, one JSON line each.
 */
import { appendFileSync, existsSync, writeFileSync } from "node:fs"
import { createInterface } from "node:readline"

const { MCP_NOTES: notes, MCP_NAME: name = "scripted", MCP_BEHAVIOR: behavior = "", MCP_ONCE: once } = process.env

const note = (value) => notes && appendFileSync(notes, `${JSON.stringify({ pid: process.pid, ...value })}\n`)
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
const reply = (id, result) => send({ id, result })
const words = (text) => ({ content: [{ type: "text", text }] })

const schema = { type: "object", properties: { text: { type: "string" } } }
const tool = (toolName, annotations) => ({
  name: toolName,
  description: `The tool ${toolName}`,
  inputSchema: schema,
  annotations,
})
let tools = [
  tool("read", { readOnlyHint: true }),
  tool("write", undefined),
  tool("put", { idempotentHint: true }),
  tool("slow", { readOnlyHint: true }),
  tool("ask", undefined),
  tool("die", undefined),
  tool("dieOnce", { readOnlyHint: true }),
  tool("grow", undefined),
  tool("fail", undefined),
  tool("silent", undefined),
  tool("rich", { readOnlyHint: true }),
  tool("roots", { readOnlyHint: true }),
]

note({ event: "started", argv: process.argv.slice(2) })
process.stderr.write(`${name} is up\n`)
if (behavior === "exit") process.exit(3)
if (behavior === "exit-once" && once && !existsSync(once)) {
  writeFileSync(once, "")
  process.exit(3)
}

const waiting = new Map()
let nextId = 1000
const ask = (method, params) => {
  const id = nextId++
  send({ id, method, params })
  return new Promise((resolve) => waiting.set(id, resolve))
}
const cancelled = new Set()

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

/** A line without end, as fast as it is read; notes how far it came. */
const flood = async () => {
  const piece = "x".repeat(1024 * 1024)
  for (let mebibytes = 1; mebibytes <= 200; mebibytes++) {
    if (!process.stdout.write(piece)) await new Promise((resolve) => process.stdout.once("drain", resolve))
    note({ event: "flood", mebibytes })
  }
}
process.stdout.on("error", () => process.exit(4))

const call = async (id, { _meta, arguments: args = {}, name: toolName }) => {
  note({ event: "call", tool: toolName, args })
  // What comes before the answer, on order.
  if (typeof args.before === "string") process.stdout.write(Buffer.from(args.before, "base64"))
  if (typeof args.deep === "number") {
    const structured = `${'{"a":'.repeat(args.deep)}1${"}".repeat(args.deep)}`
    return process.stdout.write(
      `{"jsonrpc":"2.0","id":${id},"result":{"content":[],"structuredContent":${structured}}}\n`,
    )
  }
  if (typeof args.length === "number") return reply(id, words("y".repeat(args.length)))
  if (args.text === "flood" && behavior === "flood") return void flood()
  switch (toolName) {
    case "die":
      return process.kill(process.pid, "SIGKILL")
    case "dieOnce":
      if (once && !existsSync(once)) {
        writeFileSync(once, "")
        return process.kill(process.pid, "SIGKILL")
      }
      return reply(id, words("still here"))
    case "slow": {
      const token = _meta?.progressToken
      for (let step = 1; !cancelled.has(id) && step <= 10_000; step++) {
        if (token !== undefined)
          send({
            method: "notifications/progress",
            params: { progressToken: token, progress: step, total: 10_000, message: "at it" },
          })
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
      return
    }
    case "silent":
      return
    case "ask": {
      const requestedSchema = {
        type: "object",
        properties: {
          color: { type: "string", enum: ["red", "blue"], title: "Color" },
          count: { type: "integer", description: "how many" },
          sure: { type: "boolean" },
        },
        required: ["color", "count"],
      }
      const answer = await ask("elicitation/create", { message: "What now?", requestedSchema })
      return reply(id, words(JSON.stringify(answer.result ?? answer.error)))
    }
    case "grow":
      tools = [...tools, tool("grown", { readOnlyHint: true })]
      send({ method: "notifications/tools/list_changed" })
      return reply(id, words("grown"))
    case "fail":
      return reply(id, { ...words("it did not work"), isError: true })
    case "roots":
      return reply(id, words(JSON.stringify((await ask("roots/list", {})).result)))
    case "rich":
      return reply(id, {
        content: [
          { type: "text", text: "look" },
          { type: "image", data: png, mimeType: "image/png" },
          { type: "resource", resource: { uri: "test://a", mimeType: "text/plain", text: "inside" } },
          { type: "resource_link", uri: "test://b", name: "b" },
          { type: "audio", data: "AAAA", mimeType: "audio/wav" },
        ],
        structuredContent: { answer: 42 },
      })
    default:
      return reply(id, words(`${toolName}: ${args.text ?? ""}`))
  }
}

const pageSize = 5
const handle = (message) => {
  const { id, method, params } = message
  if (method === undefined) {
    waiting.get(id)?.(message)
    waiting.delete(id)
    return
  }
  if (id === undefined) {
    if (method === "notifications/cancelled") {
      note({ event: "cancelled", request: params.requestId })
      cancelled.add(params.requestId)
    }
    return
  }
  switch (method) {
    case "initialize":
      if (behavior === "hang") return
      return reply(id, {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name, version: "1.0.0" },
      })
    case "tools/list": {
      const from = Number(params?.cursor ?? 0)
      const nextCursor = from + pageSize < tools.length ? String(from + pageSize) : undefined
      return reply(id, {
        tools: tools.slice(from, from + pageSize),
        ...(nextCursor === undefined ? {} : { nextCursor }),
      })
    }
    case "tools/call":
      return void call(id, params)
    case "ping":
      return reply(id, {})
    default:
      return send({ id, error: { code: -32601, message: `no method ${method}` } })
  }
}

let begun = false
const take = (message) => {
  // Older servers: one that ends when what comes first is not `initialize`, one that says nothing to what it does not know.
  if (!begun && behavior === "strict" && message.method !== "initialize") process.exit(1)
  begun = true
  if (behavior === "mute" && message.method === "server/discover") return
  handle(message)
}
const begin = () => createInterface({ input: process.stdin }).on("line", (line) => take(JSON.parse(line)))
// As one that is installed first: longer than any question is waited for by default.
if (behavior === "slow") setTimeout(begin, 6_000)
else begin()
