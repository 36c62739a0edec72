/**
 * What protocol adapters are given by the command line: the sessions of the node with what may be said of it.
 */
import { Effect } from "effect"
import type { SessionsService } from "../actors/sessions.ts"
import { InvalidRequest } from "../domain/failure.ts"
import type { ProtocolService } from "../protocols/service.ts"
import { version } from "./package.ts"
import type { NodeOptions } from "./ports.ts"
import { modelSettings } from "./settings.ts"

/** The validator is loaded by the first request that wants a value. */
const checkOf: NonNullable<ProtocolService["checkOf"]> = (schema) =>
  Effect.promise(() => import("../harness/plugins/structured-output/validator.ts")).pipe(
    Effect.flatMap(({ validator }) => validator(schema)),
    Effect.mapError(
      ({ detail }) =>
        new InvalidRequest({ path: "schema", expected: "a JSON Schema", actual: `one with faults: ${detail}` }),
    ),
  )

export const protocolServiceOf = (sessions: SessionsService, options: NodeOptions): Effect.Effect<ProtocolService> =>
  Effect.map(
    Effect.promise(() => import("../models/service.ts")),
    ({ makeModels }) => ({
      sessions,
      models: makeModels({ env: options.env, settings: modelSettings(options.settings) }).list,
      version: version(),
      remote: { ...options.settings.permissions, ownMode: options.mode ?? "auto" },
      checkOf,
    }),
  )
