/**
 * `npm run bench`: all benches, one table of ratios against their peers in the same run. `npm run bench -- store` runs one, and
 * `npm run bench -- actors ask` a part of one.
 */
import { withBundle } from "./bundle.mjs"
import { ensureInstalled, main, runChild } from "./install.mjs"

const log = (line) => console.error(`super-pi: ${line}`)

await main("super-pi", async () => {
  await ensureInstalled(log)
  return await withBundle("bench/main.ts", (file) => runChild(process.execPath, [file, ...process.argv.slice(2)]))
})
