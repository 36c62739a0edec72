/**
 * Plugin JevRouter: a strong model plans, a fast one implements. A run begins with the planning model and goes over to the implementation
 * model at its first edit, or when plan mode was left; it stays there to its end. The way is read off the transcript (`route.ts`), so it
 * outlives a crash. A model that no provider serves is never chosen: the conversation keeps the one that it has, and says so.
 *
 * The two models come from `JEV_PLANNING_MODEL` and `JEV_IMPLEMENTATION_MODEL`, else the options, else {@link defaultPairs}.
 */
import { Effect, Schema } from "effect"
import { type ModelInfo, Models, type ModelsService } from "../../models/model.ts"
import { definePlugin } from "../define.ts"
import { route } from "./jev-router/route.ts"

const JevRouterOptions = Schema.Struct({
  /** Default: the conversation's own model. */
  planningModel: Schema.optional(Schema.NonEmptyString),
  /** Default: the conversation's own model. */
  implementationModel: Schema.optional(Schema.NonEmptyString),
  /** Tools whose call begins the implementation. */
  editTools: Schema.optionalWith(Schema.Array(Schema.NonEmptyString), { default: () => ["write", "edit"] }),
  /** False: no routing, whatever the environment says. */
  enabled: Schema.optionalWith(Schema.Boolean, { default: () => true }),
})

interface Pair {
  readonly planning: string
  readonly implementation: string
}

/**
 * What a conversation on a service's fast default model is planned with, where neither options nor environment name a model. A
 * conversation on any other model keeps it: that model was somebody's choice.
 */
export const defaultPairs: Readonly<Record<string, Pair>> = {
  "google/gemini-3-flash-preview": {
    planning: "google/gemini-3.1-pro-preview",
    implementation: "google/gemini-3-flash-preview",
  },
}

/** The pair for a conversation on `own`; null where nothing is to be routed. `named` says whether somebody asked for it. */
export const pairFor = (
  own: string,
  options: Pick<typeof JevRouterOptions.Type, "planningModel" | "implementationModel">,
  env: Readonly<Record<string, string>>,
): (Pair & { readonly named: boolean }) | null => {
  const chosen = (variable: string, option: string | undefined) => {
    const value = env[variable]?.trim() ?? ""
    return value === "" ? option : value
  }
  const planning = chosen("JEV_PLANNING_MODEL", options.planningModel)
  const implementation = chosen("JEV_IMPLEMENTATION_MODEL", options.implementationModel)
  if (planning !== undefined || implementation !== undefined) {
    return { planning: planning ?? own, implementation: implementation ?? own, named: true }
  }
  const pair = defaultPairs[own]
  return pair === undefined ? null : { ...pair, named: false }
}

/** What serves a name, or one line that says why nothing does. */
const served = (models: ModelsService, name: string): Effect.Effect<ModelInfo | string> =>
  Effect.catchAll(models.resolve(name), (error) => Effect.succeed(error.message))

export const jevRouter = definePlugin({
  name: "jev-router",
  aliases: ["JevRouter", "jev_router", "jev"],
  description: "Plans with a strong model and goes over to a fast one at the first edit",
  options: JevRouterOptions,
  hooks: {
    beforeRequest: ({ messages, model, turn }, { mode, notify, options, places }) =>
      Effect.gen(function* () {
        if (!options.enabled) return undefined
        const models = yield* Models
        const pair = pairFor(model, options, places.env)
        if (pair === null) return undefined
        const planning = yield* served(models, pair.planning)
        const implementation = yield* served(models, pair.implementation)
        // Once a run, whichever of them it would come to.
        if (turn === 1 && pair.named) {
          for (const missing of new Set([planning, implementation])) {
            if (typeof missing === "string") yield* notify("warning", `jev-router keeps the model ${model}: ${missing}`)
          }
        }
        const { phase } = route({
          messages,
          turn,
          mode,
          editTools: options.editTools,
          implementationModels: typeof implementation === "string" ? [] : [implementation.id],
        })
        const wanted = phase === "planning" ? planning : implementation
        return typeof wanted === "string" || wanted.id === model ? undefined : { model: wanted.id }
      }),
  },
})
