/** A JSON-RPC server over stdin and stdout in front of a fake node, as a process of its own. */
import { Effect } from "effect"
import { serveStdio } from "../../../src/protocols/jsonrpc/serve.ts"
import { makeFakeSessions } from "../fake-sessions.ts"
import { protocolService } from "../service.ts"

const program = Effect.scoped(
  Effect.gen(function* () {
    const fake = yield* makeFakeSessions({})
    const ticks = setInterval(() => process.stderr.write("."), 20)
    yield* serveStdio(protocolService(fake.sessions))
    clearInterval(ticks)
  }),
)
Effect.runFork(program)
