/**
 * The MCP server on two streams, for the process that started it: both protocol eras, decided by the client's first message.
 */
import { Effect } from "effect"
import { type McpService, makeConnection } from "./connection.ts"
import type { LineStreams } from "./line-transport.ts"

/** Whose the client's conversations are: those of the person who started the process. */
const principal = "local"

/**
 * Serves one client; completes when it has ended its side, or is gone. What it left at work is cancelled then. Interrupted, the server stops
 * and the work goes on at the next start. With stdin and stdout nothing else may write to stdout.
 */
export const serveMcpStdio = (
  served: McpService,
  streams: LineStreams = { input: process.stdin, output: process.stdout },
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const [{ serveStdio }, { buildServer }, { makeAnswers }, { makeLineTransport }] = yield* Effect.promise(() =>
      Promise.all([
        import("@modelcontextprotocol/server/stdio"),
        import("./build.ts"),
        import("./answers.ts"),
        import("./line-transport.ts"),
      ]),
    )
    const runtime = yield* Effect.runtime<never>()
    const listing = yield* Effect.orDie(served.service.sessions.harnesses)
    const connection = makeConnection(served, { principal, harness: null })
    const answers = makeAnswers(runtime)
    const wire = makeLineTransport(streams)
    const handle = serveStdio(
      () => {
        const server = buildServer(connection, listing, answers, { stateless: false, pushes: true })
        connection.onStarted = () => server.sendResourceListChanged()
        return server
      },
      { transport: wire, onerror: (error) => answers.note("MCP over stdio", error) },
    )
    yield* wire.run.pipe(
      Effect.onInterrupt(() =>
        Effect.sync(() => {
          connection.leaving = true
        }),
      ),
      Effect.ensuring(Effect.promise(() => handle.close())),
      Effect.ensuring(Effect.interruptible(answers.idle)),
    )
  })
