/**
 * The tools that every node has.
 */
import { Layer } from "effect"
import { bashTool } from "./bash.ts"
import { editTool } from "./edit.ts"
import { FileLocks } from "./file-lock.ts"
import { findTool } from "./find.ts"
import { grepTool } from "./grep.ts"
import { lsTool } from "./ls.ts"
import { readTool } from "./read.ts"
import type { Sandbox } from "./sandbox.ts"
import { sandboxPool } from "./sandbox-pool.ts"
import { type Tools, toolsLayer } from "./tools.ts"
import { writeTool } from "./write.ts"

const list = [readTool, writeTool, editTool, bashTool, grepTool, findTool, lsTool]

const layer: Layer.Layer<Tools, never, FileLocks | Sandbox> = toolsLayer(list)

export const BuiltinTools = {
  /** `read`, `write`, `edit`, `bash`, `grep`, `find` and `ls`, in the order in which they are offered. */
  list,
  /** The {@link Tools} service with them; locks and sandbox come from outside. */
  layer,
  /** The same with locks and a sandbox of its own, without actors. */
  standalone: Layer.provide(layer, Layer.merge(FileLocks.layer, sandboxPool())) satisfies Layer.Layer<Tools>,
}
