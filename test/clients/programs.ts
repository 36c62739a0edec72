/**
 * Programs of others that the suite drives ours with (`package.json` here names them), and the newer Node.js that some of them need.
 * They are installed by the test command; a run of the test runner alone, without them, skips their tests and says why.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const modules = fileURLToPath(new URL("node_modules", import.meta.url))

/** Entry points by name, below `node_modules`. */
const entries = {
  acpx: "acpx/dist/cli.js",
  conformance: "@modelcontextprotocol/conformance/dist/index.js",
  inspector: "@modelcontextprotocol/inspector/clients/launcher/build/index.js",
  serverEverything: "@modelcontextprotocol/server-everything/dist/index.js",
  serverFilesystem: "@modelcontextprotocol/server-filesystem/dist/index.js",
  /** A binary of its own, whatever its ending says. */
  opencode: "opencode-ai/bin/opencode.exe",
  /** Node.js 24. */
  node24: "node/bin/node",
} as const

export type ProgramName = keyof typeof entries

/** The absolute path of a program's entry point. */
export const program = (name: ProgramName): string => join(modules, entries[name])

/** Why a test that needs these programs cannot run here, or null. */
export const missing = (...names: ReadonlyArray<ProgramName>): string | null => {
  const absent = names.filter((name) => !existsSync(program(name)))
  return absent.length === 0 ? null : `not installed: ${absent.join(", ")} (npm test installs them in test/clients)`
}
