/**
 * The node under test, in a process of its own: durable conversations in a database, a model that streams the clock, and the gateway.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer, Stream } from "effect"
import { Sessions } from "../../src/actors/sessions.ts"
import { noUsage } from "../../src/domain/usage.ts"
import type { ModelInfo, ModelPart, ModelProvider } from "../../src/models/model.ts"
import { serveGateway } from "../../src/protocols/gateway.ts"
import { SuperPi } from "../../src/super-pi.ts"
import { deltas, intervalMs, stamp } from "./clock.ts"

const info: ModelInfo = {
  id: "bench/clock",
  provider: "bench",
  name: "clock",
  contextWindow: null,
  images: false,
  thinking: false,
  isDefault: true,
}

const respond: NonNullable<ModelProvider["respond"]> = (_, sink) =>
  Effect.gen(function* () {
    let text = ""
    for (let at = 0; at < deltas; at++) {
      yield* Effect.sleep(intervalMs)
      const delta = stamp()
      text += delta
      yield* sink([{ type: "text", delta }])
    }
    yield* sink([{ type: "finish", content: [{ type: "text", text }], stopReason: "stop", usage: noUsage }])
  })

const clock: ModelProvider = {
  id: "bench",
  handles: (model) => model === info.id,
  wireName: () => info.name,
  variables: [],
  configured: Effect.succeed(true),
  defaultModel: info.id,
  models: Effect.succeed([info]),
  info: () => info,
  stream: (request) =>
    Stream.asyncPush<ModelPart>((emit) => {
      const send = (parts: ReadonlyArray<ModelPart>) =>
        Effect.sync(() => {
          for (const part of parts) emit.single(part)
        })
      const whole = Effect.ensuring(
        Effect.ignore(respond(request, send)),
        Effect.sync(() => emit.end()),
      )
      return Effect.forkScoped(whole)
    }),
  respond,
}

/** Serves until the parent lets go of this process; tells it the port. */
export const runNode = async (): Promise<void> => {
  const directory = mkdtempSync(join(tmpdir(), "super-pi-bench-gateway-"))
  const layer = SuperPi.layer({
    storage: { path: join(directory, "node.db"), serve: false },
    models: { env: {}, providers: [clock] },
    defaults: { model: info.id, cwd: directory },
  })
  const served = Effect.gen(function* () {
    const sessions = yield* Sessions
    const service = { sessions, models: Effect.succeed([info]), version: "0", remote: { ownMode: "auto" as const } }
    const limits = { requestsPerSecond: 10_000, requestBurst: 10_000 }
    const gateway = yield* serveGateway(service, { port: 0, settings: { limits } })
    process.send?.({ port: gateway.port })
    yield* Effect.async<void>((resume) => {
      process.once("message", () => resume(Effect.void))
    })
  })
  await Effect.runPromise(Effect.scoped(Effect.provide(served, Layer.orDie(layer))))
  rmSync(directory, { recursive: true, force: true })
}
