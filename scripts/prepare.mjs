/**
 * What every command of the project does first: install what is missing, build when the sources changed.
 */
import { checkNode, ensureInstalled, Failure } from "./install.mjs"

export const log = (line) => console.error(`super-pi: ${line}`)

/** Fails with a {@link Failure} that says what to do. Type errors are for `npm run typecheck`; they do not keep a program from running. */
export const prepare = async () => {
  checkNode()
  await ensureInstalled(log)
  const { build } = await import("./build.mjs")
  await build({ ifChanged: true, requireTypes: false, log }).catch((error) => {
    throw new Failure(`the build failed: ${error.message}`)
  })
}
