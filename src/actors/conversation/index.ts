/**
 * The conversation actor: one per conversation in memory. It owns the machine's data, its jobs (children) and its event hub. Legal
 * transitions are in `docs/conversation.md`. It is rebuilt from storage by `init`; a crash loses nothing that was acknowledged.
 */
import { Effect, Data as EffectData, Option } from "effect"
import type { MachineState } from "../../domain/event.ts"
import type { ConversationId } from "../../domain/ids.ts"
import { TaskKind } from "../../domain/task.ts"
import { Harnesses } from "../../harness/registry.ts"
import { Models } from "../../models/model.ts"
import { isLogging } from "../../observability/log-context.ts"
import type { NewerDocument } from "../../storage/documents/errors.ts"
import type { CommitError, ReadError } from "../../storage/errors.ts"
import { Store, takenBy } from "../../storage/store.ts"
import { Tools } from "../../tools/tools.ts"
import {
  type ActorContext,
  keep,
  type MachineStart,
  nextEvent,
  type StopReason,
  stateMachine,
  stopMachine,
} from "../kernel/index.ts"
import { admitOnce, cancel, withdraw } from "./admission.ts"
import { answerNow, askNow } from "./answer.ts"
import { type Loaded, load } from "./load.ts"
import { rests } from "./machine/rests.ts"
import type { ConversationMessage } from "./messages.ts"
import { watchingOf, withTrace } from "./observe.ts"
import type { Services } from "./services.ts"
import { ConversationSettings } from "./settings.ts"
import { settleDoubt } from "./settle-effect.ts"
import { type Change, Shell } from "./shell.ts"

/** The conversation does not exist. */
class UnknownConversation extends EffectData.TaggedError("UnknownConversation")<{
  readonly conversation: ConversationId
}> {
  override get message() {
    return `conversation ${this.conversation} was not found`
  }
}

/** The services that a conversation works with. */
export type ConversationNeeds = Store | Models | Tools | ConversationSettings

/** The behavior of one conversation. */
export const conversation = (id: ConversationId) =>
  stateMachine<Shell, ConversationMessage, MachineState, ConversationNeeds>({
    name: "conversation",
    init: (self) => start(id, self),
    handle: (_state, message, shell) => receive(shell, message),
    onDown: (_state, down, shell) => shell.down(down),
    onStop: (_state, reason, shell) => stopped(shell, reason),
  })

const start = (
  id: ConversationId,
  self: ActorContext<ConversationMessage>,
): Effect.Effect<
  MachineStart<MachineState, Shell, ConversationMessage>,
  UnknownConversation | CommitError | ReadError | NewerDocument,
  ConversationNeeds
> =>
  Effect.gen(function* () {
    const settings = yield* ConversationSettings
    const services: Services = {
      // First, so that what is read next is what nobody else changes any more.
      store: yield* takenBy(yield* Store, id),
      models: yield* Models,
      tools: yield* Tools,
      settings,
      clock: yield* Effect.clock,
      defaultModel: yield* (yield* Models).defaultModel.pipe(Effect.orElseSucceed(() => "")),
      harnesses: Option.getOrNull(yield* Effect.serviceOption(Harnesses)),
      random: Math.random,
      watching: watchingOf(yield* Effect.tracer, settings, yield* Effect.clock),
      logs: yield* isLogging,
    }
    const loaded = yield* load(services.store, id)
    if (loaded === null) return yield* new UnknownConversation({ conversation: id })
    yield* enterTools(services, loaded)
    const shell = new Shell(loaded, services, self)
    const { tools } = shell.workbench.ground
    const replayOf = (tool: string) => tools.get(tool)?.replay ?? "unsafe"
    const reconciles = (tool: string) => tools.get(tool)?.reconcile !== undefined
    return {
      state: "recovering",
      data: shell,
      actions: [nextEvent<ConversationMessage>({ type: "recover", stored: loaded.stored, replayOf, reconciles })],
    }
  })

/** Servers of its own are started. A call that was cut off is judged by its tool, which may only just be starting: that is waited for. */
const enterTools = ({ settings, tools: { source } }: Services, { data, mcpServers, stored }: Loaded) =>
  Effect.suspend(() => {
    if (source === undefined) return Effect.void
    const { agent, conversation } = data
    const entered =
      mcpServers.length === 0
        ? Effect.void
        : source.enter(conversation.id, mcpServers, agent.cwd ?? settings.defaultCwd)
    if (!stored.tasks.some(({ kind }) => kind === TaskKind.tool)) return entered
    return Effect.zipRight(
      entered,
      Effect.suspend(() => source.ready(agent.subagent?.root ?? conversation.id) ?? Effect.void),
    )
  })

const receive = (shell: Shell, message: ConversationMessage): Effect.Effect<Change, never, Store> => {
  switch (message.type) {
    case "state":
      return answer(shell, () => message.reply.succeed(shell.view()))
    case "watch":
      return answer(shell, () => message.reply.succeed(shell.hub))
    case "await":
      return Effect.as(shell.awaitSubmission(message.submission, message.reply), keep<Shell>(shell))
    case "leave":
      return Effect.succeed(stopMachine())
    case "moveOut": {
      const goes = rests(shell.data)
      message.reply.succeed(goes)
      return Effect.succeed(goes ? stopMachine() : keep<Shell>(shell))
    }
    case "hibernate":
      return Effect.succeed(shell.idle ? stopMachine() : keep<Shell, ConversationMessage>(shell, [shell.hibernation()]))
    case "parts":
      return shell.handleAll(message.events)
    case "settle":
      return Effect.flatMap(Store, (store) => settleDoubt(store, shell, message))
    case "answerNow":
      return Effect.flatMap(Store, (store) => answerNow(store, shell, message))
    case "ask":
      return Effect.flatMap(Store, (store) => askNow(store, shell, message))
    case "compactNow": {
      const { instructions, reply } = message
      return Effect.flatMap(shell.workbench.target, (target) =>
        shell.handle({ type: "compact", instructions, target, reply }),
      )
    }
    case "submit":
      return shell.observed === null
        ? admitOnce(shell, message)
        : Effect.flatMap(withTrace(shell.observed, message), (traced) => admitOnce(shell, traced))
    case "write":
      return admitOnce(shell, message)
    case "withdraw":
      return withdraw(shell, message)
    case "cancel":
      return cancel(shell, message)
    default:
      return shell.handle(message)
  }
}

const answer = (shell: Shell, reply: () => void): Effect.Effect<Change> =>
  Effect.sync(() => {
    reply()
    return keep<Shell>(shell)
  })

const stopped = (shell: Shell, reason: StopReason): Effect.Effect<void> =>
  Effect.zipRight(
    Effect.sync(() => shell.observed?.close()),
    reason._tag === "Crashed"
      ? Effect.sync(() => shell.hub.close())
      : Effect.zipRight(shell.leaveTools, shell.release()),
  )
