/** A program over JSON-RPC on a WebSocket: it checks the numbers of what it is told, and acknowledges it. */
import { WebSocket } from "ws"
import type { Entry } from "../../../src/domain/entry.ts"
import type { Event } from "../../../src/domain/event.ts"
import { textOf } from "../../../src/domain/message.ts"
import { type Client, ended, untilStory, Waiters } from "./client.ts"

interface Answer {
  readonly id?: number
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly message: string; readonly data?: { readonly rule?: string } }
  readonly params?: { readonly watchId: string; readonly delivery: number; readonly events: ReadonlyArray<Event> }
}

export interface Socket extends Client {
  readonly call: (method: string, params?: object) => Promise<Answer>
  /** Every event of the present connection. */
  readonly events: () => ReadonlyArray<Event>
}

/** The entries of a transcript as a story. */
export const storyOf = (entries: ReadonlyArray<Entry>): ReadonlyArray<string> =>
  entries.flatMap(({ model }) =>
    model.flatMap((message) => {
      if (message.role === "user") return [`user: ${textOf(message.content)}`]
      if (message.role === "tool") return [ended(message.toolName, message.isError)]
      const said = message.role === "assistant" ? textOf(message.content) : ""
      return said === "" ? [] : [`said: ${said}`]
    }),
  )

export const openSocket = async (url: string, conversationId: number): Promise<Socket> => {
  const waiters = new Waiters()
  let ids = 0
  let requests = 0
  let socket: WebSocket
  let answers = new Map<number, (answer: Answer) => void>()
  let events: Array<Event> = []
  /** Entries by their ids: those of the transcript at the snapshot, then those of the events. */
  let entries = new Map<number, string>()

  const call = (method: string, params: object = {}): Promise<Answer> =>
    new Promise((done) => {
      answers.set(++ids, done)
      socket.send(JSON.stringify({ jsonrpc: "2.0", id: ids, method, params }))
    })
  let partial = ""
  const learn = (event: Event) => {
    if (event.type === "text_delta") partial += event.text
    if (["message_completed", "stream_reset", "turn_cancelled"].includes(event.type)) partial = ""
    if (event.type === "snapshot") partial = event.session.partial?.text ?? ""

    const last = events.at(-1)
    if (last !== undefined && event.seq_no !== last.seq_no + 1) throw new Error(`${event.seq_no} behind ${last.seq_no}`)
    events.push(event)
    const tell = (id: number, line: string) => {
      if (entries.has(id)) throw new Error(`entry ${id} came twice`)
      entries.set(id, line)
    }
    if (event.type === "tool_completed") tell(event.entry_id, ended(event.name, event.is_error))
    if (event.type !== "message_completed") return
    const said = textOf(event.content)
    if (event.role === "user") tell(event.entry_id, `user: ${said}`)
    else if (said !== "") tell(event.entry_id, `said: ${said}`)
  }
  const connect = async () => {
    answers = new Map()
    events = []
    entries = new Map()
    socket = new WebSocket(url)
    let early: Array<Event> | null = []
    socket.on("message", (data) => {
      const message: Answer = JSON.parse(String(data))
      if (message.id !== undefined) answers.get(message.id)?.(message)
      const { params } = message
      if (params === undefined) return
      for (const event of params.events) early === null ? learn(event) : early.push(event)
      const ack = { watchId: params.watchId, delivery: params.delivery }
      socket.send(JSON.stringify({ jsonrpc: "2.0", method: "session.ack", params: ack }))
      waiters.wake()
    })
    await new Promise<void>((done, fail) => socket.once("open", done).once("error", fail))
    socket.on("error", () => {})
    await call("session.watch", { conversationId, interactive: true })
    await waiters.until(
      "the snapshot",
      () => (early?.[0]?.type === "snapshot" ? true : null),
      () => early,
    )
    const [first] = early
    const { result } = await call("session.transcript", { conversationId })
    const known = first?.type === "snapshot" ? first.session.entries : 0
    for (const entry of (result as ReadonlyArray<Entry>).slice(0, known)) {
      const [line] = storyOf([entry])
      if (line !== undefined) entries.set(entry.id, line)
    }
    const came = early
    early = null
    for (const event of came) learn(event)
    waiters.wake()
  }
  await connect()

  const story = () => [...entries.values(), ...(partial === "" ? [] : [`said: ${partial}`])]
  const question = (): number | null => {
    const open = new Set<number>()
    for (const event of events) {
      if (event.type === "snapshot") for (const { question_id } of event.session.questions) open.add(question_id)
      if (event.type === "permission_request") open.add(event.question_id)
      if (event.type === "question_settled") open.delete(event.question_id)
    }
    return [...open][0] ?? null
  }
  return {
    name: "socket",
    story,
    call,
    events: () => events,
    prompt: async (content) => {
      const requestId = `socket-${++requests}`
      const { error } = await call("session.submit", { conversationId, content, requestId })
      if (error !== undefined) throw new Error(error.message)
    },
    asked: async () => void (await waiters.until("a question", question, () => events.slice(-3))),
    allow: async () => {
      const questionId = await waiters.until("a question", question, () => events.slice(-3))
      const { error } = await call("ui.respond", { questionId, answer: "allow_once" })
      if (error === undefined) return true
      if (error.data?.rule === "question_settled") return false
      throw new Error(error.message)
    },
    recalls: () => false,
    cancel: async () => void (await call("session.cancel", { conversationId })),
    rest: async () => {
      const idle = (): true | null => {
        const state = events.findLast(({ type }) => type === "state_changed" || type === "snapshot")
        const now = state?.type === "state_changed" ? state.to : state?.type === "snapshot" ? state.session.state : ""
        return now === "idle" ? true : null
      }
      await waiters.until("rest", idle, () => events.slice(-3))
    },
    until: untilStory("the socket", waiters, story),
    comeBack: connect,
    close: () => socket.terminate(),
  }
}
