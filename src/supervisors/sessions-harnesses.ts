/**
 * What sessions say of harnesses, and of why a call became what it became.
 */
import { Effect, Either } from "effect"
import { orStorageFailure } from "../actors/conversation/failures.ts"
import type { SessionsService, Target } from "../actors/sessions.ts"
import type { AgentDocument } from "../domain/document.ts"
import { callOf } from "../domain/effect.ts"
import { type Failure, InvalidRequest, NotFound } from "../domain/failure.ts"
import { TaskId } from "../domain/ids.ts"
import type { JsonObject } from "../domain/json.ts"
import type { Task } from "../domain/task.ts"
import { harnessAliases } from "../harness/builtin/index.ts"
import type { HarnessesService } from "../harness/registry.ts"
import { decisionsOf } from "../harness/trail.ts"
import type { StoreReads } from "../storage/store.ts"

export interface HarnessParts {
  readonly store: StoreReads
  /** Null: the node has none. */
  readonly harnesses: HarnessesService | null
  readonly allowed: (target: Target) => Effect.Effect<void, Failure>
}

/** Fails where choices name a harness or plugins that there are not. */
export const checkHarness = (
  harnesses: HarnessesService | null,
  agent: AgentDocument,
): Effect.Effect<void, Failure> => {
  const { harness, outputSchema = null, plugins } = agent
  if (harness === undefined && plugins === undefined && outputSchema === null) return Effect.void
  if (harnesses === null) {
    const [path, actual] =
      harness !== undefined
        ? ["agent.harness", JSON.stringify(harness)]
        : [plugins === undefined ? "agent.outputSchema" : "agent.plugins", "some"]
    return new InvalidRequest({ path, expected: "nothing, since this node has no harnesses", actual })
  }
  return Either.match(harnesses.pipeline(agent), {
    onLeft: (fault): Effect.Effect<void, Failure> => Effect.fail(fault),
    onRight: () => (outputSchema === null ? Effect.void : checkOutputSchema(outputSchema)),
  })
}

/** The validator is loaded only here: a conversation without a schema does without it. */
const checkOutputSchema = (schema: JsonObject): Effect.Effect<void, Failure> =>
  Effect.promise(() => import("../harness/plugins/structured-output/validator.ts")).pipe(
    Effect.flatMap(({ validator }) => validator(schema)),
    Effect.mapError(
      ({ detail }) =>
        new InvalidRequest({
          path: "agent.outputSchema",
          expected: "a JSON Schema",
          actual: `one with faults: ${detail}`,
        }),
    ),
  )

/** The choices of a new conversation: with the node's harness where its caller named none. */
export const withFallback = (harnesses: HarnessesService | null, agent: AgentDocument): AgentDocument =>
  agent.harness !== undefined || harnesses === null || harnesses.fallback === null
    ? agent
    : { ...agent, harness: harnesses.fallback }

export const makeHarnessReads = ({
  allowed,
  harnesses,
  store,
}: HarnessParts): Pick<SessionsService, "harnesses" | "why"> => {
  const taskOf = (target: Target, call: string): Effect.Effect<Task | null, Failure> => {
    const id = /^\d{1,15}$/.test(call) ? Number(call) : 0
    if (id < 1) return Effect.succeed(null)
    return Effect.map(orStorageFailure(store.task(TaskId.make(id))), (task) =>
      task !== null && task.conversation === target.conversationId && callOf(task) !== null ? task : null,
    )
  }
  return {
    harnesses: Effect.sync(() => ({
      harnesses: harnesses?.capabilities ?? [],
      default: harnesses?.fallback ?? null,
      ...(harnesses === null ? {} : { aliases: harnessAliases }),
    })),
    why: ({ call, ...target }) =>
      Effect.gen(function* () {
        yield* allowed(target)
        const task = yield* taskOf(target, call)
        const callId = task === null ? call : (callOf(task)?.callId ?? call)
        const entries = yield* orStorageFailure(store.visibleEntries(target.conversationId))
        const found = decisionsOf(target.conversationId, entries, callId, task)
        return found ?? (yield* new NotFound({ what: `call ${call} of conversation ${target.conversationId}` }))
      }),
  }
}
