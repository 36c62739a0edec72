/** An editor: `super-pi acp` as a process of its own, and the protocol's own client at its pipes. */
import { type ChildProcess, spawn } from "node:child_process"
import type { RequestPermissionResponse, SessionUpdate } from "@agentclientprotocol/sdk"
import { launcher } from "../../cli/program.ts"
import { type Editor as Connected, connectEditor } from "../acp/editor.ts"
import { type Client, ended, untilStory, Waiters } from "./client.ts"

export interface Editor extends Client {
  readonly conversationId: number
  /** Kills the process. */
  readonly kill: () => Promise<void>
  /** What was wrong with what the agent sent, in all of its lives. */
  readonly faults: () => ReadonlyArray<string>
}

/** Updates as a story. Chunks of one message are one text; a call counts when it has ended. */
const storyOf = (updates: ReadonlyArray<SessionUpdate>): ReadonlyArray<string> => {
  const story: Array<string> = []
  const names = new Map<string, string>()
  let last = ""
  for (const update of updates) {
    if (update.sessionUpdate === "user_message_chunk" || update.sessionUpdate === "agent_message_chunk") {
      const text = update.content.type === "text" ? update.content.text : ""
      const key = `${update.sessionUpdate}/${update.messageId ?? ""}`
      const again = /^\s*\[The answer starts over: [^\]]*\]\s*$/.test(text)
      if (again) {
        // The protocol takes nothing back, so this is said: what was streamed before is void.
        story.pop()
        last = ""
        continue
      }
      if (key === last) story.push(`${story.pop() ?? ""}${text}`)
      else story.push(`${update.sessionUpdate === "user_message_chunk" ? "user" : "said"}: ${text}`)
      last = key
    }
    if (update.sessionUpdate === "tool_call" || update.sessionUpdate === "tool_call_update") {
      // The only tool of the script.
      names.set(update.toolCallId, "bash")
      if (update.status !== "completed" && update.status !== "failed") continue
      story.push(ended(names.get(update.toolCallId) ?? "", update.status === "failed"))
      last = ""
    }
  }
  return story
}

export const openEditor = async (options: {
  readonly args: ReadonlyArray<string>
  readonly cwd: string
  readonly env: Record<string, string>
}): Promise<Editor> => {
  const waiters = new Waiters()
  const faults: Array<string> = []
  let child: ChildProcess
  let connected: Connected
  let sessionId = ""
  /** Prompts that are not answered. */
  let open = 0
  let answers: Array<(response: RequestPermissionResponse) => void> = []
  /** Own prompts are not echoed: they stand where they were typed. */
  let typed: Array<SessionUpdate> = []

  const start = async () => {
    answers = []
    typed = []
    const started = spawn(process.execPath, [launcher, "acp", ...options.args], {
      cwd: options.cwd,
      env: options.env,
      stdio: ["pipe", "pipe", "inherit"],
    })
    child = started
    started.stdin.on("error", () => {})
    connected = await connectEditor(
      { toAgent: started.stdin, fromAgent: started.stdout },
      {
        permission: (_request, signal) =>
          new Promise((done) => {
            const settle = (response: RequestPermissionResponse) => {
              answers = answers.filter((one) => one !== settle)
              done(response)
              waiters.wake()
            }
            signal.addEventListener("abort", () => settle({ outcome: { outcome: "cancelled" } }))
            answers.push(settle)
            waiters.wake()
          }),
      },
    )
    started.stdout.on("data", () => setImmediate(() => waiters.wake()))
    return connected
  }
  const { agent } = await start()
  const created = await agent.request("session/new", { cwd: options.cwd, mcpServers: [] })
  sessionId = created.sessionId
  const { conversation } = (created._meta as { readonly superPi: { readonly conversation: number } }).superPi

  const order: Array<{ readonly at: number; readonly update: SessionUpdate }> = []
  const story = () => {
    const told = connected.updates.map(({ update }) => update)
    const all: Array<SessionUpdate> = []
    told.forEach((update, at) => {
      for (const own of order) if (own.at === at && typed.includes(own.update)) all.push(own.update)
      all.push(update)
    })
    for (const own of order) if (own.at >= told.length && typed.includes(own.update)) all.push(own.update)
    return storyOf(all)
  }
  return {
    name: "editor",
    conversationId: conversation,
    story,
    prompt: async (text) => {
      const own: SessionUpdate = {
        sessionUpdate: "user_message_chunk",
        content: { type: "text", text },
        messageId: `typed-${order.length}`,
      }
      order.push({ at: connected.updates.length, update: own })
      typed.push(own)
      open++
      connected.agent
        .request("session/prompt", { sessionId, prompt: [{ type: "text", text }] })
        .catch(() => {})
        .finally(() => {
          open--
          waiters.wake()
        })
    },
    asked: async () =>
      void (await waiters.until(
        "a question",
        () => (answers.length > 0 ? true : null),
        () => connected.lines.slice(-3),
      )),
    allow: async () => {
      const [answer] = await waiters.until(
        "a question",
        () => (answers.length > 0 ? answers : null),
        () => connected.lines.slice(-3),
      )
      answer?.({ outcome: { outcome: "selected", optionId: "allow_once" } })
      return null
    },
    recalls: () => false,
    cancel: () => connected.agent.notify("session/cancel", { sessionId }),
    rest: async () =>
      void (await waiters.until(
        "rest",
        () => (open === 0 ? true : null),
        () => connected.lines.slice(-3),
      )),
    until: untilStory("the editor", waiters, story),
    comeBack: async () => {
      faults.push(...connected.faults)
      await start()
      await connected.agent.request("session/load", { sessionId, cwd: options.cwd, mcpServers: [] })
    },
    kill: async () => {
      const gone = new Promise((done) => child.once("close", done))
      child.kill("SIGKILL")
      await gone
    },
    faults: () => [...faults, ...connected.faults],
    close: () => {
      connected.close()
      child.kill("SIGKILL")
    },
  }
}
