/**
 * Steady work for whatever happens to a cluster meanwhile: conversations in which one short turn follows another, each submitted again under
 * its request id until somebody acknowledges it. Every acknowledgement is a promise.
 */
import type { Script, ScriptStep } from "../../../src/models/providers/script-file.ts"
import { ConnectionLost, RpcFault } from "../../../stress/rpc-client.ts"
import type { Promises } from "./busy.ts"
import { isLong } from "./figures.ts"
import type { NodeProcess } from "./process.ts"
import type { RpcSocket } from "./rpc-socket.ts"
import type { System } from "./system.ts"
import { limitMs, pause } from "./until.ts"

/** Turns that a conversation of a load has before it repeats none: more than it gets through. */
export const turnsEach = isLong ? 1_500 : 300

/** What a client thinks before its next turn, in ms. */
export const thinkMs = 100

export const keyOf = (conversation: number, turn: number): string => `c${conversation}t${turn}`
export const answerOf = (key: string): string => `answer ${key}: ${"word ".repeat(10)}end`
export const promptOf = (key: string): string => `turn ${key} please`
/** Every third turn makes an unsafe call. */
export const tokenOf = (key: string, turn: number): string | null => (turn % 3 === 0 ? `${key}.call` : null)

/** What the model answers to a load of `conversations`. */
export const loadScript = (conversations: number, log: string): Script => ({
  rules: Array.from({ length: conversations * turnsEach }, (_, at) => {
    const turn = Math.floor(at / conversations)
    const key = keyOf(at % conversations, turn)
    const token = tokenOf(key, turn)
    const answer: ScriptStep = { text: answerOf(key), chunks: 5, chunkMs: 20 }
    if (token === null) return { match: `turn ${key} please$`, steps: [answer] }
    const command = `printf 'start ${token}\\n' >> '${log}'; sleep 0.05; printf 'end ${token}\\n' >> '${log}'`
    return { match: `turn ${key} please$`, steps: [{ tools: [{ name: "bash", args: { command } }] }, answer] }
  }),
})

/** Faults that a client is told to come back after; whoever gives up at them would lose nothing either. */
const passing = (error: unknown): boolean =>
  error instanceof ConnectionLost || (error instanceof RpcFault && (error.code === -32_003 || isStorage(error)))

const isStorage = ({ data }: RpcFault): boolean =>
  typeof data === "object" && data !== null && "code" in data && (data.code === "storage" || data.code === "cluster")

export class Load {
  /** What was acknowledged. */
  readonly promises: Promises = new Map()
  readonly tokens: Array<string> = []
  /** Answers so far, by conversation. */
  readonly done: Array<number>
  /** Answers that a client had to come back for. */
  repeats = 0
  /** Faults that should not be. */
  readonly faults: Array<string> = []
  readonly #system: System
  readonly #sockets = new Map<NodeProcess, RpcSocket>()
  #conversations: ReadonlyArray<number> = []
  #going = true
  #ended: Promise<unknown> = Promise.resolve()

  constructor(system: System, conversations: number) {
    this.#system = system
    this.done = Array.from({ length: conversations }, () => 0)
  }

  /** Opens the conversations and lets them work until {@link stop}. */
  async start(): Promise<void> {
    const open = (at: number) =>
      this.#call<{ conversation_id: number }>(at, "session.open", {
        agent: { cwd: this.#system.workspace },
        requestId: `load-${at}`,
      })
    this.#conversations = (await Promise.all(this.done.map((_, at) => open(at)))).map((found) => found.conversation_id)
    this.#ended = Promise.all(
      this.#conversations.map((conversation, at) =>
        this.#work(conversation, at).catch((error: Error) => this.faults.push(`client ${at}: ${error.message}`)),
      ),
    )
  }

  /** Answers of all conversations together. */
  get total(): number {
    return this.done.reduce((sum, one) => sum + one, 0)
  }

  /** Ends after the turns that run; every submission has its answer then. */
  async stop(): Promise<void> {
    this.#going = false
    await this.#ended
    for (const socket of this.#sockets.values()) socket.close()
  }

  async #work(conversation: number, at: number): Promise<void> {
    for (let turn = 0; this.#going && turn < turnsEach; turn++) {
      const key = keyOf(at, turn)
      const prompt = promptOf(key)
      const call = { conversationId: conversation, content: prompt, requestId: prompt }
      const receipt = await this.#call<{ submission_id: number }>(at + turn, "session.submit", call)
      const known = this.promises.get(conversation) ?? []
      this.promises.set(conversation, [...known, { submission: receipt.submission_id, prompt, answer: answerOf(key) }])
      const token = tokenOf(key, turn)
      if (token !== null) this.tokens.push(token)
      const asked = { conversationId: conversation, submissionId: receipt.submission_id }
      const settled = await this.#call<{ status: string; text: string | null }>(at + turn, "session.await", asked)
      if (settled.status !== "done" || settled.text !== answerOf(key)) {
        this.faults.push(`${prompt}: ${settled.status} ${settled.text}`)
      }
      this.done[at] = (this.done[at] ?? 0) + 1
      await pause(thinkMs)
    }
  }

  /** Asks one node after the other until somebody answers. */
  async #call<A>(first: number, method: string, params: object): Promise<A> {
    const deadline = Date.now() + limitMs
    for (let at = first; ; at++) {
      try {
        return await (await this.#socket(this.#system.node(at))).call<A>(method, params)
      } catch (error) {
        if (!passing(error) || Date.now() > deadline) throw error
        this.repeats++
        await pause(50)
      }
    }
  }

  async #socket(node: NodeProcess): Promise<RpcSocket> {
    const known = this.#sockets.get(node)
    if (known?.isOpen) return known
    const made = await this.#system.connect(node)
    this.#sockets.set(node, made)
    return made
  }
}
