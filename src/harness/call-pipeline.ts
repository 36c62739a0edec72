/**
 * The hooks of one call. Before it runs every plugin is asked in order; a block ends the asking. Arguments that one rewrote are put to all
 * plugins again, so that nobody has agreed to what it has not seen. What several want asked is one question, put when all have spoken.
 * Every answer goes into the trail.
 */
import { Cause, Clock, Deferred, Duration, Effect, Either, Exit } from "effect"
import type { JsonObject } from "../domain/json.ts"
import { text } from "../domain/message.ts"
import type { Remembered } from "../domain/question.ts"
import type { TrailStep } from "../domain/trail.ts"
import type { ToolResult } from "../tools/tool.ts"
import type { HookRunner } from "./context.ts"
import type { ActivePlugin } from "./options.ts"
import type { ToolCallView, ToolDecision } from "./plugin.ts"

/** How often arguments may be rewritten. */
const roundsAtMost = 8

/** What becomes of a call. `args` are those that every plugin has seen last. */
export type CallDecision =
  | { readonly type: "run"; readonly args: JsonObject }
  | {
      readonly type: "ask"
      readonly args: JsonObject
      readonly title: string
      readonly reason: string
      readonly remember?: Remembered
      /** The shortest that one of them waits, in ms. */
      readonly timeoutMs?: number
    }
  | { readonly type: "block"; readonly reason: string }

export interface Decided {
  readonly decision: CallDecision
  readonly trail: ReadonlyArray<TrailStep>
}

const same = (a: JsonObject, b: JsonObject): boolean => JSON.stringify(a) === JSON.stringify(b)

/** What "always" keeps: what all who asked agreed to keep, or nothing where one of them did not. */
const rememberedOf = (asks: ReadonlyArray<{ readonly remember?: Remembered }>): Remembered | null => {
  const kept = asks.flatMap(({ remember }) => (remember === undefined ? [] : [remember]))
  if (kept.length < asks.length) return null
  return { commands: kept.flatMap((one) => one.commands), tools: kept.flatMap((one) => one.tools) }
}

/** Asks the plugins about a call. `view` checks arguments and says what a call with them may touch; null: they are not valid. */
export const beforeTool = (
  runner: HookRunner,
  given: ToolCallView,
  view: (args: JsonObject) => Effect.Effect<Either.Either<ToolCallView, string>>,
): Effect.Effect<Decided> =>
  Effect.gen(function* () {
    const trail: Array<TrailStep> = []
    const blocked = (reason: string): Decided => ({ decision: { type: "block", reason }, trail })
    let call = given
    for (let round = 1; round <= roundsAtMost; round++) {
      const asks: Array<Extract<ToolDecision, { readonly type: "ask" }>> = []
      let rewritten = false
      for (const active of runner.having("beforeTool")) {
        const { at, ms, value } = yield* runner.timed(
          runner.attempt(active, "beforeTool", ({ plugin }, context) => plugin.hooks.beforeTool?.(call, context)),
        )
        const step = (decision: string, rule: string | null, reason: string | null) =>
          void trail.push({ plugin: active.plugin.name, hook: "beforeTool", decision, rule, reason, at, ms })
        if (Either.isLeft(value)) {
          step("failed", null, value.left)
          return blocked(`Blocked: the plugin ${active.plugin.name} could not judge the call: ${value.left}`)
        }
        const said = value.right
        if (said == null) continue
        if (said.type === "allow") step("allow", said.rule, null)
        else if (said.type === "block") {
          step("block", said.rule, said.reason)
          return blocked(said.reason)
        } else if (said.type === "ask") {
          step("ask", said.rule, said.reason)
          asks.push(said)
        } else if (!same(said.args, call.args)) {
          step("rewrite", said.rule, null)
          const checked = yield* view(said.args)
          if (Either.isLeft(checked)) {
            return blocked(
              `Blocked: the plugin ${active.plugin.name} gave arguments that are not valid: ${checked.left}`,
            )
          }
          call = checked.right
          rewritten = true
          break
        }
      }
      if (rewritten) continue
      const [first] = asks
      if (first === undefined) return { decision: { type: "run", args: call.args }, trail }
      const reason = [...new Set(asks.map((one) => one.reason))].join("\n")
      const remember = rememberedOf(asks)
      const timeouts = asks.flatMap(({ timeoutMs }) => (timeoutMs === undefined ? [] : [timeoutMs]))
      const kept = {
        ...(remember === null ? {} : { remember }),
        ...(timeouts.length === 0 ? {} : { timeoutMs: Math.min(...timeouts) }),
      }
      return { decision: { type: "ask", args: call.args, title: first.title, reason, ...kept }, trail }
    }
    return blocked(`Blocked: plugins rewrote the arguments ${roundsAtMost} times.`)
  })

/** Runs a call within its plugins: the first one outermost; what each `afterTool` changed is what the next one sees. */
export const runCall = (
  runner: HookRunner,
  call: ToolCallView,
  code: Effect.Effect<ToolResult>,
): Effect.Effect<{ readonly result: ToolResult; readonly trail: ReadonlyArray<TrailStep> }> =>
  Effect.gen(function* () {
    const trail: Array<TrailStep> = []
    const wrapping = [...runner.having("wrapTool")].reverse()
    const wrapped = wrapping.reduce((inner, active) => wrapOne(runner, active, call, inner, trail), code)
    let result = yield* wrapped
    for (const active of runner.having("afterTool")) {
      const seen = result
      const { at, ms, value } = yield* runner.timed(
        runner.attempt(active, "afterTool", ({ plugin }, context) => plugin.hooks.afterTool?.(call, seen, context)),
      )
      const step = (decision: string, reason: string | null) =>
        void trail.push({ plugin: active.plugin.name, hook: "afterTool", decision, rule: null, reason, at, ms })
      if (Either.isLeft(value)) step("failed", value.left)
      else if (value.right != null && value.right !== result) {
        step("changed", null)
        result = value.right
      }
    }
    return { result, trail }
  })

/**
 * One plugin around a call. Its deadline counts the time before and after the call, not the call. Where it fails, the call's own result
 * stands, and a call that it had not begun runs without it.
 */
const wrapOne = (
  runner: HookRunner,
  active: ActivePlugin,
  call: ToolCallView,
  inner: Effect.Effect<ToolResult>,
  trail: Array<TrailStep>,
): Effect.Effect<ToolResult> =>
  Effect.gen(function* () {
    const { deadlineMs, name } = active.plugin
    const over = yield* Deferred.make<void>()
    let begun = false
    let own: ToolResult | null = null
    const once = Effect.suspend(() => {
      if (begun) return Effect.dieMessage("run was called twice")
      begun = true
      return Effect.tap(inner, (result) => {
        own = result
        return Deferred.succeed(over, undefined)
      })
    })
    const late = Effect.fail(new Error(`it took longer than ${deadlineMs} ms`))
    const wait = Effect.sleep(Duration.millis(deadlineMs))
    const watchdog = Effect.zipRight(
      wait,
      Effect.suspend(() => (begun ? Effect.zipRight(Deferred.await(over), Effect.zipRight(wait, late)) : late)),
    )
    const started = yield* Clock.currentTimeMillis
    const exit = yield* Effect.exit(
      Effect.raceFirst(
        runner.prepare(active, "wrapTool", ({ plugin }, context) => plugin.hooks.wrapTool?.(call, once, context)),
        watchdog,
      ),
    )
    const now = yield* Clock.currentTimeMillis
    const step = (decision: string, reason: string | null) => {
      const ms = Math.max(0, now - started)
      trail.push({ plugin: name, hook: "wrapTool", decision, rule: null, reason, at: started, ms })
    }
    // Assigned in `once`, which the compiler does not follow.
    const result = own as ToolResult | null
    if (Exit.isSuccess(exit)) {
      if (!begun) step("replaced", null)
      else if (exit.value !== result) step("changed", null)
      return exit.value
    }
    // The call's own defect is not the plugin's.
    if (begun && result === null && !Cause.isFailure(exit.cause))
      return yield* Effect.failCause(exit.cause as Cause.Cause<never>)
    const reason = yield* runner.failed(active, "wrapTool", exit.cause)
    step("failed", reason)
    if (result !== null) return result
    if (!begun) return yield* inner
    const lost = `The plugin ${name} stopped the call: ${reason}. It may or may not have taken effect.`
    return { output: [text(lost)], isError: true, inDoubt: true }
  })
