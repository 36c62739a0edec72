/**
 * The hooks of a turn, each through the plugins in their order: what one changed is what the next one sees. The hooks of calls are in
 * `call-pipeline.ts`.
 */
import { Effect, Either } from "effect"
import type { AgentDocument } from "../domain/document.ts"
import type { JsonObject } from "../domain/json.ts"
import { type AssistantPart, type Message, text, type UserPart } from "../domain/message.ts"
import type { ModelRequest } from "../models/model.ts"
import { asTyped, bindOutputs, setApart } from "./command-outputs.ts"
import type { HookRunner } from "./context.ts"
import type { CompactDecision, PluginHooks, ToolCallView } from "./plugin.ts"

type Hooks = PluginHooks<JsonObject, unknown>
type Input<Name extends keyof Hooks> = Parameters<NonNullable<Hooks[Name]>>[0]

/** A command that an input asks for; its output stands in for its placeholder. */
export interface InputCommand {
  readonly command: string
  readonly timeoutMs: number
  readonly maxBytes: number
}

/** What the plugins made of an input. Placeholders in `content` name `commands` by their place in the list (`command-outputs.ts`). */
export interface InputChange {
  readonly content: ReadonlyArray<UserPart>
  readonly agent: AgentDocument | null
  readonly commands: ReadonlyArray<InputCommand>
  /** What is told of an input that asks no model; null: it does. */
  readonly settles: string | null
}

export const onInput = (runner: HookRunner, given: ReadonlyArray<UserPart>): Effect.Effect<InputChange> => {
  let content = setApart(given)
  let agent: AgentDocument | null = null
  let settles: string | null = null
  const commands: Array<InputCommand> = []
  return Effect.map(
    runner.each(
      "onInput",
      ({ plugin }, context) => plugin.hooks.onInput?.({ content }, context),
      (answer) => {
        if (answer.content !== undefined) content = answer.content
        if (answer.agent !== undefined) agent = { ...agent, ...answer.agent }
        if (answer.settles !== undefined) settles = answer.settles
        if (answer.commands === undefined || answer.commands.length === 0) return
        content = bindOutputs(content, commands.length, answer.commands.length)
        commands.push(...answer.commands.map((one) => ({ ...one, command: asTyped(one.command) })))
      },
    ),
    () => ({ content, agent, commands, settles: commands.length === 0 ? settles : null }),
  )
}

/** Changes of `pi.agent` that the plugins ask for when a run begins; null where there are none. */
export const beforeAgentStart = (
  runner: HookRunner,
  inputs: Input<"beforeAgentStart">["inputs"],
): Effect.Effect<AgentDocument | null> => {
  let agent: AgentDocument | null = null
  return Effect.map(
    runner.each(
      "beforeAgentStart",
      ({ plugin }, context) => plugin.hooks.beforeAgentStart?.({ inputs }, context),
      (answer) => {
        if (answer.agent !== undefined) agent = { ...agent, ...answer.agent }
      },
    ),
    () => agent,
  )
}

/** The first answer about a compaction, with the plugin that gave it; null: it is made as usual. */
export const beforeCompact = (
  runner: HookRunner,
  compaction: Input<"beforeCompact">,
): Effect.Effect<{ readonly decision: CompactDecision; readonly plugin: string } | null> =>
  Effect.gen(function* () {
    for (const active of runner.having("beforeCompact")) {
      const answer = yield* runner.attempt(active, "beforeCompact", ({ plugin }, context) =>
        plugin.hooks.beforeCompact?.(compaction, context),
      )
      if (Either.isRight(answer) && answer.right != null) return { decision: answer.right, plugin: active.plugin.name }
    }
    return null
  })

/** What a request is made of, as the plugins leave it. */
export interface RequestChange {
  /** Null: those of the context. */
  readonly messages: ReadonlyArray<Message> | null
  readonly sections: ReadonlyMap<string, string | null>
  /** Null: those that are offered. */
  readonly tools: ReadonlyArray<string> | null
  readonly model: string | null
}

export const beforeRequest = (runner: HookRunner, request: Input<"beforeRequest">): Effect.Effect<RequestChange> => {
  const sections = new Map<string, string | null>()
  let now = request
  return Effect.map(
    runner.each(
      "beforeRequest",
      ({ plugin }, context) => plugin.hooks.beforeRequest?.(now, context),
      (answer) => {
        const seen: Record<string, string> = { ...now.sections }
        for (const [name, value] of Object.entries(answer.sections ?? {})) {
          sections.set(name, value)
          if (value === null) delete seen[name]
          else seen[name] = value
        }
        now = {
          messages: answer.messages ?? now.messages,
          sections: seen,
          tools: answer.tools ?? now.tools,
          model: answer.model ?? now.model,
          turn: now.turn,
        }
      },
    ),
    () => ({
      messages: now.messages === request.messages ? null : now.messages,
      sections,
      tools: now.tools === request.tools ? null : now.tools,
      model: now.model === request.model ? null : now.model,
    }),
  )
}

export const beforeProviderRequest = (runner: HookRunner, request: ModelRequest): Effect.Effect<ModelRequest> => {
  let now = request
  return Effect.map(
    runner.each(
      "beforeProviderRequest",
      ({ plugin }, context) => plugin.hooks.beforeProviderRequest?.(now, context),
      (answer) => {
        now = answer
      },
    ),
    () => now,
  )
}

export const afterResponse = (
  runner: HookRunner,
  response: Input<"afterResponse">,
): Effect.Effect<ReadonlyArray<AssistantPart>> => {
  let now = response
  return Effect.map(
    runner.each(
      "afterResponse",
      ({ plugin }, context) => plugin.hooks.afterResponse?.(now, context),
      (answer) => {
        if (answer.content !== undefined) now = { ...now, content: answer.content }
      },
    ),
    () => now.content,
  )
}

export const afterTools = (
  runner: HookRunner,
  calls: ReadonlyArray<{ readonly call: ToolCallView; readonly isError: boolean }>,
): Effect.Effect<void> => runner.each("afterTools", ({ plugin }, context) => plugin.hooks.afterTools?.(calls, context))

/** What the run goes on with, or null where the answer is final. Several plugins' wishes become one message. */
export const onYield = (
  runner: HookRunner,
  answer: Input<"onYield">,
): Effect.Effect<{ readonly content: ReadonlyArray<UserPart>; readonly plugins: ReadonlyArray<string> } | null> => {
  const content: Array<UserPart> = []
  const plugins: Array<string> = []
  return Effect.map(
    runner.each(
      "onYield",
      ({ plugin }, context) => plugin.hooks.onYield?.(answer, context),
      (wish, { plugin }) => {
        if (wish.continue.trim() === "") return
        content.push(text(wish.continue))
        plugins.push(plugin.name)
      },
    ),
    () => (content.length === 0 ? null : { content, plugins }),
  )
}

export const afterRun = (runner: HookRunner, run: Input<"afterRun">): Effect.Effect<void> =>
  runner.each("afterRun", ({ plugin }, context) => plugin.hooks.afterRun?.(run, context))
