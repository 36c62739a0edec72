/**
 * Tokens from a command: cache, expiry, sharing, and what every way of failing says.
 */
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { AuthCommand, AuthCommandFailed, jwtExpiry } from "../../src/models/auth-command.ts"
import { makeModels } from "../../src/models/service.ts"
import { collect, finishOf, hello } from "./ask.ts"
import { startStandIn } from "./stand-in.ts"
import { wireFrames } from "./wire-formats.ts"

let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "auth-command-"))
})
afterEach(() => rm(dir, { recursive: true, force: true }))

/** A command that notes each run in `runs` and then does `script`. */
const command = async (script: string): Promise<string> => {
  const file = join(dir, "token.sh")
  await writeFile(file, `#!/bin/sh\necho run >> "${dir}/runs"\n${script}\n`)
  await chmod(file, 0o755)
  return file
}
const runs = async () => (await readFile(join(dir, "runs"), "utf8").catch(() => "")).split("\n").length - 1

const auth = (file: string, fields: Partial<ConstructorParameters<typeof AuthCommand>[0]> = {}) =>
  new AuthCommand({ command: file, env: process.env, timeoutMs: 10_000, cacheTtlMs: 60_000, now: () => 0, ...fields })

const failure = async (file: string, fields: Partial<ConstructorParameters<typeof AuthCommand>[0]> = {}) => {
  const error: unknown = await auth(file, fields)
    .token()
    .then(
      () => new Error("expected a failure"),
      (failed: unknown) => failed,
    )
  if (!(error instanceof AuthCommandFailed)) throw error
  return error
}

const jwt = (exp: unknown) => {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url")
  return `${part({ alg: "none" })}.${part({ exp })}.sig`
}

describe("a token", () => {
  it("is what the command prints to stdout, whatever it says on stderr", async () => {
    expect(await auth(await command("echo warning >&2; echo '  tok-123  '")).token()).toBe("tok-123")
  })

  it("is kept for the cache time, at most a minute, and not at all when that is 0", async () => {
    const file = await command(`wc -l < "${dir}/runs" | tr -d ' '`)
    let now = 0
    const kept = auth(file, { cacheTtlMs: 600_000, now: () => now })
    expect(await kept.token()).toBe("1")
    now = 59_999
    expect(await kept.token()).toBe("1")
    now = 60_000
    expect(await kept.token()).toBe("2")
    const uncached = auth(file, { cacheTtlMs: 0 })
    expect([await uncached.token(), await uncached.token()]).toEqual(["3", "4"])
  })

  it("that is a JWT is used until 30 seconds before it expires", async () => {
    let now = 0
    const file = await command(`printf '%s' '${jwt(50)}'`)
    const kept = auth(file, { now: () => now })
    await kept.token()
    now = 19_999
    await kept.token()
    expect(await runs()).toBe(1)
    now = 20_000
    await kept.token()
    expect(await runs()).toBe(2)
  })

  it("that expires within 30 seconds is used once and not kept", async () => {
    const kept = auth(await command(`printf '%s' '${jwt(10)}'`))
    await kept.token()
    await kept.token()
    expect(await runs()).toBe(2)
  })

  it("of one run serves all requests that wait for it", async () => {
    const shared = auth(await command("echo tok"), { cacheTtlMs: 0 })
    expect(new Set(await Promise.all(Array.from({ length: 20 }, () => shared.token())))).toEqual(new Set(["tok"]))
    expect(await runs()).toBe(1)
  })

  it("that the service refused is fetched again", async () => {
    const kept = auth(await command("echo tok"))
    const token = await kept.token()
    expect(kept.refused("other")).toBe(false)
    expect(kept.refused(token)).toBe(true)
    await kept.token()
    expect(await runs()).toBe(2)
  })

  it("after a failed run is tried anew", async () => {
    const file = await command(`test "$(wc -l < "${dir}/runs")" -gt 1 && echo tok`)
    const kept = auth(file)
    await expect(kept.token()).rejects.toThrow("exit status 1")
    expect(await kept.token()).toBe("tok")
  })
})

describe("a command that gives no token", () => {
  it("reports its exit status and what it wrote to stderr", async () => {
    const error = await failure(await command("echo not-a-token; echo login first >&2; exit 3"))
    expect(error).toMatchObject({ reason: "exit", detail: "exit status 3; stderr: login first" })
    expect(error.message).toContain("SUPER_PI_OPENAI_AUTH_COMMAND")
    expect(error.message).not.toContain("not-a-token")
  })

  it("is ended with everything that it started after the time limit", async () => {
    const error = await failure(await command("echo waiting >&2; sleep 600 & wait"), { timeoutMs: 200 })
    expect(error).toMatchObject({ reason: "timeout" })
    expect(error.detail).toMatch(/^no token within 200 ms/)
  })

  it("says that the file is missing, not executable, no file, or has no interpreter", async () => {
    expect(await failure(join(dir, "none"))).toMatchObject({ reason: "missing", detail: "the file does not exist" })
    const plain = join(dir, "plain")
    await writeFile(plain, "x")
    expect(await failure(plain)).toMatchObject({ reason: "not_executable" })
    expect((await failure(plain)).detail).toContain("chmod +x")
    expect(await failure(dir)).toMatchObject({ reason: "not_executable" })
    const orphan = join(dir, "orphan")
    await writeFile(orphan, "#!/nowhere/sh\n")
    await chmod(orphan, 0o755)
    expect(await failure(orphan)).toMatchObject({ reason: "missing" })
  })

  it("says that the output is empty or no token", async () => {
    expect(await failure(await command("true"))).toMatchObject({ reason: "empty" })
    expect(await failure(await command("echo two words"))).toMatchObject({ reason: "invalid" })
  })

  it("was ended by a signal", async () => {
    expect(await failure(await command("kill -TERM $$"))).toMatchObject({ reason: "signal" })
  })
})

describe("the expiry of a token", () => {
  it("is read from a JWT and unknown for anything else", () => {
    expect(jwtExpiry(jwt(12))).toBe(12_000)
    for (const token of [
      "opaque",
      "a.b.c",
      "..",
      jwt("soon"),
      jwt(null),
      `x.${Buffer.from("[]").toString("base64url")}.y`,
    ]) {
      expect(jwtExpiry(token)).toBeNull()
    }
  })
})

describe("requests with an auth command", () => {
  const modelsWith = (url: string, file: string, env: Record<string, string> = {}) =>
    makeModels({
      env: {
        ...process.env,
        OPENAI_API_KEY: undefined,
        SUPER_PI_OPENAI_BASE_URL: `${url}/v1`,
        SUPER_PI_OPENAI_MODEL: "local",
        SUPER_PI_OPENAI_AUTH_COMMAND: file,
        ...env,
      },
    })

  it("carry its token, fetch a new one after a 401, and prefer OPENAI_API_KEY", async () => {
    const server = await startStandIn((seen) =>
      seen.headers.authorization === "Bearer 1"
        ? { status: 401, body: '{"error":{"message":"expired"}}' }
        : { frames: wireFrames[seen.kind]({ text: "ok" }) },
    )
    const file = await command(`wc -l < "${dir}/runs" | tr -d ' '`)
    const ask = (env?: Record<string, string>) =>
      Effect.runPromise(collect(modelsWith(server.url, file, env), { model: "local", messages: hello }))
    expect(finishOf(await ask()).content).toEqual([{ type: "text", text: "ok" }])
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual(["Bearer 1", "Bearer 2"])
    await ask({ OPENAI_API_KEY: "sk-own-key" })
    expect(server.requests[2]?.headers.authorization).toBe("Bearer sk-own-key")
    expect(await runs()).toBe(2)
    await server.close()
  })

  it("never show the token, also when the service repeats it", async () => {
    const server = await startStandIn((seen) => ({
      status: 403,
      body: JSON.stringify({ error: { message: `token ${seen.headers.authorization?.slice(7)} may not do this` } }),
    }))
    const models = modelsWith(server.url, await command("echo token-0123456789"))
    const error = await Effect.runPromise(Effect.flip(collect(models, { model: "local", messages: hello })))
    expect(error).toMatchObject({ _tag: "ModelRejected", detail: "token [redacted] may not do this" })
    await server.close()
  })

  it("fail as not configured, with the command's own reason", async () => {
    const models = modelsWith("http://127.0.0.1:9", await command("echo denied >&2; exit 7"))
    const error = await Effect.runPromise(Effect.flip(collect(models, { model: "local", messages: hello })))
    expect(error).toMatchObject({ _tag: "ProviderNotConfigured", provider: "openai" })
    expect(error.message).toContain("exit status 7; stderr: denied")
  })
})
