/**
 * The check of the sandbox for commands: what works on this host, and what the settings make of it.
 */
import { Effect } from "effect"
import { sandboxReport } from "../tools/os-sandbox-probe.ts"
import { type Check, fail, ok, warn } from "./check.ts"
import type { Settings } from "./settings.ts"

const name = "sandbox"

/** A trial runs each engine once. */
export const checkSandbox = ({ sandbox = "auto" }: Settings, probe = sandboxReport): Effect.Effect<Check> =>
  Effect.promise(async () => {
    const { engine, engines } = await probe()
    const why = engines.map((one) => `${one.engine}: ${one.works ? "works" : one.detail}`).join("; ")
    const install = "install bubblewrap, or allow unprivileged user namespaces"
    if (engine === null) {
      if (sandbox === "required") return fail(name, `required, but commands are refused (${why})`, install)
      return sandbox === "auto" ? warn(name, `off: it does not work here (${why})`, install) : ok(name, `off (${why})`)
    }
    if (sandbox === "off") return ok(name, `off; ${engine} works here: set "sandbox": "auto" to use it`)
    return ok(name, `${sandbox}, with ${engine} (${why})`)
  })
