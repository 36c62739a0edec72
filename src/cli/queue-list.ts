/**
 * `super-pi queue list`: the queues and their newest jobs. Asks the node that runs; reads the database where none does.
 */
import { Effect } from "effect"
import { queueViews } from "../actors/queue/views.ts"
import { painter, traitsOf } from "../protocols/terminal/style.ts"
import type { Invocation } from "./arguments.ts"
import { pathsOf } from "./context.ts"
import { ExitCode } from "./exit.ts"
import { attachSessions, openReader } from "./node.ts"
import * as option from "./options.ts"
import { jobLines, queueLines } from "./queue-read.ts"
import { runCommand } from "./runtime.ts"
import { serverOf } from "./server.ts"

export const main = (invocation: Invocation): Promise<number> =>
  runCommand(() =>
    Effect.gen(function* () {
      const paths = pathsOf(invocation)
      const store = yield* openReader(paths)
      if (store === null) {
        if (invocation.get(option.json) === true) process.stdout.write('{"queues":[],"jobs":[]}\n')
        else process.stderr.write("there is no database yet; start one with: super-pi\n")
        return ExitCode.ok
      }
      // An owner that does not answer is no reason to show nothing: the database says the same without the workers.
      const node = yield* Effect.orElseSucceed(attachSessions(paths, "super-pi queue"), () => null)
      const stored = queueViews(store, null)
      const queues = node === null ? yield* stored : yield* Effect.orElse(node.queues, () => stored)
      const jobs = yield* store.jobs({ limit: invocation.get(option.limit) ?? 100 })
      if (invocation.get(option.json) === true) {
        process.stdout.write(`${JSON.stringify({ queues, jobs })}\n`)
        return ExitCode.ok
      }
      const traits = traitsOf(process.stdout, process.env)
      const columns = traits.cursor ? (process.stdout.columns ?? 80) : null
      const now = Date.now()
      for (const line of queueLines(queues, now, columns)) process.stdout.write(`${line}\n`)
      if (jobs.length > 0) process.stdout.write("\n")
      const paint = painter(traits.color)
      for (const [index, line] of jobLines(jobs, now, columns).entries()) {
        process.stdout.write(`${jobs[index]?.state === "discarded" ? paint("error", line) : line}\n`)
      }
      // On a server there may be some: they do not say.
      const silent = node !== null || serverOf(paths, process.env) !== null
      if (!silent) process.stderr.write("no node is running on this database: its jobs wait\n")
      return ExitCode.ok
    }),
  )
