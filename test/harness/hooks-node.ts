/**
 * A node for the tests of hooks: it runs one hook command and dies with whoever kills it.
 */
import { Effect } from "effect"
import { runHook } from "../../src/harness/plugins/hooks/run.ts"

const [, , command = "", cwd = "/"] = process.argv
const env = { PATH: process.env.PATH ?? "" }
await Effect.runPromise(runHook({ command, cwd, env, input: {}, timeoutMs: 60_000, maxBytes: 1_000 }))
