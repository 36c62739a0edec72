/**
 * The built programs, for benches that run them as processes.
 */
import path from "node:path"
import { pathToFileURL } from "node:url"

/** Builds them, unless they are up to date. */
export const buildPrograms = async (): Promise<void> => {
  const { build } = await import(pathToFileURL(path.resolve("scripts/build.mjs")).href)
  await build({ ifChanged: true, requireTypes: false })
}
