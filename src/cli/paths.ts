/**
 * Where settings and data lie, and where else is looked for rules, skills, commands and hooks: flags and what the application configures,
 * then SUPER_PI_CONFIG_DIR, SUPER_PI_DATA_DIR and SUPER_PI_DISCOVERY_ROOTS, then the operating system's convention.
 */
import { posix, win32 } from "node:path"
import type { PluginPlaces } from "../harness/plugin.ts"
import { makeDirectories } from "../storage/directories.ts"
import { conventionalPlace, given, type Host } from "./convention.ts"
import { CommandFailure, messageOf } from "./exit.ts"

export interface Surroundings extends Host {
  readonly cwd: string
}

/** All absolute. */
export interface Paths {
  readonly configDir: string
  readonly dataDir: string
  readonly settingsFile: string
  readonly database: string
  /** Whether somebody named the database, by flag or environment. */
  readonly databaseNamed: boolean
  /** Whether it was by flag: then it is that file, whatever server the environment names. */
  readonly databaseFlag: boolean
  readonly chatHistory: string
  /** Further roots of rules, skills, commands and hooks of the person. None by convention. */
  readonly discoveryRoots: ReadonlyArray<string>
}

/** What an application says; it comes before the environment. */
export interface ConfiguredPaths {
  readonly configDir?: string | undefined
  readonly dataDir?: string | undefined
  readonly discoveryRoots?: ReadonlyArray<string> | undefined
}

/** Pure. A leading `~/` stands for the home directory; relative paths are taken from `cwd`. */
export const resolvePaths = (
  around: Surroundings,
  flags: { readonly db?: string | undefined },
  application: ConfiguredPaths = {},
): Paths => {
  const { env, platform, home, cwd } = around
  const path = platform === "win32" ? win32 : posix
  const absolute = (value: string) =>
    path.resolve(cwd, value === "~" || value.startsWith("~/") ? home + value.slice(1) : value)
  const configured = given(application.configDir) ?? given(env.SUPER_PI_CONFIG_DIR)
  const stored = given(application.dataDir) ?? given(env.SUPER_PI_DATA_DIR)
  const roots = application.discoveryRoots ?? (given(env.SUPER_PI_DISCOVERY_ROOTS) ?? "").split(path.delimiter)
  const named = given(flags.db) ?? given(env.SUPER_PI_SQLITE_PATH)
  const configDir = configured === undefined ? conventionalPlace(around, "config") : absolute(configured)
  const dataDir = stored === undefined ? conventionalPlace(around, "data") : absolute(stored)
  return {
    configDir,
    dataDir,
    settingsFile: path.join(configDir, "settings.json"),
    database: named === undefined ? path.join(dataDir, "super-pi.db") : absolute(named),
    databaseNamed: named !== undefined,
    databaseFlag: given(flags.db) !== undefined,
    chatHistory: path.join(dataDir, "chat-history"),
    discoveryRoots: [...new Set(roots.filter((root) => root !== "").map(absolute))],
  }
}

/** Variables that plugins may know: our own and those that a plugin's documentation lists; never what looks like a secret. */
const isForPlugins = (name: string): boolean =>
  (/^(?:SUPER_PI|JEV)_/.test(name) || name === "PROTECTED_PATHS") &&
  !/TOKEN|KEY|SECRET|PASSW|CREDENTIAL|COMMAND/.test(name)

/** Where plugins find their files. Pure. `settings` are the discovery roots of the settings file, which come before the environment's. */
export const pluginPlaces = (
  around: Surroundings,
  application: ConfiguredPaths,
  settings?: ReadonlyArray<string> | undefined,
): PluginPlaces => {
  const discoveryRoots = application.discoveryRoots ?? settings
  const paths = resolvePaths(around, {}, { ...application, discoveryRoots })
  const env: Record<string, string> = {}
  for (const [name, value] of Object.entries(around.env))
    if (value !== undefined && isForPlugins(name)) env[name] = value
  return { configDir: paths.configDir, dataDir: paths.dataDir, discoveryRoots: paths.discoveryRoots, env }
}

/** Creates the data directory (mode 0700) where it is missing. */
export const ensureDataDir = (paths: Paths): void => {
  try {
    makeDirectories(paths.dataDir, 0o700)
  } catch (error) {
    throw new CommandFailure(
      `the data directory ${paths.dataDir} cannot be made: ${messageOf(error)}; set SUPER_PI_DATA_DIR to a directory that you can write to`,
    )
  }
}
