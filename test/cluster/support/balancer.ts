/**
 * Clients behind a load balancer: the nodes in turn, without those that are not `/ready` at the last look; a request goes on to the next node only
 * where a connection was refused (nothing was sent) or the answer was 503 with `Retry-After` (nothing was done). Everything else that is not
 * the right answer is a failed request: a connection that broke, a stream that was cut off, another status, other words.
 */
import type { NodeProcess } from "./process.ts"
import { limitMs, pause } from "./until.ts"

export interface BalancerFigures {
  answered: number
  /** Attempts that went on to the next node. */
  passedOn: number
  readonly failed: Array<string>
  /** Of answered requests, in ms. */
  readonly times: Array<number>
}

/** Between two looks at who is ready, in ms. */
const probeMs = 100

/** Whether nothing of a request was sent. */
const isRefused = (error: unknown): boolean => {
  const cause = error instanceof Error ? error.cause : undefined
  return typeof cause === "object" && cause !== null && "code" in cause && cause.code === "ECONNREFUSED"
}

/** The words of a stream of `chat.completion.chunk`; a line that says why where it broke. */
const wordsOf = (stream: string): string => {
  let words = ""
  for (const line of stream.split("\n")) {
    if (!line.startsWith("data: ") || line === "data: [DONE]") continue
    const chunk: { choices?: ReadonlyArray<{ delta?: { content?: string } }>; error?: unknown } = JSON.parse(
      line.slice(6),
    )
    if (chunk.error !== undefined) return `error ${JSON.stringify(chunk.error)}`
    words += chunk.choices?.[0]?.delta?.content ?? ""
  }
  return stream.includes("data: [DONE]") ? words : `cut off behind ${JSON.stringify(words)}`
}

export class Balancer {
  readonly figures: BalancerFigures = { answered: 0, passedOn: 0, failed: [], times: [] }
  readonly #nodes: ReadonlyArray<NodeProcess>
  readonly #ready = new Set<NodeProcess>()
  #next = 0
  #going = true

  constructor(nodes: ReadonlyArray<NodeProcess>) {
    this.#nodes = nodes
    for (const node of nodes) {
      this.#ready.add(node)
      void this.#probe(node)
    }
  }

  stop(): void {
    this.#going = false
  }

  async #probe(node: NodeProcess): Promise<void> {
    while (this.#going) {
      if ((await node.probe("/ready")) === 200) this.#ready.add(node)
      else this.#ready.delete(node)
      await pause(probeMs)
    }
  }

  /** The next one that is ready; where none is, the next one. */
  #choose(): NodeProcess {
    for (let tried = 0; tried < this.#nodes.length; tried++) {
      const node = this.#nodes[this.#next++ % this.#nodes.length] as NodeProcess
      if (this.#ready.has(node)) return node
    }
    return this.#nodes[this.#next++ % this.#nodes.length] as NodeProcess
  }

  /** One turn of a session, which is to be answered with `answer`. */
  async ask(session: string, prompt: string, answer: string, stream: boolean): Promise<void> {
    const start = performance.now()
    const words = await this.#send(session, prompt, stream).catch(
      (error: Error) => `${error.message} ${String(error.cause)}`,
    )
    if (words !== answer) {
      this.figures.failed.push(`${prompt}: ${words}`)
      return
    }
    this.figures.answered++
    this.figures.times.push(Math.round(performance.now() - start))
  }

  async #send(session: string, prompt: string, stream: boolean): Promise<string> {
    const deadline = Date.now() + limitMs
    for (;;) {
      const node = this.#choose()
      try {
        const response = await fetch(`${node.url}/v1/chat/completions`, {
          method: "POST",
          headers: { "content-type": "application/json", "x-session-id": session },
          body: JSON.stringify({ model: "super-pi-code", stream, messages: [{ role: "user", content: prompt }] }),
          signal: AbortSignal.timeout(limitMs),
        })
        const text = await response.text()
        if (response.status === 200) {
          if (stream) return wordsOf(text)
          const said: { choices: ReadonlyArray<{ message: { content: string } }> } = JSON.parse(text)
          return said.choices[0]?.message.content ?? ""
        }
        if (response.status !== 503 || !response.headers.has("retry-after"))
          return `${node.name} ${response.status} ${text}`
      } catch (error) {
        if (!isRefused(error)) throw error
      }
      if (Date.now() > deadline) return "no node answered"
      this.figures.passedOn++
      await pause(100)
    }
  }
}
