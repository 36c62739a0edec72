/**
 * Calls where plugins have a say: `beforeTool` when they are judged, `wrapTool` and `afterTool` around their code. What the plugins said goes
 * into the intent and into the result.
 */
import { Effect, Either } from "effect"
import { isJsonObject, type Json, type JsonObject } from "../../domain/json.ts"
import type { ToolCallPart } from "../../domain/message.ts"
import { blockReason } from "../../domain/permissions.ts"
import { beforeTool } from "../../harness/call-pipeline.ts"
import type { HookRunner } from "../../harness/context.ts"
import type { ToolCallView } from "../../harness/plugin.ts"
import type { InvalidArguments, Tool } from "../../tools/tool.ts"
import type { Verdict } from "./machine/data.ts"
import { invalid, type Judging, offeredTool, runVerdict } from "./prepare.ts"

/** The plugin that takes the place of the engine's own rule about modes. */
const policyPlugin = "permissions"

const effectsFor = (tool: Tool, args: Json) => tool.effectsOf?.(args) ?? tool.effects

export const viewOfCall = (
  call: { readonly id: string; readonly name: string },
  tool: Tool,
  args: Json,
): ToolCallView => ({
  id: call.id,
  name: call.name,
  args: isJsonObject(args) ? args : {},
  effects: effectsFor(tool, args),
})

const judge = (call: ToolCallPart, judging: Judging, runner: HookRunner): Effect.Effect<Verdict> =>
  Effect.gen(function* () {
    const tool = offeredTool(call, judging)
    if ("type" in tool) return tool
    const decode = (args: JsonObject): Effect.Effect<Json, InvalidArguments> => tool.decode(args)
    const decoded = yield* Effect.either(decode(call.arguments))
    if (Either.isLeft(decoded)) return invalid(call, decoded.left)
    const { decision, trail } = yield* beforeTool(runner, viewOfCall(call, tool, decoded.right), (args) =>
      Effect.map(Effect.either(decode(args)), (checked) =>
        Either.mapBoth(checked, {
          onLeft: (error) => error.detail,
          onRight: (valid) => viewOfCall(call, tool, valid),
        }),
      ),
    )
    const noted = trail.length === 0 ? {} : { trail }
    if (decision.type === "block") return { type: "refuse", reason: decision.reason, ...noted }
    const { args } = decision
    const hasPolicy = runner.pipeline.plugins.some(({ plugin }) => plugin.name === policyPlugin)
    const beyond = hasPolicy ? null : blockReason(judging.mode, call.name, effectsFor(tool, args))
    if (beyond !== null) return { type: "refuse", reason: beyond, ...noted }
    const run = runVerdict(tool, args)
    if (decision.type === "run") return { ...run, ...noted }
    const { args: _, type: __, ...ask } = decision
    return { ...run, ...noted, ask }
  })

/** Each call's verdict in call order; one after the other, so that plugins see them as they were made. */
export const judgeWithHooks = (
  calls: ReadonlyArray<ToolCallPart>,
  judging: Judging,
  runner: HookRunner,
): Effect.Effect<ReadonlyArray<Verdict>> => Effect.forEach(calls, (call) => judge(call, judging, runner))
