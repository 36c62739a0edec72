/**
 * Jobs: the work outside the machine, each in a child actor of its conversation: preparing a request, streaming a response, preparing
 * calls, running one call. A job sends its messages to the conversation and ends; when it crashes or is stopped, the conversation learns
 * it from its `Down`. Stopping a job interrupts its Effect, and so closes the model's connection or kills the command's process group.
 */
import { Cause, Effect, Fiber, type Tracer } from "effect"
import type { Json } from "../../domain/json.ts"
import { text } from "../../domain/message.ts"
import { parsePartialJson } from "../../domain/partial-json.ts"
import { traced } from "../../domain/traced.ts"
import { runCall } from "../../harness/call-pipeline.ts"
import type { HookRunner } from "../../harness/context.ts"
import type { ModelError, ModelPart, ModelRequest, ModelsService } from "../../models/model.ts"
import { ModelTransient } from "../../models/model.ts"
import type { ToolResult } from "../../tools/tool.ts"
import type { ToolsService } from "../../tools/tools.ts"
import {
  type ActorContext,
  type ActorRef,
  type Behavior,
  behavior,
  SpawnError,
  unsafeSpawn,
  unsafeTell,
} from "../kernel/index.ts"
import { callContext, failedResult, type Place } from "./call-context.ts"
import { viewOfCall } from "./hooks-calls.ts"
import { labelOf } from "./last-word.ts"
import type { CallSlot, Job, MachineEvent } from "./machine/data.ts"
import type { ConversationMessage } from "./messages.ts"

/** Sends a message to the conversation; suspends while its mailbox is full. */
export type Send = (
  message: MachineEvent | { readonly type: "parts"; readonly events: ReadonlyArray<MachineEvent> },
) => Effect.Effect<void>

/** A job: runs once on its only message. */
const job = (name: string, run: Effect.Effect<void>): Behavior<null, "go"> =>
  behavior<null, "go">({
    name,
    init: () => null,
    receive: (_state, _go, self) => Effect.as(Effect.zipRight(run, self.stop()), null),
  })

/** A job that is stopped is interrupted at once; its end is waited for with its finalizers. */
const jobSpec = { restart: "temporary", shutdownMs: 0 } as const

/**
 * Starts a job as a watched child, under the services of its conversation. Null where the conversation is being stopped: its work stays open as
 * committed, and the stop releases it.
 */
export const startJob = (
  self: ActorContext<ConversationMessage>,
  name: Job,
  run: Effect.Effect<void>,
): ActorRef<"go"> | null => {
  try {
    const ref = unsafeSpawn(job(name.type, run), { parent: self.ref, name: labelOf(name), childSpec: jobSpec })
    self.unsafeWatch(ref)
    unsafeTell(ref, "go")
    return ref
  } catch (error) {
    if (error instanceof SpawnError && error.problem === "parent_down") return null
    throw error
  }
}

/** How often the arguments of one call are parsed for display while they stream, in ms. */
const partialParseMs = 50

/** Streams a response: its pieces as they come, then the whole. */
export const modelJob = (options: {
  readonly token: number
  readonly request: ModelRequest
  readonly models: Pick<ModelsService, "respond">
  readonly send: Send
}): Effect.Effect<void> => {
  const { request, send, token } = options
  const argumentsOf = partialArguments()
  let finished = false
  const eventOf = (part: ModelPart): MachineEvent => {
    switch (part.type) {
      case "text":
        return { type: "text", token, delta: part.delta }
      case "thinking":
        return { type: "thinking", token, delta: part.delta }
      case "toolCallDelta":
        return {
          type: "callDelta",
          token,
          callId: part.id,
          name: part.name,
          delta: part.delta,
          arguments: argumentsOf(part.id, part.delta),
        }
      case "finish": {
        finished = true
        const { content, stopReason, usage } = part
        return { type: "responded", token, finished: { content, stopReason, usage } }
      }
    }
  }
  const sink = (parts: ReadonlyArray<ModelPart>) => send({ type: "parts", events: parts.map(eventOf) })
  return options.models.respond(request, sink).pipe(
    Effect.flatMap(() =>
      finished
        ? Effect.void
        : Effect.fail(
            new ModelTransient({
              model: request.model,
              reason: "truncated",
              status: null,
              retryAfterMs: null,
              detail: "the response ended before it was finished",
            }),
          ),
    ),
    // A failure behind `finish` has nothing left to say: the response is whole.
    Effect.catchAll((error: ModelError) => (finished ? Effect.void : send({ type: "modelFailed", token, error }))),
  )
}

/** The best parse so far of each call's streamed arguments, refreshed at most every {@link partialParseMs}. */
const partialArguments = () => {
  const calls = new Map<string, { text: string; parsed: Json; at: number }>()
  return (id: string, delta: string): Json => {
    const call = calls.get(id) ?? { text: "", parsed: null, at: 0 }
    calls.set(id, call)
    call.text += delta
    const now = performance.now()
    if (now - call.at >= partialParseMs) {
      call.parsed = parsePartialJson(call.text)
      call.at = now
    }
    return call.parsed
  }
}

/** How long streamed tool output is gathered before it is sent on, in ms. */
const outputGatherMs = 30

/**
 * Streamed output on its way: gathered for {@link outputGatherMs}, then sent on. A gathering that is left when the call ends without
 * `flush` sends to a call that is over, which changes nothing.
 */
const gatherOutput = (forward: (chunk: string) => Effect.Effect<void>) => {
  let gathered = ""
  let gathering: Fiber.RuntimeFiber<void> | null = null
  const sendOn = Effect.suspend(() => {
    const chunk = gathered
    gathered = ""
    gathering = null
    return chunk === "" ? Effect.void : forward(chunk)
  })
  return {
    emit: (chunk: string): Effect.Effect<void> =>
      Effect.suspend(() => {
        gathered += chunk
        if (gathering !== null) return Effect.void
        return Effect.map(Effect.forkDaemon(Effect.delay(sendOn, outputGatherMs)), (fiber) => {
          gathering = fiber
        })
      }),
    /** Sends what is left, in order. */
    flush: Effect.suspend(() =>
      gathering === null ? Effect.void : Effect.zipRight(Fiber.interrupt(gathering), sendOn),
    ),
  }
}

const wraps = ({ pipeline: { hooks } }: HookRunner): boolean => hooks.has("wrapTool") || hooks.has("afterTool")

type ToolEnd = Extract<MachineEvent, { readonly type: "toolEnded" }>

/** Of the span of a call. */
const attributesOf = ({ place, slot }: { readonly slot: CallSlot; readonly place: Place }) => ({
  "gen_ai.operation.name": "execute_tool",
  "gen_ai.tool.name": slot.call.name,
  "gen_ai.tool.call.id": slot.call.id,
  "gen_ai.tool.type": "function",
  "gen_ai.conversation.id": String(place.conversation),
  "super_pi.task.id": slot.task.id,
})

const toolCode = (isError: boolean, span: Tracer.Span): string | null => {
  span.attribute("super_pi.tool.is_error", isError)
  return isError ? "tool_error" : null
}

/** Runs one call. A failure that the tool declares becomes an error result; a defect crashes the job. */
export const toolJob = (options: {
  readonly slot: CallSlot
  readonly place: Place
  readonly tools: ToolsService
  readonly send: Send
  /** The plugins that may have a say. */
  readonly runner: HookRunner | null
}): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { runner, send, slot } = options
    const task = slot.task.id
    const end = (message: ToolEnd) =>
      Effect.zipRight(
        send(message),
        Effect.sync(() => message.result.isError === true),
      )
    const tool = options.tools.get(slot.call.name)
    if (tool === undefined) {
      const gone = `The tool "${slot.call.name}" is not there any more.`
      return yield* end({ type: "toolEnded", task, result: { output: [text(gone)], isError: true } })
    }
    const output = gatherOutput((chunk) => send({ type: "toolOutput", task, chunk }))
    const code: Effect.Effect<ToolResult> = tool
      .execute(slot.args, callContext(slot, options.place, output.emit, send))
      .pipe(Effect.catchAll((failure) => Effect.succeed(failedResult(failure))))
    if (runner === null || !wraps(runner)) {
      const result = yield* code
      yield* output.flush
      return yield* end({ type: "toolEnded", task, result })
    }
    const { result, trail } = yield* runCall(runner, viewOfCall(slot.call, tool, slot.args), code)
    yield* output.flush
    return yield* end({ type: "toolEnded", task, result, trail })
  }).pipe(traced(`execute_tool ${options.slot.call.name}`, attributesOf(options), { ended: toolCode }), Effect.asVoid)

/** The first line of why a job crashed. */
export const crashMessage = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  const message = error instanceof Error ? error.message : String(error)
  return message.split("\n", 1)[0] ?? "unknown"
}
