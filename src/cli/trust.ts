/**
 * `super-pi trust`: shows the hooks that the project of a directory brings, and approves them as they are now. A changed file has to be
 * approved anew.
 */
import { Effect } from "effect"
import { rootsOf } from "../harness/discovery.ts"
import { DiscoveryFiles } from "../harness/discovery-files.ts"
import { type FoundFile, HooksFiles } from "../harness/plugins/hooks/find.ts"
import { changeTrust, readTrust, trustFile } from "../harness/plugins/hooks/trust.ts"
import { oneLine } from "../protocols/terminal/sanitize.ts"
import type { Invocation } from "./arguments.ts"
import { agentOf, pathsOf } from "./context.ts"
import { ExitCode } from "./exit.ts"
import * as option from "./options.ts"
import { ensureDataDir } from "./paths.ts"
import { runCommand } from "./runtime.ts"

const maxBytes = 256 * 1024

/** One line per hook, as it would run. */
const describe = ({ content, hash, path }: FoundFile, state: string): ReadonlyArray<string> => [
  `${oneLine(path)} (${hash.slice(0, 19)}…): ${state}`,
  ...content.hooks.map(({ command, event, matcher }) => {
    const tools = matcher === null ? "" : ` ${oneLine(matcher.source.slice(4, -2))}`
    return `  ${event}${tools}: ${oneLine(command)}`
  }),
  ...content.faults.map((fault) => `  skipped: ${oneLine(fault)}`),
]

export const main = async (invocation: Invocation): Promise<number> => {
  const paths = pathsOf(invocation)
  const revoke = invocation.get(option.revoke) === true
  const workspace = agentOf(invocation, true).cwd ?? process.cwd()
  ensureDataDir(paths)
  return runCommand(() =>
    Effect.gen(function* () {
      const places = { configDir: paths.configDir, dataDir: paths.dataDir, discoveryRoots: [], env: {} }
      const roots = yield* rootsOf(workspace, places)
      const files = new DiscoveryFiles(maxBytes)
      const found = yield* Effect.promise(() => new HooksFiles(files).find({ ...roots, global: [] }))
      const stored = yield* Effect.promise(() => files.read(trustFile(paths.dataDir), null))
      const before = stored.type === "text" ? readTrust(stored.text) : new Map<string, string>()
      const changes = new Map(found.files.map((file) => [file.path, revoke ? null : file.hash]))
      if (changes.size > 0) {
        yield* Effect.tryPromise({
          try: () => changeTrust(paths.dataDir, changes),
          catch: (error) => new Error(`${trustFile(paths.dataDir)}: ${error instanceof Error ? error.message : error}`),
        })
      }
      const stateOf = ({ hash, path }: FoundFile) =>
        revoke ? "not approved any more" : before.get(path) === hash ? "was approved already" : "approved"
      if (invocation.get(option.json) === true) {
        const list = found.files.map((file) => ({
          path: file.path,
          hash: file.hash,
          trusted: !revoke,
          hooks: file.content.hooks.map(({ command, event }) => ({ event, command })),
          faults: file.content.faults,
        }))
        process.stdout.write(`${JSON.stringify(list)}\n`)
        return ExitCode.ok
      }
      for (const report of found.reports.filter(({ message }) => message.endsWith("the file is skipped"))) {
        process.stderr.write(`super-pi: warning: ${oneLine(report.message)}\n`)
      }
      const lines = found.files.flatMap((file) => describe(file, stateOf(file)))
      const none = `the project of ${oneLine(workspace)} has no hooks file (.agents/hooks.json or .super-pi/hooks.json)`
      process.stdout.write(`${lines.length === 0 ? none : lines.join("\n")}\n`)
      return ExitCode.ok
    }),
  )
}
