/**
 * The slash commands that a chat passes on: its conversation expands them (plugins slash-commands and skills).
 */
import { homedir } from "node:os"
import { Effect } from "effect"
import { builtinNames } from "../harness/plugins/slash-commands/builtin.ts"
import { pluginPlaces } from "./paths.ts"
import type { Settings } from "./settings.ts"

/** Names in lower case, for a conversation that works in `cwd`. */
export const passedOn = (cwd: string | null, settings: Settings): Effect.Effect<ReadonlySet<string>> =>
  Effect.promise(async () => {
    const { findCommands } = await import("../harness/plugins/slash-commands/find.ts")
    const { rootsOf } = await import("../harness/discovery.ts")
    const around = { env: process.env, platform: process.platform, home: homedir(), cwd: process.cwd() }
    const places = pluginPlaces(around, {}, settings.discoveryRoots)
    const { commands } = await findCommands(await Effect.runPromise(rootsOf(cwd ?? "", places)), builtinNames)
    return new Set([...builtinNames, ...commands.keys()])
  })
