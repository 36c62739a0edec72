/**
 * Where the paths of a call lead: links followed, as the file system does it.
 */
import { isAbsolute, relative, resolve } from "node:path"
import { Effect } from "effect"
import type { Json } from "../../../domain/json.ts"
import { type NamedPath, pathsIn } from "../../../domain/shell/paths.ts"
import type { ShellScript } from "../../../domain/shell/script.ts"
import { isSpill } from "../../../tools/spill.ts"
import type { Workspace } from "../../../tools/tool.ts"
import { resolvePath } from "../../../tools/workspace.ts"
import type { ToolCallView } from "../../plugin.ts"

/** Tools of which arguments are paths of files here. */
const fileTools: ReadonlySet<string> = new Set([
  "read",
  "write",
  "edit",
  "ls",
  "find",
  "grep",
  "artifact_put",
  "artifact_get",
])
const pathKeys: ReadonlySet<string> = new Set([
  "path",
  "paths",
  "to_path",
  "file",
  "file_path",
  "files",
  "directory",
  "dir",
  "cwd",
])

const textsOf = (value: Json | undefined): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === "string") : []
}

/** Paths among the arguments of a file tool. */
const fileArguments = ({ args, effects, name }: ToolCallView): ReadonlyArray<string> =>
  fileTools.has(name) || effects.includes("fs_write")
    ? Object.entries(args).flatMap(([key, value]) => (pathKeys.has(key) ? textsOf(value) : []))
    : []

/** As many paths of one command are looked up; a command with more is judged by those and asks. */
export const maxPaths = 200

/** Every path that the call names. */
export const pathsOfCall = (call: ToolCallView, script: ShellScript | null): ReadonlyArray<NamedPath> => [
  ...fileArguments(call).map((path) => ({ path, partial: false, glob: null, writes: true, text: path })),
  ...(script === null ? [] : pathsIn(script)),
]

/** The absolute path without links; what cannot be resolved is taken as written. */
export const canonicalOf = (workspace: Workspace, path: string): Effect.Effect<string> =>
  Effect.match(resolvePath({ root: workspace.root, confined: false }, path), {
    onFailure: () => resolve(workspace.root, path),
    onSuccess: ({ canonical }) => canonical,
  })

const isInside = (root: string, path: string): boolean => {
  const below = relative(root, path)
  return below === "" || (!below.startsWith("..") && !isAbsolute(below))
}

/** Those of the paths that are outside of the workspace, as they are written; a command may name what is in `also`. */
export const outsideOf = (
  call: ToolCallView,
  script: ShellScript | null,
  workspace: Workspace,
  also: ReadonlyArray<string>,
): Effect.Effect<ReadonlyArray<string>> => {
  const paths = pathsOfCall(call, script)
  if (paths.length === 0) return Effect.succeed([])
  return Effect.gen(function* () {
    const given = [workspace.root, ...(workspace.also ?? []), ...(script === null ? [] : also)]
    const roots = yield* Effect.forEach(given, (root) => canonicalOf(workspace, root))
    const outside = new Set<string>()
    for (const { path, text } of paths.slice(0, maxPaths)) {
      const canonical = yield* canonicalOf(workspace, path)
      const readsSaved = call.name !== "write" && call.name !== "edit" && isSpill(canonical)
      if (!readsSaved && !roots.some((root) => isInside(root, canonical))) outside.add(text)
    }
    if (paths.length > maxPaths) outside.add(`${paths.length - maxPaths} further paths`)
    return [...outside]
  })
}
