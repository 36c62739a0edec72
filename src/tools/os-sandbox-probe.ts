/**
 * Which engine puts a command inside walls on this host: each is tried once with the real command line around `true`.
 */
import { spawn } from "node:child_process"
import { mkdtemp, realpath, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { defaultSandboxLimits, type SandboxEngine, sandboxPrefix } from "./os-sandbox.ts"

export interface EngineReport {
  readonly engine: SandboxEngine
  readonly works: boolean
  /** Why not, in words; "" where it works. */
  readonly detail: string
}

export interface SandboxReport {
  /** The one that is used, or null where none works. */
  readonly engine: SandboxEngine | null
  readonly engines: ReadonlyArray<EngineReport>
}

/** Milliseconds that a trial may take. */
const trialMs = 10_000

const programs: { readonly [engine in SandboxEngine]: string } = { bwrap: "bubblewrap", unshare: "util-linux" }

/** Who runs the node. */
export const currentUser = (): { readonly uid: number; readonly gid: number } => ({
  uid: process.getuid?.() ?? 0,
  gid: process.getgid?.() ?? 0,
})

const attempt = (engine: SandboxEngine, root: string, env: NodeJS.ProcessEnv): Promise<EngineReport> =>
  new Promise((resolve) => {
    const [program = "", ...args] = [
      ...sandboxPrefix(engine, {
        root,
        writable: [],
        readOnly: [],
        hidden: [{ path: "/run", directory: true }],
        shown: [],
        network: false,
        user: currentUser(),
        limits: defaultSandboxLimits,
      }),
      ...["bash", "-c", "touch inside && ! touch /.super-pi-trial 2>/dev/null"],
    ]
    const child = spawn(program, args, { cwd: root, env, stdio: ["ignore", "ignore", "pipe"], timeout: trialMs })
    let said = ""
    child.stderr.on("data", (chunk: Buffer) => {
      said = (said + chunk.toString("utf8")).slice(0, 2000)
    })
    child.once("error", () =>
      resolve({ engine, works: false, detail: `${program} is not installed (package ${programs[engine]})` }),
    )
    child.once("close", (code, signal) => {
      const line = said.split("\n").find((one) => one.trim() !== "")
      const detail = line ?? `${program} ended with ${signal ?? `exit code ${code}`}`
      resolve(code === 0 ? { engine, works: true, detail: "" } : { engine, works: false, detail })
    })
  })

/** Tries every engine, the preferred one first. */
export const probeSandbox = async (env: NodeJS.ProcessEnv = process.env): Promise<SandboxReport> => {
  if (process.platform !== "linux") {
    const detail = `needs Linux, this is ${process.platform}`
    return { engine: null, engines: [{ engine: "bwrap", works: false, detail }] }
  }
  const root = await realpath(await mkdtemp(join(tmpdir(), "super-pi-sandbox-")))
  try {
    const engines = [await attempt("bwrap", root, env), await attempt("unshare", root, env)]
    return { engine: engines.find(({ works }) => works)?.engine ?? null, engines }
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}

let known: Promise<SandboxReport> | null = null

/** {@link probeSandbox}, once per process: what a host can do does not change while it runs. */
export const sandboxReport = (): Promise<SandboxReport> => {
  known ??= probeSandbox()
  return known
}
