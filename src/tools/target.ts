/**
 * What a path argument names, checked for a tool: the messages say what to do instead.
 */
import { opendir } from "node:fs/promises"
import { basename, dirname } from "node:path"
import { Effect } from "effect"
import { nearestNames } from "../domain/nearest.ts"
import { toolFailure } from "./define.ts"
import { isSpill } from "./spill.ts"
import type { ToolFailure, Workspace } from "./tool.ts"
import { type ResolvedPath, reasonOf, resolvePath } from "./workspace.ts"

/** A {@link ResolvedPath} at which something is. */
export type ExistingPath = ResolvedPath & { readonly stat: NonNullable<ResolvedPath["stat"]> }

/** A failure of a file operation on a path, for the model. */
export const fileFailure = (tool: string, path: string, error: unknown): ToolFailure =>
  toolFailure(tool, `${path}: ${reasonOf(error)}`)

/** Runs a file operation; its error becomes a failure that names `path`. */
export const attempt = <A>(tool: string, path: string, run: () => Promise<A>): Effect.Effect<A, ToolFailure> =>
  Effect.tryPromise({ try: run, catch: (error) => fileFailure(tool, path, error) })

/** Resolves a path inside the workspace. `read` also allows saved command output. */
export const target = (
  tool: string,
  workspace: Workspace,
  path: string,
  access: "read" | "write",
): Effect.Effect<ResolvedPath, ToolFailure> =>
  resolvePath(workspace, path, access === "read" ? isSpill : undefined).pipe(
    Effect.mapError((error) => toolFailure(tool, error.message)),
  )

const namesIn = async (directory: string): Promise<ReadonlyArray<string>> => {
  const names: Array<string> = []
  const entries = await opendir(directory)
  for await (const entry of entries) {
    names.push(entry.isDirectory() ? `${entry.name}/` : entry.name)
    if (names.length >= 5000) break
  }
  return names.sort()
}

const missing = (tool: string, path: ResolvedPath): Effect.Effect<ToolFailure> =>
  Effect.promise(async () => {
    const parent = dirname(path.canonical)
    const names = await namesIn(parent).catch(() => undefined)
    const shown = path.display.slice(0, -basename(path.canonical).length)
    if (names === undefined) {
      return toolFailure(
        tool,
        `${path.given}: no such file, and no directory ${shown || dirname(path.display)}. Use find or ls.`,
      )
    }
    const near = nearestNames(basename(path.canonical), names, 3).map((name) => `${shown}${name}`)
    const hint = near.length === 0 ? "Use find or ls to see what is there." : `Did you mean ${near.join(" or ")}?`
    return toolFailure(tool, `${path.given}: no such file or directory. ${hint}`)
  })

/** {@link target} of something that exists. */
export const existing = (
  tool: string,
  workspace: Workspace,
  path: string,
  access: "read" | "write" = "read",
): Effect.Effect<ExistingPath, ToolFailure> =>
  Effect.flatMap(target(tool, workspace, path, access), (resolved) => {
    const { stat } = resolved
    return stat === null ? Effect.flip(missing(tool, resolved)) : Effect.succeed({ ...resolved, stat })
  })

/** An existing directory. */
export const directoryTarget = (
  tool: string,
  workspace: Workspace,
  path: string,
): Effect.Effect<ExistingPath, ToolFailure> =>
  Effect.filterOrFail(
    existing(tool, workspace, path),
    (resolved) => resolved.stat.isDirectory(),
    () => toolFailure(tool, `${path}: expected a directory, got a file`),
  )

/** An existing regular file; `instead` is what to use for a directory. */
export const fileTarget = (
  tool: string,
  workspace: Workspace,
  path: string,
  instead: string,
  access: "read" | "write",
): Effect.Effect<ExistingPath, ToolFailure> =>
  Effect.flatMap(existing(tool, workspace, path, access), (resolved) => {
    if (resolved.stat.isFile()) return Effect.succeed(resolved)
    const what = resolved.stat.isDirectory() ? `a directory. ${instead}` : "a device, pipe or socket"
    return Effect.fail(toolFailure(tool, `${path}: expected a file, got ${what}`))
  })
