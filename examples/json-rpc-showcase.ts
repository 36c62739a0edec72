/**
 * Back-pressure over JSON-RPC, made visible: a watcher that does not acknowledge gets two deliveries and then nothing, while the conversation
 * goes on at full speed; once it acknowledges, what waited comes together, and nothing is missing.
 *
 *   node examples/json-rpc-showcase.ts bin/super-pi
 */
import { createConnection } from "node:net"
import { RpcClient } from "./json-rpc/client.ts"
import { startServer } from "./json-rpc/server.ts"

interface Delivery {
  readonly watchId: string
  readonly delivery: number
  readonly events: ReadonlyArray<{ readonly type: string; readonly seq_no: number; readonly text?: string }>
}

const say = (line: string) => process.stdout.write(`${line}\n`)
const server = await startServer(process.argv[2] ?? "bin/super-pi")
const driver = await RpcClient.connect(server.port)

// A watcher by hand: what it acknowledges, and when, is its own business.
const watcher = createConnection({ host: "127.0.0.1", port: server.port })
const deliveries: Array<Delivery> = []
let arrived = () => {}
let buffer = ""
watcher.setEncoding("utf8").on("data", (chunk: string) => {
  buffer += chunk
  for (let end = buffer.indexOf("\n"); end >= 0; end = buffer.indexOf("\n")) {
    const message = JSON.parse(buffer.slice(0, end))
    buffer = buffer.slice(end + 1)
    if (message.method === "session.event") deliveries.push(message.params)
    arrived()
  }
})
const notify = (method: string, params: object) =>
  watcher.write(`${JSON.stringify({ jsonrpc: "2.0", method, params })}\n`)
const until = async (holds: () => boolean) => {
  while (!holds()) await new Promise<void>((resolve) => (arrived = resolve))
}

try {
  const { conversation_id: conversationId } = await driver.request("session.open", { title: "showcase" })
  watcher.write(`{"jsonrpc":"2.0","id":1,"method":"session.watch","params":{"conversationId":${conversationId}}}\n`)
  await until(() => deliveries.length === 1)
  say(`delivery 1: ${deliveries[0]?.events.map(({ type }) => type).join(", ")}`)

  const ask = async (content: string) => {
    const { submission_id: submissionId } = await driver.request("session.submit", { conversationId, content })
    const { text } = await driver.request("session.await", { conversationId, submissionId })
    return text
  }
  say(`the conversation answers: ${await ask("one")}`)
  say(`the conversation answers: ${await ask("two")}`)
  await until(() => deliveries.length === 2)
  say(`the watcher has acknowledged nothing and got ${deliveries.length} deliveries, the most that may be on their way`)

  notify("session.ack", { watchId: deliveries[0]?.watchId, delivery: 2 })
  const seen = () => deliveries.flatMap(({ events }) => events)
  let acknowledged = 2
  while (seen().filter(({ type }) => type === "turn_completed").length < 2) {
    await until(() => deliveries.length > acknowledged)
    acknowledged = deliveries.length
    notify("session.ack", { watchId: deliveries[0]?.watchId, delivery: acknowledged })
  }
  const numbers = seen()
    .slice(1)
    .map(({ seq_no }) => seq_no)
  const whole = numbers.every((number, index) => index === 0 || number === (numbers[index - 1] ?? 0) + 1)
  say(`after acknowledging, everything that waited came: ${whole ? "no gap, no double" : "something is missing"}`)
} finally {
  watcher.destroy()
  driver.close()
  await server.stop()
}
