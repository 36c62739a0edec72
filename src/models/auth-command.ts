/**
 * Short-lived bearer tokens from a command: an executable that prints the token to stdout. One run at a time serves everyone who
 * waits; a good token is kept for at most `cacheTtlMs`, and a JWT until 30 s before it expires.
 */
import { Data } from "effect"

/** The command gave no token; `detail` says why and carries what it wrote to stderr. */
export class AuthCommandFailed extends Data.TaggedError("AuthCommandFailed")<{
  readonly command: string
  readonly reason: "missing" | "unreadable" | "not_executable" | "timeout" | "exit" | "signal" | "empty" | "invalid"
  readonly detail: string
}> {
  override get message() {
    return `SUPER_PI_OPENAI_AUTH_COMMAND (${this.command}): ${this.detail}`
  }
}

export interface AuthCommandOptions {
  /** Path of the executable; it gets no arguments. */
  readonly command: string
  /** Environment of the run. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Milliseconds. */
  readonly timeoutMs: number
  /** Milliseconds; 0 runs the command for every request. */
  readonly cacheTtlMs: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Milliseconds before a JWT's `exp` at which it is no longer used. */
const expiryMargin = 30_000
const outputLimit = 64 * 1024

/** When a JWT expires, in milliseconds since the epoch; null for an opaque token. */
export const jwtExpiry = (token: string): number | null => {
  const parts = token.split(".")
  if (parts.length !== 3 || parts[1] === undefined) return null
  try {
    const claims: unknown = JSON.parse(Buffer.from(parts[1], "base64url").toString("utf8"))
    const exp = typeof claims === "object" && claims !== null ? (claims as { exp?: unknown }).exp : undefined
    return typeof exp === "number" && Number.isFinite(exp) ? exp * 1_000 : null
  } catch {
    return null
  }
}

const describe = (stderr: string) => {
  const text = stderr.replace(/\s+/g, " ").trim().slice(0, 1_000)
  return text === "" ? "; it wrote nothing to stderr" : `; stderr: ${text}`
}

const fileCheck = async (command: string): Promise<AuthCommandFailed | null> => {
  const { access, stat } = await import("node:fs/promises")
  const { constants } = await import("node:fs")
  const failed = (reason: AuthCommandFailed["reason"], detail: string) =>
    new AuthCommandFailed({ command, reason, detail })
  try {
    const info = await stat(command)
    if (!info.isFile()) return failed("not_executable", "expected an executable file, got something else")
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    return code === "ENOENT" || code === "ENOTDIR"
      ? failed("missing", "the file does not exist")
      : failed("unreadable", `the file cannot be read (${code ?? "unknown"})`)
  }
  try {
    await access(command, constants.X_OK)
    return null
  } catch {
    return failed("not_executable", "the file is not executable; run chmod +x on it")
  }
}

const run = async (options: AuthCommandOptions): Promise<string> => {
  const { command, timeoutMs } = options
  const problem = await fileCheck(command)
  if (problem !== null) throw problem
  const { spawn } = await import("node:child_process")
  return new Promise<string>((resolve, reject) => {
    const fail = (reason: AuthCommandFailed["reason"], detail: string) =>
      reject(new AuthCommandFailed({ command, reason, detail }))
    // A process group of its own, so that a time limit also ends what the command started.
    const child = spawn(command, [], { env: options.env, stdio: ["ignore", "pipe", "pipe"], detached: true })
    let stdout = ""
    let stderr = ""
    let late = false
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      if (stdout.length < outputLimit) stdout += text
    })
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (stderr.length < outputLimit) stderr += text
    })
    const timer = setTimeout(() => {
      late = true
      try {
        process.kill(-(child.pid ?? Number.NaN), "SIGKILL")
      } catch {
        child.kill("SIGKILL")
      }
      child.stdout.destroy()
      child.stderr.destroy()
    }, timeoutMs)
    child.once("error", (error: NodeJS.ErrnoException) => {
      clearTimeout(timer)
      if (error.code === "ENOENT") fail("missing", "its interpreter does not exist (see its first line)")
      else fail("not_executable", `it cannot be started (${error.code ?? error.message})`)
    })
    child.once("close", (code, signal) => {
      clearTimeout(timer)
      if (late) return fail("timeout", `no token within ${timeoutMs} ms${describe(stderr)}`)
      if (signal !== null) return fail("signal", `it was ended by ${signal}${describe(stderr)}`)
      if (code !== 0) return fail("exit", `exit status ${code}${describe(stderr)}`)
      const token = stdout.trim()
      if (token === "") return fail("empty", `exit status 0 but no token on stdout${describe(stderr)}`)
      if (!/^[\x21-\x7e]+$/.test(token)) return fail("invalid", "expected one token on stdout, got other text")
      resolve(token)
    })
  })
}

/** Tokens of one command, cached and shared. */
export class AuthCommand {
  readonly #options: AuthCommandOptions
  #cached: { readonly token: string; readonly until: number } | null = null
  #running: Promise<string> | null = null

  constructor(options: AuthCommandOptions) {
    this.#options = options
  }

  /** A token that is good now; rejects with {@link AuthCommandFailed}. */
  token(): Promise<string> {
    if (this.#cached !== null && this.#options.now() < this.#cached.until) return Promise.resolve(this.#cached.token)
    this.#running ??= this.#run().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  /** Forgets a token that the service refused; true when another run may give another token. */
  refused(token: string): boolean {
    if (this.#cached?.token !== token) return false
    this.#cached = null
    return true
  }

  async #run(): Promise<string> {
    const token = await run(this.#options)
    const now = this.#options.now()
    const expiry = jwtExpiry(token)
    const until = Math.min(
      now + Math.min(60_000, this.#options.cacheTtlMs),
      expiry === null ? Number.POSITIVE_INFINITY : expiry - expiryMargin,
    )
    this.#cached = this.#options.cacheTtlMs > 0 && until > now ? { token, until } : null
    return token
  }
}
