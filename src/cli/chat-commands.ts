/**
 * The slash commands of a chat that act on its conversation. None of them asks a model.
 */
import { Effect } from "effect"
import type { SessionsService } from "../actors/sessions.ts"
import { type AgentDocument, Effort, ExecutionMode } from "../domain/document.ts"
import type { SessionState } from "../domain/event.ts"
import { type Failure, InvalidRequest } from "../domain/failure.ts"
import type { ConversationId } from "../domain/ids.ts"
import { nearest } from "../domain/nearest.ts"
import { compactionWords } from "../protocols/terminal/format.ts"
import { oneLine } from "../protocols/terminal/sanitize.ts"
import { renderTree } from "../protocols/terminal/tree.ts"
import { type Beside, contextLines, sessionLines, statusLines } from "./chat-info.ts"
import { chatHelp } from "./chat-input.ts"
import { costOfEntries } from "./chat-meter.ts"
import type { ChatModels } from "./chat-models.ts"
import { showOutput } from "./chat-output.ts"
import { queue } from "./chat-queue.ts"
import type { ChatScreen } from "./chat-screen.ts"
import { chatUndo } from "./chat-undo.ts"
import { modelLines } from "./models.ts"
import { lineOf } from "./runtime.ts"
import type { Settings } from "./settings.ts"

export interface CommandContext {
  readonly sessions: SessionsService
  readonly screen: ChatScreen
  readonly conversationId: ConversationId
  readonly models: ChatModels
  /** Of conversations that name none, where it is known. */
  readonly defaultModel: string | null
  readonly settings: Settings
}

/** Conversations that `/sessions` lists. */
const listedSessions = 20

const say = ({ screen }: CommandContext, lines: ReadonlyArray<string>) => screen.say(lines.join("\n"), "dim")

const configure = (context: CommandContext, agent: AgentDocument) =>
  Effect.map(context.sessions.configure({ conversationId: context.conversationId, agent }), (session) =>
    say(context, [
      `from the next request on: ${[
        session.model === "" ? "the default model" : oneLine(session.model),
        agent.effort === undefined ? "" : `effort ${agent.effort}`,
        oneLine(session.mode),
      ]
        .filter((word) => word !== "")
        .join(", ")}`,
    ]),
  )

const oneOf = <A extends string>(
  path: string,
  choices: ReadonlyArray<A>,
  word: string,
): Effect.Effect<A, InvalidRequest> => {
  const found = choices.find((one) => one === word)
  if (found !== undefined) return Effect.succeed(found)
  const near = word === "" ? "" : ` (the nearest is "${nearest(word, choices)}")`
  return new InvalidRequest({ path, expected: `one of ${choices.join(", ")}${near}`, actual: JSON.stringify(word) })
}

/** The conversation with its transcript and what neither of them tells. */
const look = (context: CommandContext) =>
  Effect.gen(function* () {
    const { conversationId, defaultModel, models, sessions, settings } = context
    const session = yield* sessions.state({ conversationId })
    const entries = yield* sessions.transcript({ conversationId })
    const window = yield* models.window(session.model)
    const dollars = costOfEntries(entries, settings.models?.prices ?? {})
    const beside: Beside = { defaultModel, dollars, window }
    return { session, entries, beside }
  })

const status = (context: CommandContext) =>
  Effect.map(look(context), ({ beside, session }) => say(context, statusLines(session, beside)))

const showContext = (context: CommandContext) =>
  Effect.map(look(context), ({ beside, entries, session }) => say(context, contextLines(session, entries, beside)))

const present = ({ conversationId, sessions }: CommandContext): Effect.Effect<SessionState, Failure> =>
  sessions.state({ conversationId })

const showModels = (context: CommandContext) =>
  Effect.map(Effect.zip(present(context), context.models.list), ([session, all]) => {
    const now = session.model === "" ? (context.defaultModel ?? "the default model") : oneLine(session.model)
    say(context, [
      `asks ${now}`,
      ...modelLines(all.map((one) => ({ ...one, isDefault: one.id === now }))),
      "/model NAME asks another one from the next request on",
    ])
  })

const changeModel = (context: CommandContext, name: string) =>
  Effect.flatMap(context.models.check(name), ({ model, warning }) => {
    if (warning !== null) context.screen.say(oneLine(warning), "warning")
    return configure(context, { model })
  })

const showMode = (context: CommandContext) =>
  Effect.map(present(context), ({ mode }) =>
    say(context, [`mode ${oneLine(mode)}; /mode ${ExecutionMode.literals.join(", /mode ")} change it`]),
  )

const showSessions = (context: CommandContext) =>
  Effect.map(context.sessions.list({ limit: listedSessions }), (rows) =>
    say(context, [...sessionLines(rows, context.conversationId, Date.now()), "/resume NUMBER goes on with one"]),
  )

const showHarness = ({ sessions, screen, conversationId }: CommandContext) =>
  Effect.map(Effect.zip(sessions.state({ conversationId }), sessions.harnesses), ([{ harness }, { harnesses }]) => {
    const known = harnesses.find((one) => one.id === harness)
    const facts =
      known === undefined
        ? [harness ?? "no harness"]
        : [
            `${known.id}: ${known.description}`,
            `plugins ${known.plugins.join(", ") || "none"}`,
            `tools ${known.tools.join(", ") || "none"}`,
            `modes ${known.modes.join(", ")}`,
          ]
    screen.say(facts.map(oneLine).join("\n"), "dim")
  })

/** Beside the chat: how it ends is told by its event, and whatever has none is said here. */
const compactNow = ({ sessions, screen, conversationId }: CommandContext, argument: string) => {
  const made = sessions.compact({ conversationId, instructions: argument === "" ? null : argument })
  const told = Effect.match(made, {
    onFailure: (failure) => {
      const toldByEvent = failure._tag === "ServiceFailure" && failure.code === "compaction_failed"
      if (!toldByEvent) screen.say(lineOf(failure), "warning")
    },
    onSuccess: (result) => {
      if (result.status === "nothing") screen.say(compactionWords({ ...result, error: null }), "dim")
    },
  })
  return Effect.asVoid(Effect.forkDaemon(told))
}

/** Queued while a turn runs; that it began is told by an event. */
const reset = ({ sessions, screen, conversationId }: CommandContext, note: string) =>
  Effect.map(sessions.reset({ conversationId, handoff: note === "" ? null : note, requestId: null }), ({ status }) => {
    if (status === "queued") screen.say("queued: the context begins anew after the present calls or the answer", "dim")
  })

export const runSlashCommand = (
  context: CommandContext,
  name: string,
  argument: string,
): Effect.Effect<void, Failure> => {
  const { sessions, screen, conversationId } = context
  switch (name) {
    case "help":
      return Effect.sync(() => say(context, chatHelp()))
    case "model":
      return argument === "" ? showModels(context) : changeModel(context, argument)
    case "effort":
      return Effect.flatMap(oneOf("/effort", Effort.literals, argument), (effort) => configure(context, { effort }))
    case "mode":
      if (argument === "") return showMode(context)
      return Effect.flatMap(oneOf("/mode", ExecutionMode.literals, argument), (mode) => configure(context, { mode }))
    case "harness":
      return argument === "" ? showHarness(context) : configure(context, { harness: argument })
    case "cancel":
      return Effect.map(sessions.cancel({ conversationId }), ({ cancelled }) => {
        if (!cancelled) screen.say("nothing was running", "dim")
      })
    case "compact":
      return compactNow(context, argument)
    case "context":
      return showContext(context)
    case "output":
      return showOutput(context, argument)
    case "queue":
      return queue(context, argument)
    case "reset":
      return reset(context, argument)
    case "sessions":
      return showSessions(context)
    case "undo":
      return chatUndo(context, argument)
    case "tree":
      return Effect.map(sessions.tree, (tree) =>
        screen.say(renderTree(tree, { color: false, columns: null, now: Date.now() })),
      )
    default:
      return status(context)
  }
}
