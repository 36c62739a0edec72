/**
 * `super-pi tree`: the live supervision tree of the node that owns the database. It never starts one.
 */

import { clearScreenDown, cursorTo } from "node:readline"
import { Effect, Schedule } from "effect"
import type { SessionsService } from "../actors/sessions.ts"
import { traitsOf } from "../protocols/terminal/style.ts"
import { renderTree } from "../protocols/terminal/tree.ts"
import type { Invocation } from "./arguments.ts"
import { pathsOf } from "./context.ts"
import { CommandFailure, ExitCode } from "./exit.ts"
import { attachSessions } from "./node.ts"
import * as option from "./options.ts"
import { runCommand } from "./runtime.ts"

/** Between two pictures of `--watch`. */
const refresh = "500 millis"

const show = (sessions: SessionsService, invocation: Invocation, watching: boolean) =>
  Effect.map(sessions.tree, (tree) => {
    if (invocation.get(option.json) === true) return void process.stdout.write(`${JSON.stringify(tree)}\n`)
    const traits = traitsOf(process.stdout, process.env)
    const columns = traits.cursor ? (process.stdout.columns ?? 80) : null
    const picture = renderTree(tree, { color: traits.color, columns, now: Date.now() })
    if (watching && traits.cursor) {
      // As much as fits: a taller picture would scroll and could not be drawn over.
      const rows = picture.split("\n").slice(0, Math.max(1, (process.stdout.rows ?? 24) - 1))
      cursorTo(process.stdout, 0, 0)
      clearScreenDown(process.stdout)
      process.stdout.write(`${rows.join("\n")}\n`)
    } else process.stdout.write(`${picture}\n${watching ? "\n" : ""}`)
  })

export const main = (invocation: Invocation): Promise<number> => {
  const paths = pathsOf(invocation)
  const watching = invocation.get(option.watch) === true
  return runCommand(() =>
    Effect.gen(function* () {
      const sessions = yield* attachSessions({ db: paths.database, program: "super-pi tree" })
      if (sessions === null) {
        return yield* Effect.fail(
          new CommandFailure(
            `no node is running on ${paths.database}; start one with super-pi or super-pi rpc, or give its --db`,
          ),
        )
      }
      const once = show(sessions, invocation, watching)
      if (!watching) yield* once
      else yield* Effect.repeat(once, Schedule.spaced(refresh))
      return ExitCode.ok
    }),
  )
}
