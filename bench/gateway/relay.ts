/**
 * The peer, in a process of its own: the same chunks at the same times from a bare `node:http` server, which keeps nothing.
 */
import { createServer } from "node:http"
import { deltas, intervalMs, stamp } from "./clock.ts"

const chunkOf = (content: string): string =>
  JSON.stringify({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 0,
    model: "bench/clock",
    choices: [{ index: 0, delta: { content }, finish_reason: null }],
  })

/** Serves until the parent lets go of this process; tells it the port. */
export const runRelay = (): Promise<void> =>
  new Promise((resolve) => {
    const server = createServer((request, response) => {
      request.resume()
      response.writeHead(200, { "content-type": "text/event-stream" })
      let sent = 0
      const timer = setInterval(() => {
        response.write(`data: ${chunkOf(stamp())}\n\n`)
        sent++
        if (sent < deltas) return
        clearInterval(timer)
        response.end("data: [DONE]\n\n")
      }, intervalMs)
    })
    process.once("message", () => {
      server.closeAllConnections()
      server.close(() => resolve())
    })
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      process.send?.({ port: typeof address === "object" ? address?.port : 0 })
    })
  })
