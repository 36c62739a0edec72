/**
 * Asks a running server one prompt over JSON-RPC and prints the answer as it comes.
 *
 *   super-pi rpc 4001
 *   node examples/json-rpc-client.ts 4001 "What is durable?"
 */
import { RpcClient, RpcFailure } from "./json-rpc/client.ts"

const [address = "4001", prompt = "What is durable?"] = process.argv.slice(2)
const client = await RpcClient.connect(/^\d+$/.test(address) ? Number(address) : address)
try {
  const token = process.env.SUPER_PI_GATEWAY_TOKEN
  if (token !== undefined && token !== "") await client.request("auth.login", { token })
  const { conversation_id: conversationId } = await client.request("session.open", { title: prompt.slice(0, 60) })
  const watching = (async () => {
    for await (const { events } of client.watch(conversationId)) {
      for (const event of events) {
        if (event.type === "text_delta") process.stdout.write(event.text)
        if (event.type === "tool_started") process.stdout.write(`\n[${event.name}]\n`)
        if (event.type === "turn_completed" || event.type === "turn_error" || event.type === "turn_cancelled") return
      }
    }
  })()
  // The same requestId again, after a lost connection, would give the same submission.
  const { submission_id: submissionId } = await client.request("session.submit", {
    conversationId,
    content: prompt,
    requestId: `example-${process.pid}`,
  })
  const { status } = await client.request("session.await", { conversationId, submissionId })
  await watching
  process.stdout.write(`\n(${status})\n`)
} catch (error) {
  process.stderr.write(`${error instanceof RpcFailure ? `${error.code}: ${error.message}` : String(error)}\n`)
  process.exitCode = 1
} finally {
  client.close()
}
