/**
 * `npm run stress`: random load over JSON-RPC on a real node that is killed and restarted, and a check of every invariant at the end.
 * `npm run stress -- --help` lists the flags.
 */
import path from "node:path"
import { pathToFileURL } from "node:url"
import { build } from "./build.mjs"
import { withBundle } from "./bundle.mjs"
import { ensureInstalled, main, root } from "./install.mjs"

const log = (line) => console.error(`super-pi: ${line}`)

await main("super-pi", async () => {
  await ensureInstalled(log)
  await build({ ifChanged: true, requireTypes: false, log })
  return await withBundle("stress/main.ts", async (file) => {
    const program = await import(pathToFileURL(file).href)
    return await program.main(process.argv.slice(2), path.join(root, "bin", "super-pi"))
  })
})
