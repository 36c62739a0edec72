/**
 * The walls of one command: the policy as this host and this workspace have it.
 */
import { existsSync, realpathSync, statSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import { isInside } from "./inside.ts"
import { defaultSandboxLimits, type SandboxPolicy, sandboxPrefix } from "./os-sandbox.ts"
import { currentUser, type SandboxReport, sandboxReport } from "./os-sandbox-probe.ts"
import type { CommandSandbox } from "./tool.ts"

export interface CommandWalls {
  readonly prefix: ReadonlyArray<string>
  /** Variables that make programs use what is writable inside. */
  readonly env: Readonly<Record<string, string>>
}

/** Secrets in a home directory that commands have no business with. */
const secrets = [
  ".ssh",
  ".gnupg",
  ".aws",
  ".azure",
  ".kube",
  ".docker",
  ".config/gcloud",
  ".config/gh",
  ".password-store",
  ".netrc",
  ".git-credentials",
]

/** Below `/run` are sockets of services that would do anything for a command; these few things below it are needed. */
const runShown = ["/run/systemd/resolve", "/run/current-system", "/run/resolvconf", "/run/opengl-driver"]

/** Settings of a repository that git executes later, outside of the walls. */
const gitSettings = [".git/config", ".git/config.worktree", ".git/hooks", ".git/info/attributes"]

/** Caches go into the call's own `/tmp`: those of the person are read-only. */
const env: Readonly<Record<string, string>> = {
  TMPDIR: "/tmp",
  TMP: "/tmp",
  TEMP: "/tmp",
  XDG_CACHE_HOME: "/tmp/.cache",
  npm_config_cache: "/tmp/.npm",
  GOCACHE: "/tmp/.cache/go-build",
}

const canonical = (path: string): string | null => {
  try {
    return realpathSync(path)
  } catch {
    return null
  }
}

/** The policy of a workspace. Reads the file system: only what exists can be bound. */
export const policyOf = (
  root: string,
  { hidden, network, writable }: CommandSandbox,
  home: string = homedir(),
): SandboxPolicy => {
  const unseen = ["/run", ...secrets.map((name) => join(home, name)), ...hidden].flatMap((path) => {
    const real = canonical(path)
    // A workspace inside of something hidden stays visible: it is bound above it.
    return real === null || real === root ? [] : [{ path: real, directory: statSync(real).isDirectory() }]
  })
  const once = unseen.filter(({ path }, at) => unseen.findIndex((other) => other.path === path) === at)
  const open = writable.flatMap((path) => canonical(path) ?? [])
  /** What lies in a hidden directory is hidden with it, but for what is bound above that: a place within it would not be there any more. */
  const gone = (path: string) =>
    once.some(
      (other) =>
        other.directory &&
        other.path !== path &&
        isInside(other.path, path) &&
        ![root, ...open].some((shown) => isInside(other.path, shown) && isInside(shown, path)),
    )
  return {
    root,
    writable: open,
    readOnly: [root, ...open].flatMap((at) =>
      gitSettings.map((name) => join(at, name)).filter((path) => existsSync(path)),
    ),
    hidden: once.filter(({ path }) => !gone(path)),
    shown: runShown.filter((path) => existsSync(path)),
    network,
    user: currentUser(),
    limits: defaultSandboxLimits,
  }
}

/** The walls, or why the command is refused. */
export const commandWalls = async (
  root: string,
  sandbox: CommandSandbox,
  probe: () => Promise<SandboxReport> = sandboxReport,
): Promise<{ readonly walls: CommandWalls | null } | { readonly refused: string }> => {
  const { engine, engines } = await probe()
  if (engine !== null) {
    const real = canonical(root) ?? root
    return { walls: { prefix: sandboxPrefix(engine, policyOf(real, sandbox)), env } }
  }
  if (sandbox.mode === "auto") return { walls: null }
  const why = engines.map(({ detail }) => detail).join("; ")
  return { refused: `commands are refused: the setting "sandbox" requires a sandbox, and this host has none (${why})` }
}
