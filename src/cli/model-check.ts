/**
 * Whether a new conversation has a model, asked before it is made: without a key nothing is begun, and the person learns what to set.
 */
import { Effect } from "effect"
import { makeModels } from "../models/service.ts"
import { mayBeAlive, readOwner } from "../storage/sqlite/owner-file.ts"
import { canonicalPathOf } from "../storage/sqlite/paths.ts"
import type { Choice } from "./conversation.ts"
import { CommandFailure } from "./exit.ts"
import type { NodeOptions } from "./ports.ts"
import { modelSettings } from "./settings.ts"

/**
 * The `provider/model` that a new conversation would ask, or null where that is not for this process to say: the conversation exists, or
 * another process owns the database and asks its own providers.
 */
export const modelOf = (choice: Choice, options: NodeOptions): Effect.Effect<string | null, CommandFailure> =>
  Effect.suspend(() => {
    if (choice.latest || choice.id !== null) return Effect.succeed(null)
    // Nobody is attached to on a server: there it is always this process.
    const owner = options.postgres === undefined ? readOwner(canonicalPathOf(options.db)) : null
    if (owner !== null && mayBeAlive(owner)) return Effect.succeed(null)
    const models = makeModels({
      env: options.env,
      settings: modelSettings(options.settings),
      model: choice.fresh.model,
    })
    return models.defaultModel.pipe(
      Effect.flatMap(models.resolve),
      Effect.map((info) => info.id),
      Effect.mapError((error) => new CommandFailure(error.message)),
    )
  })
