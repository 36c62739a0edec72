/**
 * The live supervision tree, as `super-pi tree` and programs see it.
 */
import { Schema } from "effect"

export interface TreeNode {
  readonly name: string
  readonly path: string
  readonly kind: "supervisor" | "actor" | "machine"
  /** A short description: a state machine's state, a supervisor's strategy. */
  readonly state: string
  readonly mailbox: number
  readonly restarts: number
  readonly lastCrash: { readonly message: string; readonly at: number } | null
  readonly children: ReadonlyArray<TreeNode>
}

export const TreeNode: Schema.Schema<TreeNode> = Schema.Struct({
  name: Schema.String,
  path: Schema.String,
  kind: Schema.Literal("supervisor", "actor", "machine"),
  state: Schema.String,
  /** Messages waiting. */
  mailbox: Schema.NonNegativeInt,
  restarts: Schema.NonNegativeInt,
  /** `at` in milliseconds since the epoch. */
  lastCrash: Schema.NullOr(Schema.Struct({ message: Schema.String, at: Schema.Int })),
  children: Schema.Array(Schema.suspend(() => TreeNode)),
}).annotations({ identifier: "TreeNode" })
