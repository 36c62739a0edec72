/**
 * `super-pi tree`: the live supervision tree of the node that owns the database. It never starts one.
 */

import { clearScreenDown, cursorTo } from "node:readline"
import { Effect, Schedule } from "effect"
import type { SessionsService } from "../actors/sessions.ts"
import { traitsOf } from "../protocols/terminal/style.ts"
import { renderTree } from "../protocols/terminal/tree.ts"
import { locationOf } from "../storage/postgres/settings.ts"
import type { Invocation } from "./arguments.ts"
import { pathsOf } from "./context.ts"
import { CommandFailure, ExitCode } from "./exit.ts"
import { attachSessions } from "./node.ts"
import * as option from "./options.ts"
import type { Paths } from "./paths.ts"
import { runCommand } from "./runtime.ts"
import { serverOf } from "./server.ts"

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

/** How often and how long a successor is looked for when the node that is watched has ended: longer than a takeover takes. */
const succession = Schedule.spaced(refresh).pipe(Schedule.intersect(Schedule.recurs(20)))

/** Attaches to the node that runs now. */
const attached = (paths: Paths) =>
  Effect.flatMap(attachSessions(paths, "super-pi tree"), (sessions) =>
    sessions === null ? Effect.fail(new CommandFailure(nobody(paths))) : Effect.succeed(sessions),
  )

const nobody = (paths: Paths): string => {
  const server = serverOf(paths, process.env)
  return server === null
    ? `no node is running on ${paths.database}; start one with super-pi or super-pi rpc, or give its --db`
    : `nodes on ${locationOf(server)} are not attached to, that works with SQLite only; super-pi cluster shows them`
}

/** Shows the tree until the node ends, then that of the node that takes over; fails when none does. */
const watchTree = (paths: Paths, invocation: Invocation) => {
  const untilItEnds = (sessions: SessionsService) =>
    show(sessions, invocation, true).pipe(Effect.repeat(Schedule.spaced(refresh)), Effect.ignore)
  const first = Effect.flatMap(attached(paths), untilItEnds)
  const next = Effect.scoped(
    attached(paths).pipe(
      Effect.tap((sessions) => show(sessions, invocation, true)),
      Effect.retry(succession),
      Effect.flatMap(untilItEnds),
    ),
  )
  return Effect.zipRight(Effect.scoped(first), Effect.forever(next))
}

export const main = (invocation: Invocation): Promise<number> => {
  const paths = pathsOf(invocation)
  return runCommand(() =>
    Effect.as(
      invocation.get(option.watch) === true
        ? watchTree(paths, invocation)
        : Effect.flatMap(attached(paths), (sessions) => show(sessions, invocation, false)),
      ExitCode.ok,
    ),
  )
}
