/**
 * Work that keeps conversations busy in every way there is, and what it must come to. Pure.
 */
import type { Script, ScriptStep } from "../../../src/models/providers/script-file.ts"

export const workKinds = ["streams", "calls", "delegates", "sleeps", "asks", "queues"] as const
export type WorkKind = (typeof workKinds)[number]

export interface Work {
  readonly key: string
  readonly kind: WorkKind
  readonly prompt: string
  readonly answer: string
  /** What is submitted behind it while it runs. */
  readonly followUp: { readonly prompt: string; readonly answer: string } | null
  /** Written once, or, by calls that were cut off, at most once. */
  readonly tokens: ReadonlyArray<string>
  /** Those of calls that cannot have begun before everything was interrupted: written exactly once. */
  readonly certain: ReadonlyArray<string>
}

interface Planned {
  readonly work: Work
  readonly rules: Script["rules"]
}

/** Milliseconds of a stream, and of a call, that is to be interrupted: until then everything else is busy too, also on a slow machine. */
const longMs = 20_000
/** Of a backoff, which is begun last. */
const backoffSeconds = 10

const commandOf = (log: string, token: string, seconds: number): string =>
  `printf 'start ${token}\\n' >> '${log}'; sleep ${seconds}; printf 'end ${token}\\n' >> '${log}'; echo done ${token}`

const call = (log: string, token: string, seconds: number) => ({
  name: "bash",
  args: { command: commandOf(log, token, seconds) },
})

const long = (text: string): ScriptStep => ({ text, chunks: 100, chunkMs: longMs / 100 })

const plan = (key: string, kind: WorkKind, log: string): Planned => {
  const prompt = `work ${key} please`
  const answer = `answer ${key}: ${"word ".repeat(40)}end`
  const match = `work ${key} please$`
  const token = `${key}.call`
  const none = { key, kind, prompt, answer, followUp: null, tokens: [], certain: [] }
  switch (kind) {
    case "streams":
      return { work: none, rules: [{ match, steps: [long(answer)] }] }
    case "calls": {
      const last = `${key}.last`
      const tools = [call(log, token, longMs / 1_000), { name: "read", args: { path: "notes.txt" } }]
      const steps = [{ text: "first", tools }, { tools: [call(log, last, 0)] }, { text: answer }] as const
      return { work: { ...none, tokens: [token, last], certain: [last] }, rules: [{ match, steps }] }
    }
    case "delegates": {
      const child = `${key}.child`
      const tools = [{ name: "delegate_subagent", args: { tasks: [{ role: "worker", task: `work ${child} please` }] } }]
      return {
        work: none,
        rules: [
          { match: `answer ${child}: `, steps: [{ text: answer }] },
          { match: `work ${child} please`, steps: [long(`answer ${child}: done`)] },
          { match, steps: [{ tools }, { text: answer }] },
        ],
      }
    }
    case "sleeps":
      // once in every life of a node
      return {
        work: none,
        rules: [{ match, steps: [{ status: 429, retryAfter: backoffSeconds, times: 1 }, { text: answer }] }],
      }
    case "asks":
      return {
        work: { ...none, tokens: [token], certain: [token] },
        rules: [{ match, steps: [{ tools: [call(log, token, 0)] }, { text: answer }] }],
      }
    case "queues": {
      const next = { prompt: `next ${key} please`, answer: `answer next ${key}` }
      return {
        work: { ...none, followUp: next },
        rules: [
          { match: `next ${key} please$`, steps: [{ text: next.answer }] },
          { match, steps: [long(answer)] },
        ],
      }
    }
  }
}

export interface Plan {
  /** By round. */
  readonly rounds: ReadonlyArray<ReadonlyArray<Work>>
  readonly script: Script
}

/** `count` pieces of work in each round, of every kind in turn. */
export const planWork = (rounds: number, count: number, log: string): Plan => {
  const planned = Array.from({ length: rounds }, (_, round) =>
    Array.from({ length: count }, (_, at) =>
      plan(`r${round}w${at}`, workKinds[at % workKinds.length] ?? "streams", log),
    ),
  )
  return {
    rounds: planned.map((round) => round.map(({ work }) => work)),
    script: { rules: planned.flat().flatMap(({ rules }) => rules) },
  }
}
