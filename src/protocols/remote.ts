/**
 * What a remote caller may choose for a conversation: nothing that loosens the policy. It sets no override of the settings, and a mode only
 * as far as the settings let remote callers go.
 */
import { Effect } from "effect"
import { isDirectModel } from "../domain/direct-call.ts"
import type { AgentDocument, ExecutionMode } from "../domain/document.ts"
import { InvalidRequest } from "../domain/failure.ts"
import { lower, type PermissionSettings, remoteMode } from "../domain/permissions-policy.ts"

/** The settings for remote callers; `ownMode` is what conversations have where nobody chooses. */
export interface RemoteRules extends Pick<PermissionSettings, "remoteDefaultMode" | "remoteMaxMode"> {
  readonly ownMode: ExecutionMode
}

/**
 * The rules for callers of a server: `accept-edits` and nothing above where neither the one who starts it (`mode`) nor the settings say more.
 * What the settings call the highest mode holds for both.
 */
export const callerRules = (
  mode: ExecutionMode | undefined,
  settings: Pick<PermissionSettings, "remoteDefaultMode" | "remoteMaxMode"> = {},
): RemoteRules => {
  const first = mode ?? settings.remoteDefaultMode ?? "accept-edits"
  const remoteMaxMode = settings.remoteMaxMode ?? first
  return { ownMode: mode ?? "auto", remoteDefaultMode: lower(first, remoteMaxMode), remoteMaxMode }
}

/**
 * The choices of a remote caller as they count. A conversation that it opens gets the highest mode of remote callers as its ceiling, so that
 * nothing that is said in it later lifts that.
 */
export const remoteAgent = (
  agent: AgentDocument,
  rules: RemoteRules,
  opens: boolean,
): Effect.Effect<AgentDocument, InvalidRequest> => {
  if (agent.settingsOverride !== undefined) {
    const expected = "nothing: only the process that owns the database sets it"
    return Effect.fail(
      new InvalidRequest({ path: "agent.settingsOverride", expected, actual: "an override of the settings" }),
    )
  }
  if (agent.model !== undefined && isDirectModel(agent.model)) {
    const expected = "the name of a model that answers"
    return Effect.fail(new InvalidRequest({ path: "agent.model", expected, actual: JSON.stringify(agent.model) }))
  }
  const { ownMode, remoteDefaultMode, remoteMaxMode } = rules
  const decides =
    agent.mode !== undefined || (opens && (remoteDefaultMode !== undefined || remoteMaxMode !== undefined))
  const chosen = decides ? { ...agent, mode: remoteMode(agent.mode, ownMode, rules) } : agent
  if (!opens || remoteMaxMode === undefined) return Effect.succeed(chosen)
  return Effect.succeed({ ...chosen, settingsOverride: { permissions: { maxExecutionMode: remoteMaxMode } } })
}
