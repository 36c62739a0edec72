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

/**
 * `callers` says who speaks the protocol: programs that reach a server, or the person who started the command, in an interface that asks for
 * permission itself.
 */
export const protocolServiceOf = (
  sessions: SessionsService,
  options: NodeOptions,
  callers: "programs" | "person",
): Effect.Effect<ProtocolService> =>
  Effect.map(
    Effect.promise(() => Promise.all([import("../models/service.ts"), import("../protocols/remote.ts")])),
    ([{ makeModels }, { callerRules }]) => ({
      sessions,
      models: makeModels({ env: options.env, settings: modelSettings(options.settings) }).list,
      version: version(),
      remote:
        callers === "person"
          ? { ...options.settings.permissions, ownMode: options.mode ?? "auto" }
          : callerRules(options.mode, options.settings.permissions),
      checkOf,
    }),
  )
