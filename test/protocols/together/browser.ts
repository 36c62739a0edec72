/** A page over AG-UI: the official client on the events of a session, and the input route beside it. Its story is the client's own messages. */
import { HttpAgent } from "@ag-ui/client"
import type { Message, RunAgentInput } from "@ag-ui/core"
import type { AguiEvent } from "../../../src/protocols/agui/protocol.ts"
import { post } from "../agui/node.ts"
import { type Client, ended, untilStory, Waiters } from "./client.ts"

class Following extends HttpAgent {
  protected override requestInit(_input: RunAgentInput): RequestInit {
    return { method: "GET", headers: { accept: "text/event-stream" }, signal: this.abortController.signal }
  }
}

/** A fetch whose answer just ends where the node died: the client leaves a rejection unhandled when it cancels a broken body. */
const ending = async (url: string, init: RequestInit): Promise<Response> => {
  const response = await fetch(url, init)
  const reader = response.body?.getReader()
  const body = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const read = await reader?.read().catch(() => null)
      if (read?.value === undefined) controller.close()
      else controller.enqueue(read.value)
    },
    cancel: () => reader?.cancel().catch(() => {}),
  })
  return new Response(body, response)
}

/** The messages that the client holds, as a story; the name of a tool stands in the call. */
const storyOf = (messages: ReadonlyArray<Message>): ReadonlyArray<string> => {
  const names = new Map<string, string>()
  return messages.flatMap((message) => {
    if (message.role === "user") return [`user: ${String(message.content)}`]
    if (message.role === "tool") return [ended(names.get(message.toolCallId) ?? "", message.error !== undefined)]
    if (message.role !== "assistant") return []
    for (const { function: called, id } of message.toolCalls ?? []) names.set(id, called.name)
    return message.content === undefined || message.content === "" ? [] : [`said: ${message.content}`]
  })
}

export interface Browser extends Client {
  /** Every event that the client's own verification let through. */
  readonly events: () => ReadonlyArray<AguiEvent>
}

export const openBrowser = async (url: string, conversationId: number): Promise<Browser> => {
  const session = `${url}/agui/v1/sessions/${conversationId}`
  const waiters = new Waiters()
  let requests = 0
  let events: Array<AguiEvent> = []
  let agent: HttpAgent
  const connect = async () => {
    const following = new Following({ url: `${session}/events`, threadId: String(conversationId), fetch: ending })
    agent = following
    events = []
    following.subscribe({
      onEvent: ({ event }) => {
        events.push(event as AguiEvent)
        // The client applies an event after it has told it.
        setImmediate(() => waiters.wake())
      },
    })
    // Ends with the stream: an abort, or a node that died.
    following.runAgent().catch(() => {})
    await waiters.until(
      "the messages",
      () => (events.some(({ type }) => type === "RUN_FINISHED") ? true : null),
      () => events,
    )
  }
  await connect()
  const story = () => storyOf(agent.messages)
  const question = (): number | null => {
    const open = new Set<number>()
    for (const event of events) {
      if (event.type !== "CUSTOM") continue
      if (event.name === "permission_request") open.add(event.value.question_id)
      if (event.name === "question_settled") open.delete(event.value.question_id)
    }
    return [...open][0] ?? null
  }
  const input = async (body: object): Promise<Response> => {
    const response = await post(`${session}/input`, body)
    if (!response.ok && response.status !== 409) throw new Error(`${response.status} ${await response.text()}`)
    return response
  }
  return {
    name: "browser",
    story,
    events: () => events,
    prompt: async (text) => void (await input({ type: "prompt", text, id: `browser-${++requests}` })),
    asked: async () => void (await waiters.until("a question", question, () => events.slice(-3))),
    allow: async () => {
      const questionId = await waiters.until("a question", question, () => events.slice(-3))
      const { status } = await input({ type: "permission", questionId, answer: "allow_once" })
      return status === 200
    },
    recalls: () => false,
    cancel: async () => void (await input({ type: "cancel" })),
    rest: async () => {
      const idle = () => (agent.state.status === "idle" && events.at(-1)?.type === "RUN_FINISHED" ? true : null)
      await waiters.until("rest", idle, () => events.slice(-3))
    },
    until: untilStory("the browser", waiters, story),
    comeBack: connect,
    close: () => agent.abortRun(),
  }
}
