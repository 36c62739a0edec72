/**
 * A node that other processes connect to, on a free port of loopback, with made-up sessions whose turns start and never end. Tells
 * `{news: "serving", port}`; each line on stdin is a text that the watchers of conversation 1 see as a delta.
 */
import { createInterface } from "node:readline"
import { Effect, Redacted } from "effect"
import { listenPeers } from "../../../src/protocols/peers/serve.ts"
import { makeFakeSessions } from "../fake-sessions.ts"

const env = process.env
const tell = (line: object) => void process.stdout.write(`${JSON.stringify(line)}\n`)

const main = Effect.gen(function* () {
  const fake = yield* makeFakeSessions({ hold: true })
  const listener = yield* listenPeers({ host: "127.0.0.1", port: 0, tls: null })
  yield* listener.serve({
    self: {
      name: `super_pi@${env.NAME}`,
      epoch: Number(env.EPOCH),
      address: `127.0.0.1:${listener.port}`,
      instance: `${process.pid}`,
      version: "1.0.0",
      system: "database one",
    },
    secret: Redacted.make(env.SECRET ?? ""),
    onlyNames: null,
    sessions: fake.sessions,
    info: Effect.succeed({ machines: 0, busy: 0, draining: false, shards: [] }),
  })
  createInterface({ input: process.stdin }).on("line", (text) => fake.emit(1, { type: "text_delta", text }))
  tell({ news: "serving", port: listener.port })
  yield* Effect.never
})

Effect.runFork(Effect.scoped(main))
