/**
 * `npm run stress`: random load over JSON-RPC on a real node that is killed and restarted, and a check of every invariant at the end.
 * `npm run stress -- --help` lists the flags.
 */
import path from "node:path"
import { pathToFileURL } from "node:url"
import { withBundle } from "./bundle.mjs"
import { main, root } from "./install.mjs"
import { prepare } from "./prepare.mjs"

await main("super-pi", async () => {
  await prepare()
  return await withBundle("stress/main.ts", async (file) => {
    const program = await import(pathToFileURL(file).href)
    return await program.main(process.argv.slice(2), path.join(root, "bin", "super-pi"))
  })
})
