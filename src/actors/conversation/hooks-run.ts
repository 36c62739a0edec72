/**
 * The jobs of hooks beside requests and calls: what plugins do when the calls of a turn have ended, when the model gave its answer, when a run has
 * ended, and with an input before it is placed.
 */
import { Effect } from "effect"
import { isJsonObject } from "../../domain/json.ts"
import { textOf } from "../../domain/message.ts"
import { afterRun, afterTools, onInput, onYield } from "../../harness/pipeline.ts"
import type { ToolCallView } from "../../harness/plugin.ts"
import type { StoreReads } from "../../storage/store.ts"
import type { Ground } from "./hooks.ts"
import { judgeWithHooks } from "./hooks-calls.ts"
import type { Send } from "./jobs.ts"
import { afterRunOf } from "./machine/after-run.ts"
import type { Action, EndedCall, SubmissionRow, TaskRow, Verdict } from "./machine/data.ts"
import { inputOf } from "./machine/place.ts"
import { type Judging, judgeAll } from "./prepare.ts"

type HookAction = Extract<Action, { readonly type: "hook" }>

const viewOf = ({ tools }: Ground, { args, id, name }: EndedCall): ToolCallView => ({
  id,
  name,
  args: isJsonObject(args) ? args : {},
  effects: tools.get(name)?.effectsOf?.(args) ?? tools.get(name)?.effects ?? [],
})

/** The hooks that the run waits for. Its last word is `toldEnded` or `yielded`. */
export const hookJob = ({ hook, token }: HookAction, ground: Ground, send: Send): Effect.Effect<void> => {
  const { runner } = ground
  if (hook.type === "afterTools") {
    const calls = hook.calls.map((call) => ({ call: viewOf(ground, call), isError: call.isError }))
    const told = runner === null ? Effect.void : afterTools(runner, calls)
    return Effect.zipRight(told, send({ type: "toldEnded", token }))
  }
  const { entry, text } = hook
  const asked = runner === null ? Effect.succeed(null) : onYield(runner, { entry, text })
  return Effect.flatMap(asked, (next) => send({ type: "yielded", token, next }))
}

/** The hooks of a run that ended. */
export const afterRunJob = (task: TaskRow, { runner }: Ground, store: StoreReads, send: Send): Effect.Effect<void> => {
  const { answer, outcome, task: generation, tools } = afterRunOf(task)
  const text = Effect.map(answer === null ? Effect.succeed(null) : store.entry(answer), (entry) => {
    const message = entry?.model.find(({ role }) => role === "assistant")
    return message?.role === "assistant" ? textOf(message.content) : null
  }).pipe(Effect.orElseSucceed(() => null))
  const run = Effect.flatMap(text, (said) =>
    runner === null ? Effect.void : afterRun(runner, { task: generation, outcome, text: said, tools }),
  )
  return Effect.zipRight(run, send({ type: "afterRunEnded", task: task.id }))
}

/** Reads an input, and judges the commands that it asks for as calls of `bash`. */
export const inputJob = (row: SubmissionRow, { runner }: Ground, judging: Judging, send: Send): Effect.Effect<void> =>
  Effect.gen(function* () {
    const given = inputOf(row).content
    if (runner === null) {
      return yield* send({ type: "inputRead", submission: row.id, content: given, agent: null, commands: [] })
    }
    const { agent, commands, content, settles } = yield* onInput(runner, given)
    const calls = commands.map(({ command, timeoutMs }, at) => ({
      type: "toolCall" as const,
      id: `input-${row.id}-${at}`,
      name: "bash",
      arguments: { command, timeout: Math.max(0.1, timeoutMs / 1000) },
    }))
    const judged: ReadonlyArray<Verdict> | Effect.Effect<ReadonlyArray<Verdict>> = runner.pipeline.hooks.has(
      "beforeTool",
    )
      ? judgeWithHooks(calls, judging, runner)
      : judgeAll(calls, judging)
    const verdicts = Effect.isEffect(judged) ? yield* judged : judged
    yield* send({
      type: "inputRead",
      submission: row.id,
      content,
      agent,
      ...(settles === null ? {} : { settles }),
      commands: commands.map(({ maxBytes }, at) => ({ maxBytes, verdict: verdicts[at] ?? unjudged })),
    })
  })

const unjudged: Verdict = { type: "refuse", reason: "the command was not judged" }
