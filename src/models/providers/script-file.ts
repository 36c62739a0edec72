/**
 * The scripted model's script: rules of steps, as a JSON file or a value.
 */
import { Effect, ParseResult, Schema } from "effect"
import { JsonObject } from "../../domain/json.ts"
import { StopReason } from "../../domain/message.ts"

const Times = Schema.optional(Schema.Int.pipe(Schema.positive()))

/**
 * One step: an answer, or a fault (`status`, `overflow`, `cut`, `hang`). A fault happens `times` times per process (default: always);
 * then the step's own answer follows, or the next step where it has none.
 */
export const ScriptStep = Schema.Struct({
  text: Schema.optional(Schema.String),
  thinking: Schema.optional(Schema.String),
  tools: Schema.optional(
    Schema.Array(
      Schema.Struct({
        id: Schema.optional(Schema.NonEmptyString),
        name: Schema.NonEmptyString,
        args: Schema.optional(JsonObject),
      }),
    ),
  ),
  /** Waits before the first part, in milliseconds. */
  delayMs: Schema.optional(Schema.NonNegativeInt),
  /** Waits between parts, in milliseconds; the script's `chunkMs` when absent. */
  chunkMs: Schema.optional(Schema.NonNegativeInt),
  /** Into how many deltas the text is cut; default 4. */
  chunks: Schema.optional(Schema.Int.pipe(Schema.positive())),
  /** Input and output tokens. */
  usage: Schema.optional(Schema.Tuple(Schema.NonNegativeInt, Schema.NonNegativeInt)),
  stopReason: Schema.optional(StopReason),
  /** Fails like a service that answers with this HTTP status. */
  status: Schema.optional(Schema.Int),
  /** `Retry-After` of the failure, in seconds. */
  retryAfter: Schema.optional(Schema.NonNegative),
  /** The failure's text. */
  message: Schema.optional(Schema.String),
  /** Fails because the context is too long. */
  overflow: Schema.optional(Schema.Boolean),
  /** Streams `text`, then the connection breaks. */
  cut: Schema.optional(Schema.Boolean),
  /** Streams `text`, then nothing until it is interrupted. */
  hang: Schema.optional(Schema.Boolean),
  times: Times,
})
export type ScriptStep = typeof ScriptStep.Type

const Pattern = Schema.String.pipe(
  Schema.filter((source) => {
    try {
      new RegExp(source, "s")
      return undefined
    } catch (error) {
      return `a regular expression (${error instanceof Error ? error.message : String(error)})`
    }
  }),
)

/** The first rule whose `match` (a regular expression) fits the last user text answers. */
export const Script = Schema.Struct({
  rules: Schema.Array(Schema.Struct({ match: Pattern, steps: Schema.NonEmptyArray(ScriptStep) })),
  /** Waits between parts, in milliseconds; default 0. */
  chunkMs: Schema.optional(Schema.NonNegativeInt),
})
export type Script = typeof Script.Type

/** Decodes a script; the error is one line: `SUPER_PI_SCRIPT: at rules.0.steps: expected …`. */
const decodeScript = (source: string, value: unknown): Effect.Effect<Script, string> =>
  Schema.decodeUnknown(Script, { onExcessProperty: "error" })(value).pipe(
    Effect.mapError((error) => {
      const [issue] = ParseResult.ArrayFormatter.formatErrorSync(error)
      const path = issue === undefined || issue.path.length === 0 ? "" : `${issue.path.map(String).join(".")}: `
      return `${source}: ${path}${issue?.message ?? "is not a script"}`
    }),
  )

/** Reads and decodes a script file. */
export const readScript = (file: string): Effect.Effect<Script, string> =>
  Effect.tryPromise({
    try: async () => (await import("node:fs/promises")).readFile(file, "utf8"),
    catch: (error) => `SUPER_PI_SCRIPT: cannot read ${file}: ${error instanceof Error ? error.message : String(error)}`,
  }).pipe(
    Effect.flatMap((body) =>
      Effect.try({
        try: () => JSON.parse(body) as unknown,
        catch: (error) =>
          `SUPER_PI_SCRIPT: ${file}: expected JSON, got ${error instanceof Error ? error.message : String(error)}`,
      }),
    ),
    Effect.flatMap((value) => decodeScript(`SUPER_PI_SCRIPT: ${file}`, value)),
  )
