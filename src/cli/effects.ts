/**
 * `super-pi effects`: unsafe effects that may or may not have happened. Reads the database, also while another process owns it.
 */
import { Effect } from "effect"
import { type EffectState, type EffectView, effectsAmong } from "../domain/effect.ts"
import { isJsonObject } from "../domain/json.ts"
import { ago, shortArguments } from "../protocols/terminal/format.ts"
import { oneLine } from "../protocols/terminal/sanitize.ts"
import { painter, traitsOf } from "../protocols/terminal/style.ts"
import { truncate } from "../protocols/terminal/width.ts"
import type { ReadError } from "../storage/errors.ts"
import { mayBeAlive, readOwner } from "../storage/sqlite/owner-file.ts"
import { canonicalPathOf } from "../storage/sqlite/paths.ts"
import type { StoreReads } from "../storage/store.ts"
import type { Invocation } from "./arguments.ts"
import { pathsOf } from "./context.ts"
import { ExitCode } from "./exit.ts"
import { openReader } from "./node.ts"
import * as option from "./options.ts"
import type { Paths } from "./paths.ts"
import { runCommand } from "./runtime.ts"
import { serverOf } from "./server.ts"

/** Columns of a call's arguments. */
const argumentColumns = 60

const stateWords: Readonly<Record<EffectState, string>> = {
  running: "running",
  cut_off: "cut off",
  in_doubt: "in doubt",
}

/** Two or three lines for each effect: what it is, why it is in doubt, its key. Pure. */
export const effectLines = (views: ReadonlyArray<EffectView>, now: number, columns: number | null): Array<string> => {
  const cut = (line: string): string => (columns === null ? line : truncate(line, columns - 1))
  const ids = Math.max(0, ...views.map((view) => String(view.task_id).length))
  return views.flatMap((view) => {
    const at = view.ended_at ?? view.started_at
    const args = isJsonObject(view.arguments) ? ` ${shortArguments(view.arguments, argumentColumns)}` : ""
    const what = [
      String(view.task_id).padStart(ids),
      stateWords[view.state],
      ...(at === null ? [] : [ago(at, now)]),
      ...(view.conversation_id === null ? [] : [`conversation ${view.conversation_id}`]),
      `${oneLine(view.tool)}${args}`,
    ].join("  ")
    const indent = " ".repeat(ids + 2)
    return [
      cut(what),
      ...(view.why === null ? [] : [cut(`${indent}${oneLine(view.why)}`)]),
      cut(`${indent}key ${oneLine(view.effect_id)}`),
    ]
  })
}

const isOwned = (file: string): boolean => {
  const owner = readOwner(canonicalPathOf(file))
  return owner !== null && mayBeAlive(owner)
}

/** What is in doubt in a database, whoever owns it; with `running` also what runs now. */
export const readEffects = (
  store: StoreReads,
  paths: Paths,
  options: { readonly running: boolean; readonly limit: number },
): Effect.Effect<ReadonlyArray<EffectView>, ReadError> =>
  Effect.gen(function* () {
    const inDoubt = yield* store.tasksInDoubt({ limit: options.limit })
    const open = yield* store.openTasks()
    const over = new Set(yield* store.endedEpochs(open.map(({ fence }) => fence)))
    const nobody = serverOf(paths, process.env) === null && !isOwned(paths.database)
    const isOver = (fence: number): boolean => nobody || over.has(fence)
    return effectsAmong({ inDoubt, open, isOver, running: options.running }).slice(0, options.limit)
  })

export const main = (invocation: Invocation): Promise<number> =>
  runCommand(() =>
    Effect.gen(function* () {
      const paths = pathsOf(invocation)
      const store = yield* openReader(paths)
      const wanted = { running: invocation.get(option.all) === true, limit: invocation.get(option.limit) ?? 100 }
      const views = store === null ? [] : yield* readEffects(store, paths, wanted)
      if (invocation.get(option.json) === true) {
        process.stdout.write(`${JSON.stringify(views)}\n`)
        return ExitCode.ok
      }
      if (views.length === 0) {
        process.stdout.write("no effect is in doubt\n")
        return ExitCode.ok
      }
      const traits = traitsOf(process.stdout, process.env)
      const paint = painter(traits.color)
      const lines = effectLines(views, Date.now(), traits.cursor ? (process.stdout.columns ?? 80) : null)
      for (const line of lines) process.stdout.write(`${line.startsWith(" ".repeat(3)) ? paint("dim", line) : line}\n`)
      process.stderr.write("say what became of one: super-pi effects settle ID happened|not-happened|ignore\n")
      return ExitCode.ok
    }),
  )
