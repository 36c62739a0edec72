/**
 * One streaming client: asks, reads to the end, and says how old each delta was when it came.
 */
import { Agent, request } from "node:http"
import { isRecord } from "../../src/domain/json.ts"
import { agesOf } from "./clock.ts"

const agent = new Agent({ keepAlive: true, maxSockets: 1_000 })

const body = JSON.stringify({
  model: "bench/clock",
  stream: true,
  messages: [{ role: "user", content: "what time is it?" }],
})

/** The text of one event, or null for one without. */
const contentOf = (data: string): string | null => {
  if (data === "[DONE]") return null
  const chunk: unknown = JSON.parse(data)
  if (isRecord(chunk) && isRecord(chunk.error)) throw new Error(`the server said ${data}`)
  const choice: unknown = isRecord(chunk) && Array.isArray(chunk.choices) ? chunk.choices[0] : undefined
  const delta = isRecord(choice) ? choice.delta : undefined
  return isRecord(delta) && typeof delta.content === "string" ? delta.content : null
}

/** Ages in ms, one for each delta. `name` is the client's session. */
export const follow = (port: number, name: string): Promise<ReadonlyArray<number>> =>
  new Promise((resolve, reject) => {
    const ages: Array<number> = []
    const asked = request(
      {
        agent,
        port,
        host: "127.0.0.1",
        path: "/v1/chat/completions",
        method: "POST",
        headers: { "content-type": "application/json", "x-session-id": name },
      },
      (response) => {
        let waiting = ""
        let stamps = ""
        response.setEncoding("utf8")
        response.on("data", (text: string) => {
          const blocks = (waiting + text).split("\n\n")
          waiting = blocks.pop() ?? ""
          for (const block of blocks) {
            const content = block.startsWith("data: ") ? contentOf(block.slice(6)) : null
            if (content === null) continue
            const read = agesOf(stamps + content)
            stamps = read.rest
            for (const age of read.ages) ages.push(age)
          }
        })
        response.on("end", () =>
          response.statusCode === 200 ? resolve(ages) : reject(new Error(`status ${response.statusCode}`)),
        )
        response.on("error", reject)
      },
    )
    asked.on("error", reject)
    asked.end(body)
  })
