/** Loaded with `node --import`: notes the address of each module that the process loads in the file LOADED_MODULES, one a line. */
import { appendFileSync } from "node:fs"
import { register } from "node:module"
import { isMainThread } from "node:worker_threads"

if (isMainThread) register(import.meta.url)

export const load = (url, context, next) => {
  appendFileSync(process.env.LOADED_MODULES, `${url}\n`)
  return next(url, context)
}
