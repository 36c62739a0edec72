/**
 * The scripted model, for tests and the demonstration: `script/<name>` answers from a script, given as a layer option or as the file
 * that `SUPER_PI_SCRIPT` names. It keeps no state about conversations: the step is the number of assistant messages after the last
 * user message, so a resumed run gets the same answer. Only the counters of `times` live in the process.
 */
import { Chunk, Effect, Stream } from "effect"
import { type AssistantPart, type ToolCallPart, textOf } from "../../domain/message.ts"
import { noUsage } from "../../domain/usage.ts"
import {
  ContextOverflow,
  type ModelError,
  type ModelPart,
  type ModelProvider,
  ModelRejected,
  type ModelRequest,
  ModelTransient,
  ProviderNotConfigured,
} from "../model.ts"
import { readScript, type Script, type ScriptStep } from "./script-file.ts"
import { callIds, estimateUsage, lastUser, split } from "./script-view.ts"
import { unlisted } from "./unlisted.ts"

const names = unlisted("script", { thinking: true })

const isFault = (step: ScriptStep) =>
  step.status !== undefined || step.overflow === true || step.cut === true || step.hang === true

/** A step that never answers: `cut` and `hang` stream their text and fail, a bare `status` fails at once. */
const onlyFaults = (step: ScriptStep) =>
  step.cut === true ||
  step.hang === true ||
  (isFault(step) && step.text === undefined && step.thinking === undefined && step.tools === undefined)

type Choice = { readonly step: ScriptStep; readonly index: number; readonly fault: boolean }

/**
 * The step that the `turns`-th answer comes from, after faults that still have `times` left. Steps that only fail stand before
 * the answer that follows them; past the end the last answer repeats.
 */
const choose = (
  steps: ReadonlyArray<ScriptStep>,
  turns: number,
  spend: (index: number, step: ScriptStep) => boolean,
): Choice | null => {
  const answers = steps.flatMap((step, index) => (onlyFaults(step) ? [] : [index]))
  const last = answers.at(-1)
  const target = answers[turns]
  const from = turns === 0 ? 0 : (answers[Math.min(turns, answers.length) - 1] ?? -1) + 1
  const to = target ?? steps.length - 1
  for (let index = from; index <= to; index++) {
    const step = steps[index]
    if (step !== undefined && isFault(step) && spend(index, step)) return { step, index, fault: true }
  }
  const index = target ?? last
  const step = index === undefined ? undefined : steps[index]
  return step === undefined || index === undefined ? null : { step, index, fault: false }
}

const failure = (model: string, step: ScriptStep): ModelError => {
  const status = step.status ?? 500
  const detail = step.message ?? `scripted failure ${status}`
  if (step.overflow === true) return new ContextOverflow({ model, detail: step.message ?? "scripted overflow" })
  if (status !== 408 && status !== 429 && status < 500) return new ModelRejected({ model, status, detail })
  return new ModelTransient({
    model,
    status,
    reason: status === 429 ? "rate_limited" : status === 529 || status === 503 ? "overloaded" : "server_error",
    retryAfterMs: step.retryAfter === undefined ? null : Math.min(60_000, Math.round(step.retryAfter * 1_000)),
    detail,
  })
}

/** The parts of an answer, `finish` included. */
const answerParts = (request: ModelRequest, step: ScriptStep, turns: number): ReadonlyArray<ModelPart> => {
  const parts: Array<ModelPart> = []
  const content: Array<AssistantPart> = []
  let length = 0
  if (step.thinking !== undefined && step.thinking !== "") {
    for (const delta of split(step.thinking, 3)) parts.push({ type: "thinking", delta })
    content.push({ type: "thinking", text: step.thinking })
    length += step.thinking.length
  }
  if (step.text !== undefined && step.text !== "") {
    for (const delta of split(step.text, step.chunks ?? 4)) parts.push({ type: "text", delta })
    content.push({ type: "text", text: step.text })
    length += step.text.length
  }
  const calls = step.tools ?? []
  if (calls.length > 0) {
    const taken = new Set(callIds(request.messages))
    const earlier = taken.size
    calls.forEach((call, i) => {
      const wanted = call.id ?? `call_${turns}_${i}`
      let id = taken.has(wanted) ? `${wanted}_${earlier}` : wanted
      while (taken.has(id)) id += "x"
      taken.add(id)
      const part: ToolCallPart = { type: "toolCall", id, name: call.name, arguments: call.args ?? {} }
      const json = JSON.stringify(part.arguments)
      for (const delta of split(json, 3)) parts.push({ type: "toolCallDelta", id, name: call.name, delta })
      content.push(part)
      length += json.length
    })
  }
  parts.push({
    type: "finish",
    content,
    stopReason: step.stopReason ?? (calls.length > 0 ? "tool_calls" : "stop"),
    usage:
      step.usage === undefined
        ? estimateUsage(request.messages, length)
        : { ...noUsage, input: step.usage[0], output: step.usage[1] },
  })
  return parts
}

/** Spaces parts out in time; without delays they come as one chunk. */
const paced = (parts: ReadonlyArray<ModelPart>, delayMs: number, chunkMs: number): Stream.Stream<ModelPart> => {
  if (delayMs === 0 && chunkMs === 0) return Stream.fromIterable(parts)
  return Stream.fromIterable(parts).pipe(
    Stream.rechunk(1),
    Stream.zipWithIndex,
    Stream.mapEffect(([part, index]) => {
      const wait = index === 0 ? delayMs : part.type === "finish" ? 0 : chunkMs
      return wait === 0 ? Effect.succeed(part) : Effect.as(Effect.sleep(wait), part)
    }),
  )
}

const broken = (request: ModelRequest, step: ScriptStep, chunkMs: number): Stream.Stream<ModelPart, ModelError> => {
  const head = answerParts(request, { ...step, tools: [] }, 0).filter((part) => part.type !== "finish")
  const end =
    step.hang === true
      ? Stream.never
      : Stream.fail(
          new ModelTransient({
            model: request.model,
            reason: "network",
            status: null,
            retryAfterMs: null,
            detail: step.message ?? "the connection was cut in mid-stream",
          }),
        )
  return Stream.concat(paced(head, step.delayMs ?? 0, chunkMs), end)
}

/** What a script does about one request. */
type Play =
  | {
      readonly type: "answer"
      readonly parts: ReadonlyArray<ModelPart>
      readonly delayMs: number
      readonly chunkMs: number
    }
  | { readonly type: "broken"; readonly step: ScriptStep; readonly chunkMs: number }
  | { readonly type: "fail"; readonly error: ModelError; readonly delayMs: number }

const rejected = (request: ModelRequest, detail: string): Play => ({
  type: "fail",
  error: new ModelRejected({ model: request.model, status: null, detail }),
  delayMs: 0,
})

/** Answers one request from a script; `spend` takes one of a fault's `times`, false when none is left. */
const play = (
  script: Script,
  request: ModelRequest,
  spend: (rule: number, index: number, step: ScriptStep) => boolean,
): Play => {
  const user = lastUser(request.messages)
  const asked = user === null ? "" : textOf(user.message.content)
  const rule = script.rules.findIndex(({ match }) => new RegExp(match, "s").test(asked))
  const steps = script.rules[rule]?.steps
  if (steps === undefined) {
    return rejected(request, `no rule of the script matches the last user text ${JSON.stringify(asked.slice(0, 200))}`)
  }
  const turns = user?.turns ?? 0
  const choice = choose(steps, turns, (index, step) => spend(rule, index, step))
  if (choice === null) return rejected(request, `the script has no answer left for turn ${turns + 1}`)
  const { step } = choice
  const chunkMs = step.chunkMs ?? script.chunkMs ?? 0
  const delayMs = step.delayMs ?? 0
  if (!choice.fault) return { type: "answer", parts: answerParts(request, step, turns), delayMs, chunkMs }
  if (step.cut === true || step.hang === true) return { type: "broken", step, chunkMs }
  return { type: "fail", error: failure(request.model, step), delayMs }
}

const streamOf = (request: ModelRequest, played: Play): Stream.Stream<ModelPart, ModelError> => {
  switch (played.type) {
    case "answer":
      return paced(played.parts, played.delayMs, played.chunkMs)
    case "broken":
      return broken(request, played.step, played.chunkMs)
    case "fail": {
      const fail = Effect.fail(played.error)
      return Stream.fromEffect(played.delayMs === 0 ? fail : Effect.zipRight(Effect.sleep(played.delayMs), fail))
    }
  }
}

/** The provider of `script/*`. `source` is a script, the path of its file, or null (then it is not configured). */
export const scriptProvider = (source: Script | string | null): ModelProvider => {
  const spent = new Map<string, number>()
  let loaded: Script | null = typeof source === "string" ? null : source

  const spend = (rule: number, index: number, step: ScriptStep) => {
    const key = `${rule}/${index}`
    const used = spent.get(key) ?? 0
    if (used >= (step.times ?? Number.POSITIVE_INFINITY)) return false
    spent.set(key, used + 1)
    return true
  }

  const load = (model: string): Effect.Effect<Script, ProviderNotConfigured> =>
    Effect.suspend(() => {
      const unconfigured = (detail: string) =>
        new ProviderNotConfigured({ provider: "script", model, variables: ["SUPER_PI_SCRIPT"], detail })
      if (loaded !== null) return Effect.succeed(loaded)
      if (typeof source !== "string") return Effect.fail(unconfigured("set SUPER_PI_SCRIPT to a script file"))
      return readScript(source).pipe(
        Effect.mapError(unconfigured),
        Effect.tap((script) => Effect.sync(() => (loaded = script))),
      )
    })

  return {
    ...names,
    variables: ["SUPER_PI_SCRIPT"],
    configured: Effect.succeed(source !== null),
    defaultModel: "script/default",
    models: Effect.succeed([names.info("script/default")]),
    stream: (request) =>
      Stream.unwrap(Effect.map(load(request.model), (script) => streamOf(request, play(script, request, spend)))),
    respond: (request, sink) =>
      Effect.flatMap(load(request.model), (script) => {
        const played = play(script, request, spend)
        return played.type === "answer" && played.delayMs === 0 && played.chunkMs === 0
          ? sink(played.parts)
          : Stream.runForEachChunk(streamOf(request, played), (parts) => sink(Chunk.toReadonlyArray(parts)))
      }),
  }
}
