/**
 * `npm start`: installs what is missing, builds when the sources changed, and runs the main job: with arguments, that command; without, the
 * chat when a model provider is configured, else the guided demonstration (`src/cli/start.ts` decides).
 */
import path from "node:path"
import { main, root, runChild } from "./install.mjs"
import { prepare } from "./prepare.mjs"

await main("super-pi", async () => {
  await prepare()
  const given = process.argv.slice(2)
  const args = given.length > 0 ? given : ["start"]
  return await runChild(process.execPath, [path.join(root, "bin", "super-pi"), ...args])
})
