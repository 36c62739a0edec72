/**
 * The check of a working directory that a caller names.
 */
import { stat } from "node:fs/promises"
import { isAbsolute } from "node:path"
import { Effect } from "effect"
import { errorCode } from "../domain/error-code.ts"
import { InvalidRequest } from "../domain/failure.ts"
import type { WorkspaceSpec } from "../domain/workspace-spec.ts"

/** Fails unless `value` is the absolute path of a directory; `path` names the field. */
export const checkDirectory = (path: string, value: string): Effect.Effect<void, InvalidRequest> => {
  const expected = "the absolute path of a directory"
  if (!isAbsolute(value)) {
    return Effect.fail(new InvalidRequest({ path, expected, actual: JSON.stringify(value) }))
  }
  return Effect.tryPromise({
    try: () => stat(value),
    catch: (cause) =>
      new InvalidRequest({ path, expected, actual: `${JSON.stringify(value)} (${errorCode(cause) || String(cause)})` }),
  }).pipe(
    Effect.filterOrFail(
      (found) => found.isDirectory(),
      () => new InvalidRequest({ path, expected, actual: `${JSON.stringify(value)} (not a directory)` }),
    ),
    Effect.asVoid,
  )
}

/** Fails where the directories of a workspace that a caller names are none. */
export const checkWorkspace = (spec: WorkspaceSpec | undefined): Effect.Effect<void, InvalidRequest> => {
  if (spec?.kind === "shared") return checkDirectory("agent.workspace.root", spec.root)
  if (spec?.kind === "scratch" && spec.base !== undefined) return checkDirectory("agent.workspace.base", spec.base)
  return Effect.void
}
