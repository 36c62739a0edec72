/**
 * `super-pi harnesses`: the harnesses that a conversation can have, and what each can do.
 */
import { homedir } from "node:os"
import { Effect } from "effect"
import type { HarnessListing } from "../domain/harness-view.ts"
import { makeHarnesses } from "../harness/registry.ts"
import { BuiltinTools } from "../tools/builtin-tools.ts"
import type { Tool } from "../tools/tool.ts"
import { makeTools } from "../tools/tools.ts"
import type { Invocation } from "./arguments.ts"
import { pathsOf } from "./context.ts"
import { ExitCode } from "./exit.ts"
import { defaultHarness } from "./harness-choice.ts"
import * as option from "./options.ts"
import { pluginPlaces } from "./paths.ts"
import { runCommand } from "./runtime.ts"
import { loadSettings } from "./settings.ts"

/** The table. Pure. */
export const harnessLines = ({ default: standard, harnesses }: HarnessListing): Array<string> => {
  const rows = harnesses.map(({ description, id, name }) => [id === standard ? `${id} *` : id, name, description])
  const all = [["HARNESS ID", "NAME", "DESCRIPTION"], ...rows]
  const width = (column: number) => Math.max(...all.map((row) => (row[column] ?? "").length))
  const [ids, names] = [width(0), width(1)]
  return all.map(([id = "", name = "", description = ""]) => `${id.padEnd(ids)}  ${name.padEnd(names)}  ${description}`)
}

export const main = (invocation: Invocation): Promise<number> =>
  runCommand(() =>
    Effect.sync(() => {
      const { settings } = loadSettings(pathsOf(invocation).settingsFile)
      const around = { env: process.env, platform: process.platform, home: homedir(), cwd: process.cwd() }
      const known = makeHarnesses({
        places: pluginPlaces(around, {}, settings.discoveryRoots),
        // Only their names are looked at: what they need is not there.
        tools: makeTools(BuiltinTools.list as unknown as ReadonlyArray<Tool>), // see above
      })
      const wanted = settings.defaultHarness ?? defaultHarness
      const found = known.find(wanted)
      const listing = { harnesses: known.capabilities, default: found._tag === "Right" ? found.right.id : null }
      if (found._tag === "Left") {
        const { actual, expected } = found.left
        process.stderr.write(`super-pi: warning: settings.json: defaultHarness: expected ${expected}, got ${actual}\n`)
      }
      const lines = invocation.get(option.json) === true ? [JSON.stringify(listing)] : harnessLines(listing)
      for (const line of lines) process.stdout.write(`${line}\n`)
      return ExitCode.ok
    }),
  )
