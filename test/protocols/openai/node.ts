/** A real node behind the gateway, for the tests of the OpenAI-compatible API: conversations in a database, a scripted model, loopback HTTP. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Exit, Layer, Scope } from "effect"
import { Sessions, type SessionsService } from "../../../src/actors/sessions.ts"
import { InvalidRequest } from "../../../src/domain/failure.ts"
import { validator } from "../../../src/harness/plugins/structured-output/validator.ts"
import { SuperPi } from "../../../src/index.ts"
import { Models } from "../../../src/models/model.ts"
import type { Script } from "../../../src/models/providers/script-file.ts"
import { makeModels } from "../../../src/models/service.ts"
import { type GatewayOptions, serveGateway } from "../../../src/protocols/gateway.ts"
import type { ProtocolService } from "../../../src/protocols/service.ts"

export interface OpenAiNode {
  readonly url: string
  readonly sessions: SessionsService
  readonly directory: string
  readonly database: string
  readonly close: () => Promise<void>
}

export interface NodeOptions {
  readonly script: Script
  readonly env?: Record<string, string>
  /** An existing database; default a new one. */
  readonly directory?: string
  readonly model?: string
  readonly gateway?: Partial<GatewayOptions>
  readonly service?: Partial<ProtocolService>
}

/** Starts a node; `close` stops it cleanly and keeps its directory where it was given. */
export const startNode = async (options: NodeOptions): Promise<OpenAiNode> => {
  const { env = {}, gateway = {}, model = "script/default", script } = options
  const directory = options.directory ?? realpathSync(mkdtempSync(join(tmpdir(), "super-pi-openai-")))
  const database = join(directory, "data", "node.db")
  const scope = Effect.runSync(Scope.make())
  const modelsOptions = { env, script }
  const layer = SuperPi.layer({
    storage: { path: database },
    models: modelsOptions,
    defaults: { model, cwd: directory, mode: "auto" },
    harness: "super-pi-code",
  })
  const started = Effect.gen(function* () {
    const context = yield* Layer.buildWithScope(layer, scope)
    const { sessions, models } = yield* Effect.provide(
      Effect.map(Effect.all([Sessions, Models]), ([sessions]) => ({ sessions, models: makeModels(modelsOptions) })),
      context,
    )
    const service: ProtocolService = {
      sessions,
      models: models.list,
      version: "1.2.3",
      remote: { ownMode: "auto" },
      checkOf: (schema) =>
        Effect.mapError(
          validator(schema),
          ({ detail }) => new InvalidRequest({ path: "schema", expected: "a JSON Schema", actual: detail }),
        ),
      ...options.service,
    }
    const served = yield* serveGateway(service, { port: 0, ...gateway })
    return { url: served.url, sessions }
  })
  const { sessions, url } = await Effect.runPromise(Scope.extend(started, scope))
  return {
    url,
    sessions,
    directory,
    database,
    close: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      if (options.directory === undefined) rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** What a server-sent stream said: the parsed data of each event, with `[DONE]` as it is. */
export const readEvents = async (response: Response): Promise<ReadonlyArray<unknown>> =>
  (await response.text())
    .split("\n\n")
    .filter((block) => block.startsWith("data: ") || block.startsWith("event: "))
    .map(
      (block) =>
        block
          .split("\n")
          .find((line) => line.startsWith("data: "))
          ?.slice(6) ?? "",
    )
    .map((data) => (data === "[DONE]" ? data : (JSON.parse(data) as unknown)))

export const post = (url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  })
