/**
 * Serves the Agent Client Protocol to one editor over two byte streams.
 */
import type { Readable, Writable } from "node:stream"
import { Effect } from "effect"
import type { ProtocolService } from "../service.ts"
import { type AcpOptions, makeAgent } from "./agent.ts"
import { makeStream } from "./stream.ts"

export type { AcpOptions, Command } from "./agent.ts"

/**
 * Completes when the editor has ended its side or is gone; turns that run then go on without it. With stdin and stdout nothing else may
 * write to stdout.
 */
export const serveAcp = (
  service: ProtocolService,
  options: AcpOptions,
  streams: { readonly input: Readable; readonly output: Writable } = { input: process.stdin, output: process.stdout },
): Effect.Effect<void> =>
  Effect.scoped(
    Effect.gen(function* () {
      const app = yield* makeAgent(service, options)
      const { stream } = makeStream({ ...streams, endable: false })
      const connection = yield* Effect.acquireRelease(
        Effect.sync(() => app.connect(stream)),
        (open) => Effect.sync(() => open.close()),
      )
      yield* Effect.promise(() => connection.closed)
    }),
  )
