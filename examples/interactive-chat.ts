/**
 * A chat of a few lines on the embedded layer: what is typed is asked, the answer streams, and four commands look at the conversation or
 * change it: /status, /context, /compact and /quit. It goes on where it was left when it is started again on the same database.
 *
 * The scripted model needs no key; with a provider's key in the environment, `SUPER_PI_DEFAULT_MODEL` names a real one. Run it from the project
 * after `npm run build`, with Node.js 22.18 or newer: `node examples/interactive-chat.ts DATABASE`
 */
import { createInterface } from "node:readline"
import { Console, Effect, Stream } from "effect"
import { type ConversationHandle, deriveContext, type Event, type ModelsOption, promptOf, SuperPi } from "super-pi"

const model = process.env.SUPER_PI_DEFAULT_MODEL ?? "script/chat"

/** What the scripted model says. */
const models = {
  env: process.env,
  script: {
    rules: [
      { match: "Summar", steps: [{ text: "They said hello." }] },
      {
        match: "^artifacts",
        steps: [
          { text: "Let me look.", tools: [{ name: "artifact_list", args: {} }] },
          { text: "That is all there is." },
        ],
      },
      { match: "", steps: [{ text: "Hello! I am scripted, and glad that you are here.", usage: [40, 12] }] },
    ],
  },
} satisfies ModelsOption

const write = (text: string) => Effect.sync(() => void process.stdout.write(text))

/** What the chat shows of a turn. */
const show = (event: Event): Effect.Effect<void> => {
  switch (event.type) {
    case "text_delta":
      return write(event.text)
    case "tool_completed":
      return Console.log(`\n[${event.name}${event.is_error ? " failed" : ""}]`)
    case "turn_error":
      return Console.log(`\nfailed: ${event.message}`)
    case "turn_completed":
      return Console.log("")
    default:
      return Effect.void
  }
}

const status = (conversation: ConversationHandle) =>
  Effect.flatMap(conversation.state, ({ conversation_id, mode, model, state, usage }) =>
    Console.log(
      `conversation ${conversation_id} · ${model} · ${mode} · ${state} · ${usage.input} in, ${usage.output} out`,
    ),
  )

/** What the next request starts from. */
const context = (conversation: ConversationHandle) =>
  Effect.flatMap(conversation.transcript, (entries) => {
    const messages = deriveContext(entries)
    const tools = [...promptOf(messages).tools.keys()]
    return Console.log(
      `${messages.length} messages from ${entries.length} entries; tools: ${tools.join(", ") || "none yet"}`,
    )
  })

const compact = (conversation: ConversationHandle) =>
  Effect.matchEffect(conversation.compact(), {
    onFailure: (failure) => Console.log(`not compacted: ${failure.message}`),
    onSuccess: ({ status }) => Console.log(`compaction: ${status}`),
  })

/** One line: false leaves. */
const handle = (conversation: ConversationHandle, line: string) => {
  switch (line) {
    case "":
      return Effect.succeed(true)
    case "/quit":
      return Effect.succeed(false)
    case "/status":
      return Effect.as(status(conversation), true)
    case "/context":
      return Effect.as(context(conversation), true)
    case "/compact":
      return Effect.as(compact(conversation), true)
    default:
      if (line.startsWith("/")) return Effect.as(Console.log("commands: /status, /context, /compact, /quit"), true)
      return Effect.as(Stream.runForEach(conversation.run(line), show), true)
  }
}

// What is typed before anybody reads would be lost, so reading begins with the stream.
const lines = Stream.suspend(() =>
  Stream.fromAsyncIterable(createInterface({ input: process.stdin }), (error) => error),
)

const chat = Effect.gen(function* () {
  const pi = yield* SuperPi
  // The same request id gives the same conversation in every life of this chat.
  const conversation = yield* pi.open({ title: "interactive chat", requestId: "interactive-chat" })
  yield* status(conversation)
  yield* lines.pipe(
    Stream.mapEffect((line) => handle(conversation, line.trim())),
    Stream.takeWhile((goesOn) => goesOn),
    Stream.runDrain,
  )
  yield* Console.log("bye")
})

const database = process.argv[2] ?? "interactive-chat.db"
await Effect.runPromise(
  Effect.provide(
    chat,
    SuperPi.layer({
      storage: { path: database },
      models,
      defaults: { model, cwd: process.cwd() },
      program: "the interactive chat",
    }),
  ),
)
