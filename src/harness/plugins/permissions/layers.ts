/**
 * The layers of the policy: options of the harness, settings.json, the session. The file is read again when it changed; what is wrong in
 * it is said once.
 */
import { readFile, stat } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { errorCode } from "../../../domain/error-code.ts"
import { isRecord } from "../../../domain/json.ts"
import {
  type PermissionSettings,
  type Policy,
  type PolicyLayer,
  policyOf,
  readPermissions,
  type SettingsFault,
} from "../../../domain/permissions-policy.ts"
import { Bounded } from "../../bounded.ts"
import type { HookContext } from "../../plugin.ts"

interface FileLayer extends PolicyLayer {
  readonly stamp: string
  readonly warnings: ReadonlyArray<string>
}

const files = new Bounded<string, FileLayer>(16)
/** Warnings that were said, by conversation. */
const said = new Bounded<string, true>(2_000)
const none: PolicyLayer = { rules: {} }

const warningOf = (place: string, { actual, expected, key }: SettingsFault): string =>
  `${place}: ${key}: expected ${expected}, got ${actual}; it is ignored`

const readLayer = (file: string, stamp: string, text: string): FileLayer => {
  const lost = (warning: string): FileLayer => ({ rules: {}, unreadable: [file], stamp, warnings: [warning] })
  const source = text.replace(/^\uFEFF/, "")
  if (source.trim() === "") return { rules: {}, stamp, warnings: [] }
  let value: unknown
  try {
    value = JSON.parse(source)
  } catch (error) {
    return lost(
      `${file}: not JSON (${error instanceof Error ? error.message : String(error)}); what its permissions forbid is not known`,
    )
  }
  if (!isRecord(value)) return lost(`${file}: expected a JSON object; what its permissions forbid is not known`)
  if (value.permissions === undefined) return { rules: {}, stamp, warnings: [] }
  const { faults, rules, unreadable } = readPermissions(value.permissions)
  return { rules, unreadable, stamp, warnings: faults.map((fault) => warningOf(file, fault)) }
}

/** The section of settings.json; one that is not there says nothing, one that cannot be read is not the same. */
const fromFile = async (file: string): Promise<PolicyLayer & { readonly warnings?: ReadonlyArray<string> }> => {
  try {
    const { mtimeMs, size } = await stat(file)
    const stamp = `${mtimeMs}:${size}`
    const before = files.get(file)
    if (before?.stamp === stamp) return before
    const layer = readLayer(file, stamp, await readFile(file, "utf8"))
    files.set(file, layer)
    return layer
  } catch (error) {
    if (errorCode(error) === "ENOENT" || errorCode(error) === "ENOTDIR") return none
    const warning = `${file}: cannot be read (${error instanceof Error ? error.message : String(error)}); what its permissions forbid is not known`
    return { rules: {}, unreadable: [file], warnings: [warning] }
  }
}

const sayOnce = (context: HookContext<unknown>, warnings: ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.forEach(
    warnings,
    (warning) => {
      const key = `${context.conversation}:${warning}`
      if (said.get(key) === true) return Effect.void
      said.set(key, true)
      return context.notify("warning", warning)
    },
    { discard: true },
  )

/** The policy that is in force for a call of this conversation. */
export const policyFor = (context: HookContext<PermissionSettings>): Effect.Effect<Policy> =>
  Effect.gen(function* () {
    const file = yield* Effect.promise(() => fromFile(join(context.places.configDir, "settings.json")))
    const override = context.agent.settingsOverride?.permissions
    const session = override === undefined ? null : readPermissions(override)
    const place = "settingsOverride of this conversation"
    yield* sayOnce(context, [
      ...(file.warnings ?? []),
      ...(session?.faults.map((fault) => warningOf(place, fault)) ?? []),
    ])
    const layers = [{ rules: context.options }, file, ...(session === null ? [] : [session])]
    return policyOf(layers, context.workspace.confined)
  })
