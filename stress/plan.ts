/**
 * What a seed stands for: the prompts of every conversation, what the scripted model answers to each, which unsafe calls it makes, and when
 * the node is killed. Pure.
 */
import type { Script, ScriptStep } from "../src/models/providers/script-file.ts"
import { type Random, random } from "./random.ts"

export interface Options {
  readonly conversations: number
  readonly seconds: number
  readonly seed: number
  readonly kills: number
}

/** One prompt: `unsafe` are the tokens that its calls write, each exactly once or, where a kill hit the call, at most once. */
export interface Job {
  readonly key: string
  readonly prompt: string
  readonly answer: string
  readonly unsafe: ReadonlyArray<string>
  /** How often each life of the node sees its model fail, for a moment, before it answers. */
  readonly faults: number
}

export interface Plan {
  readonly options: Options
  /** By conversation, in the order in which they are submitted. */
  readonly jobs: ReadonlyArray<ReadonlyArray<Job>>
  readonly script: Script
  /** By time, ascending. */
  readonly kills: ReadonlyArray<Kill>
}

/** From `at` (milliseconds after the start) on, the node is killed at once, or `afterMs` after a watcher next sees such an event. */
export interface Kill {
  readonly at: number
  readonly on: "now" | "tool_started" | "text_delta" | "tool_completed"
  readonly afterMs: number
}

/** More prompts than a conversation gets through. */
const jobsPerConversation = (seconds: number): number => Math.min(400, 10 + seconds * 4)

/** Writes `start` and `end` of one call to the log, atomically by line, with a moment in between in which a kill can hit. */
const command = (log: string, token: string, seconds: number): string =>
  `printf 'start ${token}\\n' >> '${log}'; sleep ${seconds}; printf 'end ${token}\\n' >> '${log}'; echo done ${token}`

interface Scripted {
  readonly job: Job
  readonly steps: readonly [ScriptStep, ...Array<ScriptStep>]
}

const scripted = (key: string, log: string, source: Random): Scripted => {
  const answer = `answer ${key}: ${"word ".repeat(source.int(30))}end`
  const unsafe: Array<string> = []
  const steps: Array<ScriptStep> = []
  if (source.chance(0.1)) steps.push({ status: source.pick([429, 529, 500]), times: 1, retryAfter: 0 })
  const batches = source.pick([0, 1, 1, 2])
  for (let batch = 0; batch < batches; batch++) {
    const calls = 1 + source.int(3)
    const tools = Array.from({ length: calls }, (_, call) => {
      if (source.chance(0.3)) return { name: "read", args: { path: "notes.txt" } }
      const token = `${key}.${batch}.${call}`
      unsafe.push(token)
      return { name: "bash", args: { command: command(log, token, source.pick([0.02, 0.02, 0.2])) } }
    })
    steps.push({ text: `step ${batch} of ${key}`, tools, chunkMs: source.pick([0, 0, 3]) })
  }
  if (source.chance(0.1)) steps.push({ text: "a half answer", cut: true, times: 1 })
  const last: ScriptStep = {
    text: answer,
    delayMs: source.pick([0, 0, 20]),
    chunkMs: source.pick([0, 0, 5]),
    chunks: 6,
  }
  const [first = last, ...rest] = [...steps, last]
  const faults = steps.filter(({ times }) => times !== undefined).length
  return { job: { key, prompt: `job ${key} please`, answer, unsafe, faults }, steps: [first, ...rest] }
}

/**
 * A rule answers the last prompt of the text that the model sees: prompts that stand side by side (one was cancelled) reach it joined.
 * `log` is the file that unsafe calls append to, in the workspace, where they may.
 */
export const makePlan = (options: Options, log: string): Plan => {
  const source = random(options.seed)
  const all = Array.from({ length: options.conversations }, (_, conversation) =>
    Array.from({ length: jobsPerConversation(options.seconds) }, (_, n) =>
      scripted(`c${conversation}n${n}`, log, source),
    ),
  )
  const span = options.seconds * 1_000
  const kills = Array.from(
    { length: options.kills },
    (): Kill => ({
      at: Math.round(span * 0.1) + source.int(Math.round(span * 0.85)),
      on: source.pick(["now", "tool_started", "tool_started", "text_delta", "tool_completed"]),
      afterMs: source.int(20),
    }),
  )
  return {
    options,
    jobs: all.map((conversation) => conversation.map(({ job }) => job)),
    script: { rules: all.flat().map(({ job, steps }) => ({ match: `job ${job.key} please$`, steps })) },
    kills: kills.sort((a, b) => a.at - b.at),
  }
}
