/**
 * Where file and command tools of a conversation act, as a caller, a harness or the settings word it.
 */
import { Schema } from "effect"

const network = {
  network: Schema.optionalWith(Schema.Boolean, { exact: true }),
  /** Walls around commands; absent: what the node says, which a workspace cannot lower from `required`. */
  sandbox: Schema.optionalWith(Schema.Literal("off", "auto", "required"), { exact: true }),
}

/** `local` is the working directory; `knowledge` the roots of the setting `knowledgePaths`; `none` has neither files nor commands. */
export const WorkspaceSpec = Schema.Union(
  Schema.Struct({ kind: Schema.Literal("local", "knowledge"), ...network }),
  Schema.Struct({ kind: Schema.Literal("shared"), root: Schema.NonEmptyString, ...network }),
  Schema.Struct({
    kind: Schema.Literal("scratch"),
    /** The directory is removed with its task, or kept with the conversation until the sweep. Default `task`. */
    lifetime: Schema.optionalWith(Schema.Literal("task", "conversation"), { exact: true }),
    base: Schema.optionalWith(Schema.NonEmptyString, { exact: true }),
    ...network,
  }),
  Schema.Struct({ kind: Schema.Literal("none"), ...network }),
)
export type WorkspaceSpec = typeof WorkspaceSpec.Type
