/**
 * The tools that every node has.
 */
import { Layer } from "effect"
import { artifactGetTool } from "./artifact-get.ts"
import { artifactListTool } from "./artifact-list.ts"
import { artifactPutTool } from "./artifact-put.ts"
import { Artifacts } from "./artifacts.ts"
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

const list = [
  ...[readTool, writeTool, editTool, bashTool, grepTool, findTool, lsTool],
  ...[artifactPutTool, artifactGetTool, artifactListTool],
]

const layer = toolsLayer<Artifacts | FileLocks | Sandbox>(list)

export const BuiltinTools = {
  /** `read`, `write`, `edit`, `bash`, `grep`, `find`, `ls` and the tools of artifacts, in the order in which they are offered. */
  list,
  /** The {@link Tools} service with them; locks, sandbox and artifacts come from outside. */
  layer,
  /** The same with locks and a sandbox of its own, without actors, and artifacts in memory. */
  standalone: Layer.provide(
    layer,
    Layer.mergeAll(FileLocks.layer, sandboxPool(), Artifacts.inMemory),
  ) satisfies Layer.Layer<Tools>,
}
