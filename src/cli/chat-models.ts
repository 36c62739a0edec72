/**
 * The models of a chat: which there are, and whether a name is one before a conversation is given it.
 *
 * Where another process owns the database its providers count, and their keys are not known here: what is not known is then said, not refused.
 */
import { Effect } from "effect"
import { InvalidRequest } from "../domain/failure.ts"
import { nearestNames } from "../domain/nearest.ts"
import type { ModelInfo } from "../models/model.ts"
import { makeModels } from "../models/service.ts"
import { mayBeAlive, readOwner } from "../storage/sqlite/owner-file.ts"
import { canonicalPathOf } from "../storage/sqlite/paths.ts"
import type { NodeOptions } from "./ports.ts"
import { modelSettings } from "./settings.ts"

/** A name that may be given, and what is odd about it. */
export interface CheckedModel {
  readonly model: string
  readonly warning: string | null
}

export interface ChatModels {
  /** Of the configured providers; a provider that does not answer lists none. Asked once. */
  readonly list: Effect.Effect<ReadonlyArray<ModelInfo>>
  readonly check: (name: string) => Effect.Effect<CheckedModel, InvalidRequest>
  /** Tokens of its context window, or null where that is not known; "" is the default model. */
  readonly window: (name: string) => Effect.Effect<number | null>
}

/** How long a provider may take to list its models. */
const patience = "4 seconds"

export const makeChatModels = (options: NodeOptions): Effect.Effect<ChatModels> =>
  Effect.gen(function* () {
    const models = makeModels({ env: options.env, settings: modelSettings(options.settings) })
    const list = yield* Effect.cached(
      Effect.timeoutTo(models.list, { duration: patience, onSuccess: (all) => all, onTimeout: () => [] }),
    )
    const foreign = Effect.sync(() => {
      const owner = options.postgres === undefined ? readOwner(canonicalPathOf(options.db)) : null
      return owner !== null && owner.pid !== process.pid && mayBeAlive(owner)
    })
    const listed = (id: string) =>
      Effect.map(list, (all): string | null => {
        const own = all.filter(({ provider }) => id.startsWith(`${provider}/`)).map((one) => one.id)
        if (own.length === 0 || own.includes(id)) return null
        const [near] = nearestNames(id, own, 1)
        return `${id} is not among the models that its provider lists${near === undefined ? "" : `; did you mean ${near}?`}`
      })
    return {
      list,
      check: (name) =>
        models.resolve(name).pipe(
          Effect.flatMap(({ id }) => Effect.map(listed(id), (warning) => ({ model: id, warning }))),
          Effect.catchAll((error) =>
            Effect.flatMap(foreign, (elsewhere): Effect.Effect<CheckedModel, InvalidRequest> => {
              const warning = `not known here: ${error.message}; the process that owns the database asks it`
              if (elsewhere) return Effect.succeed({ model: name, warning })
              return new InvalidRequest({
                path: "/model",
                expected: "a model that can be asked",
                actual: error.message,
              })
            }),
          ),
        ),
      window: (name) =>
        (name === "" ? models.defaultModel : Effect.succeed(name)).pipe(
          Effect.flatMap(models.resolve),
          Effect.map((info) => info.contextWindow),
          Effect.orElseSucceed(() => null),
        ),
    }
  })
