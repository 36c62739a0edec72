/**
 * A front end in a terminal: posts a run over AG-UI, prints text, calls and the state as they come, and asks on the terminal where the agent
 * needs a permission. It needs a running gateway.
 *
 *   super-pi gateway 4000
 *   node ag-ui-client.ts "what is 15 plus 27?" [URL] [thread]
 */
import { createInterface } from "node:readline/promises"
import { buildResumeArray, HttpAgent } from "@ag-ui/client"

const [prompt = "Hello!", url = "http://127.0.0.1:4000", thread = `example-${Date.now()}`] = process.argv.slice(2)
const token = process.env.SUPER_PI_GATEWAY_TOKEN

const agent = new HttpAgent({
  url: `${url}/agui/v1/run`,
  threadId: thread,
  ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }),
})

agent.subscribe({
  onTextMessageContentEvent: ({ event }) => void process.stdout.write(event.delta),
  onTextMessageEndEvent: () => void process.stdout.write("\n"),
  onToolCallEndEvent: ({ toolCallArgs, toolCallName }) =>
    console.log(`→ ${toolCallName} ${JSON.stringify(toolCallArgs)}`),
  onToolCallResultEvent: ({ event }) => console.log(`← ${event.content}`),
  onStateSnapshotEvent: ({ event }) => console.log(`state: ${event.snapshot.model} in mode ${event.snapshot.mode}`),
  onStateDeltaEvent: ({ event }) => {
    for (const change of event.delta)
      if (change.path === "/status" && "value" in change) console.log(`state: ${change.value}`)
  },
  onRunErrorEvent: ({ event }) => console.error(`failed (${event.code}): ${event.message}`),
})

const terminal = createInterface({ input: process.stdin, output: process.stderr })
agent.messages.push({ id: crypto.randomUUID(), role: "user", content: prompt })
await agent.runAgent()
// A run that needs an answer ends with its questions; the next one carries the answers and goes on.
while (agent.pendingInterrupts.length > 0) {
  const answers: Parameters<typeof buildResumeArray>[1] = {}
  for (const { id, message } of agent.pendingInterrupts) {
    const said = await terminal.question(`${message}\nallow? (y/n) `)
    answers[id] = { status: "resolved", payload: { approved: said.trim().toLowerCase().startsWith("y") } }
  }
  await agent.runAgent({ resume: buildResumeArray(agent.pendingInterrupts, answers) })
}
terminal.close()
