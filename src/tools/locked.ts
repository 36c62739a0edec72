/**
 * The locks of a call that changes files: this node's own, and in a shared workspace those of all nodes as well.
 */
import { Effect, Option } from "effect"
import { toolFailure } from "./define.ts"
import { FileLocks } from "./file-lock.ts"
import { PathLocks } from "./path-locks.ts"
import type { ToolFailure, Workspace } from "./tool.ts"

/** Asked right before a write; rejects where the locks are not held any more. */
export type Sure = () => Promise<void>

const always: Sure = () => Promise.resolve()

/** Runs `use` while nobody else changes one of `paths`, which are canonical. */
export const whileLocked = <A, R>(
  tool: string,
  workspace: Workspace,
  paths: ReadonlyArray<string>,
  use: (sure: Sure) => Effect.Effect<A, ToolFailure, R>,
): Effect.Effect<A, ToolFailure, R | FileLocks> =>
  Effect.flatMap(FileLocks, ({ withLock }) => {
    if (workspace.shared !== true) return withLock(paths, use(always))
    const among = Effect.flatMap(Effect.serviceOption(PathLocks), (nodes) =>
      Option.isNone(nodes)
        ? use(always)
        : Effect.catchTag(nodes.value.withLock(paths, use), "PathLockLost", (lost) =>
            Effect.fail(toolFailure(tool, `${paths.join(", ")}: ${lost.message}`)),
          ),
    )
    // The node's own first: so at most one call of a node asks the others for a path.
    return withLock(paths, among)
  })
