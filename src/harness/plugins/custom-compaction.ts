/**
 * Plugin CustomCompaction: has the summary written by a fast model rather than by the conversation's own, and says what it must keep:
 * decisions, what tools changed and found, files. Where none of its models is served (no key, no such name) or none has room for the
 * conversation, it answers nothing and the compaction goes its ordinary way. Where to cut stays the engine's business: never between a
 * call and its result (docs/compaction.md).
 */
import { Effect, Schema } from "effect"
import { estimateMessages } from "../../domain/token-estimate.ts"
import { type ModelInfo, Models, type ModelsService } from "../../models/model.ts"
import { definePlugin } from "../define.ts"
import { candidates, summaryInstructions } from "./custom-compaction/tiers.ts"

const CustomCompactionOptions = Schema.Struct({
  /** The model that writes summaries. Default: a fast one of the service that serves the conversation's model. */
  model: Schema.optional(Schema.NonEmptyString),
  /** By size: the smallest tier that holds the conversation's tokens comes before `model`. */
  tiers: Schema.optionalWith(
    Schema.Array(
      Schema.Struct({
        upToTokens: Schema.optional(Schema.Int.pipe(Schema.positive())),
        model: Schema.NonEmptyString,
      }),
    ),
    { default: () => [] },
  ),
  /** What the summary should look at besides. */
  instructions: Schema.optional(Schema.String),
})

/** Of a window, what the conversation may take: the request and the summary need the rest. */
const share = 0.8

const fits = ({ contextWindow }: ModelInfo, tokens: number): boolean =>
  contextWindow === null || tokens <= contextWindow * share

/** The first of `names` that is served and has room. */
const firstUsable = (
  models: ModelsService,
  names: ReadonlyArray<string>,
  tokens: number,
): Effect.Effect<{ readonly model: ModelInfo | null; readonly missing: ReadonlyArray<string> }> =>
  Effect.gen(function* () {
    const missing: Array<string> = []
    for (const name of names) {
      const info = yield* Effect.catchAll(models.resolve(name), (error) => Effect.succeed(error.message))
      if (typeof info === "string") missing.push(info)
      else if (fits(info, tokens)) return { model: info, missing }
    }
    return { model: null, missing }
  })

/** The full name of the conversation's model; "" where there is none. */
const ownModel = (models: ModelsService, chosen: string | undefined): Effect.Effect<string> =>
  Effect.flatMap(chosen === undefined ? models.defaultModel : Effect.succeed(chosen), models.resolve).pipe(
    Effect.map(({ id }) => id),
    Effect.orElseSucceed(() => chosen ?? ""),
  )

export const customCompaction = definePlugin({
  name: "custom-compaction",
  aliases: ["CustomCompaction", "custom_compaction"],
  description: "Has conversations summarised by a fast model, with decisions and tool results kept",
  options: CustomCompactionOptions,
  hooks: {
    beforeCompact: ({ instructions, messages, method, writer }, { agent, notify, options }) =>
      Effect.gen(function* () {
        const named = options.model !== undefined || options.tiers.length > 0
        // Who set a writer, or wants no model at all, gets what they set.
        if (method !== "summary" || (writer !== null && !named)) return undefined
        const models = yield* Models
        const tokens = estimateMessages(messages)
        const names = candidates(tokens, yield* ownModel(models, agent.model), options)
        const { missing, model } = yield* firstUsable(models, names, tokens)
        if (named) for (const why of missing) yield* notify("warning", `custom-compaction goes without a model: ${why}`)
        if (model === null) return undefined
        return {
          type: "summarise" as const,
          model: model.id,
          instructions: summaryInstructions(messages, options.instructions, instructions),
        }
      }),
  },
})
