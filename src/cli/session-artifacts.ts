/**
 * `super-pi session artifacts ID`: what a conversation keeps; with `--get NAME` its content, byte for byte.
 */
import { Effect } from "effect"
import { ago } from "../protocols/terminal/format.ts"
import { oneLine } from "../protocols/terminal/sanitize.ts"
import { sizeText } from "../tools/limits.ts"
import type { Invocation } from "./arguments.ts"
import { CommandFailure, ExitCode } from "./exit.ts"
import * as option from "./options.ts"
import { runCommand } from "./runtime.ts"
import { readConversation } from "./session-read.ts"

export const main = (invocation: Invocation): Promise<number> =>
  runCommand(() =>
    Effect.gen(function* () {
      const { conversation, store } = yield* readConversation(invocation)
      const name = invocation.get(option.get)
      if (name !== undefined) {
        const found = yield* store.artifact(conversation.id, name)
        if (found === null) {
          const list = `super-pi session artifacts ${conversation.id}`
          return yield* Effect.fail(
            new CommandFailure(`conversation ${conversation.id} has no artifact ${JSON.stringify(name)}; see: ${list}`),
          )
        }
        process.stdout.write(found.content)
        return ExitCode.ok
      }
      const artifacts = yield* store.artifacts(conversation.id)
      if (invocation.get(option.json) === true) {
        process.stdout.write(`${JSON.stringify(artifacts)}\n`)
        return ExitCode.ok
      }
      if (artifacts.length === 0) process.stderr.write(`conversation ${conversation.id} has no artifacts\n`)
      const now = Date.now()
      for (const one of artifacts) {
        const about = [oneLine(one.name), oneLine(one.mediaType), sizeText(one.size), ago(one.updatedAt, now)]
        process.stdout.write(`${about.join("  ")}\n`)
      }
      return ExitCode.ok
    }),
  )
