/**
 * A client of the Agent Client Protocol, as an editor is one: it starts `super-pi acp`, opens a session in the current directory, sends one
 * prompt, prints what is streamed, and asks on the terminal whether a call may run.
 *
 *   npx esbuild examples/acp-client.ts --bundle --platform=node --format=esm --packages=external | node --input-type=module - "list the files"
 *   SUPER_PI_AGENT="super-pi acp --mode plan" node acp-client.mjs "explain package.json"
 */
import { spawn } from "node:child_process"
import { createInterface } from "node:readline/promises"
import { Readable, Writable } from "node:stream"
import { client, ndJsonStream, type RequestPermissionRequest, type SessionUpdate } from "@agentclientprotocol/sdk"

const words = process.argv.slice(2).join(" ") || "What is in this directory?"
const [command = "bin/super-pi", ...args] = (process.env.SUPER_PI_AGENT ?? "bin/super-pi acp").split(" ")
const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] })
const terminal = createInterface({ input: process.stdin, terminal: false })[Symbol.asyncIterator]()

const show = (update: SessionUpdate): void => {
  switch (update.sessionUpdate) {
    case "agent_message_chunk":
      if (update.content.type === "text") process.stdout.write(update.content.text)
      break
    case "tool_call":
      console.log(`\n→ ${update.kind ?? "other"}: ${update.title}`)
      break
    case "tool_call_update":
      if (update.status === "in_progress" && update.title) console.log(`→ ${update.title}`)
      if (update.status === "completed" || update.status === "failed") console.log(`← ${update.status}`)
      break
    case "plan":
      for (const { content, status } of update.entries) console.log(`  [${status}] ${content}`)
      break
  }
}

/** The number of an option, typed; anything else, and the end of the input, choose none. */
const choose = async ({ options, toolCall }: RequestPermissionRequest): Promise<string | null> => {
  console.log(`\n${toolCall.title ?? "May it run?"}`)
  for (const [index, { name }] of options.entries()) console.log(`  ${index + 1}) ${name}`)
  const line = await terminal.next()
  return line.done === true ? null : (options[Number(line.value) - 1]?.optionId ?? null)
}

const app = client({ name: "example" })
  .onNotification("session/update", ({ params }) => show(params.update))
  .onRequest("session/request_permission", async ({ params }) => {
    const optionId = await choose(params)
    return { outcome: optionId === null ? { outcome: "cancelled" } : { outcome: "selected", optionId } }
  })

// Node's web streams and the protocol's name the same thing by two types.
const input = Writable.toWeb(agent.stdin) as WritableStream<Uint8Array>
const output = Readable.toWeb(agent.stdout) as ReadableStream<Uint8Array>
await app.connectWith(ndJsonStream(input, output), async (connection) => {
  await connection.request("initialize", { protocolVersion: 1, clientCapabilities: {} })
  const { sessionId } = await connection.request("session/new", { cwd: process.cwd(), mcpServers: [] })
  const { stopReason } = await connection.request("session/prompt", {
    sessionId,
    prompt: [{ type: "text", text: words }],
  })
  console.log(`\n(${stopReason}; session ${sessionId})`)
})
agent.stdin.end()
agent.on("exit", (code) => process.exit(code ?? 1))
