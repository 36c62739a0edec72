/**
 * The slash commands of a chat that act on its conversation.
 */
import { Effect } from "effect"
import type { SessionsService } from "../actors/sessions.ts"
import { type AgentDocument, Effort, ExecutionMode } from "../domain/document.ts"
import { type Failure, InvalidRequest } from "../domain/failure.ts"
import type { ConversationId } from "../domain/ids.ts"
import { compactionWords, parkedWords, tokens } from "../protocols/terminal/format.ts"
import { oneLine } from "../protocols/terminal/sanitize.ts"
import { renderTree } from "../protocols/terminal/tree.ts"
import { chatHelp } from "./chat-input.ts"
import { queue } from "./chat-queue.ts"
import type { ChatScreen } from "./chat-screen.ts"
import { chatUndo } from "./chat-undo.ts"
import { lineOf } from "./runtime.ts"

export interface CommandContext {
  readonly sessions: SessionsService
  readonly screen: ChatScreen
  readonly conversationId: ConversationId
}

const configure = ({ sessions, screen, conversationId }: CommandContext, agent: AgentDocument) =>
  Effect.map(sessions.configure({ conversationId, agent }), (session) =>
    screen.say(
      `from the next request on: ${[
        session.model === "" ? "the default model" : oneLine(session.model),
        agent.effort === undefined ? "" : `effort ${agent.effort}`,
        oneLine(session.mode),
      ]
        .filter((word) => word !== "")
        .join(", ")}`,
      "dim",
    ),
  )

const oneOf = <A extends string>(
  path: string,
  choices: ReadonlyArray<A>,
  word: string,
): Effect.Effect<A, InvalidRequest> => {
  const found = choices.find((one) => one === word)
  return found === undefined
    ? new InvalidRequest({ path, expected: `one of ${choices.join(", ")}`, actual: JSON.stringify(word) })
    : Effect.succeed(found)
}

const status = ({ sessions, screen, conversationId }: CommandContext) =>
  Effect.map(sessions.state({ conversationId }), (session) => {
    const facts = [
      `conversation ${session.conversation_id}: ${session.state.replaceAll("_", " ")}`,
      session.model === "" ? "the default model" : oneLine(session.model),
      oneLine(session.mode),
      `${session.entries} entries`,
      tokens(session.usage),
      session.queued.length === 0 ? "" : `${session.queued.length} queued`,
      session.parked === null ? "" : parkedWords(session.parked.reason),
    ]
    screen.say(facts.filter((fact) => fact !== "").join(" · "), "dim")
  })

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
      return Effect.sync(() => screen.say(chatHelp().join("\n"), "dim"))
    case "model":
      return argument === "" ? status(context) : configure(context, { model: argument })
    case "effort":
      return Effect.flatMap(oneOf("/effort", Effort.literals, argument), (effort) => configure(context, { effort }))
    case "mode":
      return Effect.flatMap(oneOf("/mode", ExecutionMode.literals, argument), (mode) => configure(context, { mode }))
    case "harness":
      return argument === "" ? showHarness(context) : configure(context, { harness: argument })
    case "cancel":
      return Effect.map(sessions.cancel({ conversationId }), ({ cancelled }) => {
        if (!cancelled) screen.say("nothing was running", "dim")
      })
    case "compact":
      return compactNow(context, argument)
    case "queue":
      return queue(context, argument)
    case "reset":
      return reset(context, argument)
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
