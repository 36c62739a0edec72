/**
 * `super-pi doctor`: checks what the program needs and says what to do. Reads only; shows no secret.
 */
import { Effect } from "effect"
import { painter, type Tone, traitsOf } from "../protocols/terminal/style.ts"
import type { Invocation } from "./arguments.ts"
import { type Check, fail } from "./check.ts"
import { pathsOf } from "./context.ts"
import { checkCluster } from "./doctor-cluster.ts"
import { checkDatabase, checkOwner } from "./doctor-database.ts"
import { checkEffects } from "./doctor-effects.ts"
import { checkAuthCommand, checkDefaultModel, checkKeys, checkSettings } from "./doctor-models.ts"
import { checkSandbox } from "./doctor-sandbox.ts"
import { checkDirectory, checkDisk, checkNode, checkProgram, checkTerminal } from "./doctor-system.ts"
import { checkTraces } from "./doctor-traces.ts"
import { ExitCode } from "./exit.ts"
import * as option from "./options.ts"
import type { Paths } from "./paths.ts"
import { runCommand } from "./runtime.ts"
import { serverNamed } from "./server.ts"
import { loadSettings } from "./settings.ts"

/** The driver of a server is loaded only where there is one. */
const checkStorage = (paths: Paths): Effect.Effect<ReadonlyArray<Check>> =>
  Effect.flatMap(serverNamed(paths), (server): Effect.Effect<ReadonlyArray<Check>> => {
    const cluster = Effect.sync(() => [checkCluster(process.env, server === null ? "sqlite" : "postgres")])
    if (server === null) {
      const checks = [checkDatabase(paths.database), checkOwner(paths.database), cluster]
      return Effect.map(Effect.all(checks, { concurrency: "unbounded" }), (groups) => groups.flat())
    }
    const database = Effect.flatMap(
      Effect.promise(() => import("./doctor-postgres.ts")),
      ({ checkServer }) => checkServer(server),
    )
    return Effect.map(Effect.all([database, cluster]), (groups) => groups.flat())
  }).pipe(Effect.catchAll(({ message }) => Effect.succeed([fail("database", message, "correct the variable")])))

const tones: Readonly<Record<Check["status"], Tone>> = { ok: "good", warn: "warning", fail: "error" }

export const main = (invocation: Invocation): Promise<number> => {
  const paths = pathsOf(invocation)
  const { env } = process
  return runCommand(() =>
    Effect.gen(function* () {
      const loaded = loadSettings(paths.settingsFile)
      const groups = yield* Effect.all(
        [
          Effect.sync(() => [checkNode(process.versions.node)]),
          Effect.sync(() => checkSettings(paths.settingsFile, loaded)),
          checkStorage(paths),
          checkEffects(paths),
          Effect.all([checkSandbox(loaded.settings)]),
          checkKeys(env, loaded.settings),
          checkDefaultModel(env, loaded.settings),
          Effect.sync(() => checkAuthCommand(env)),
          Effect.sync(() => [checkDirectory(paths.dataDir), checkDisk(paths.dataDir)]),
          Effect.sync(() => [checkTerminal(process.stdout, env)]),
          Effect.all([checkTraces(env)]),
          Effect.all([checkProgram("git", "version control in workspaces"), checkProgram("bash", "the bash tool")]),
        ],
        { concurrency: "unbounded" },
      )
      const checks: ReadonlyArray<Check> = groups.flat()
      const code = checks.some((check) => check.status === "fail") ? ExitCode.failure : ExitCode.ok
      if (invocation.get(option.json) === true) {
        process.stdout.write(`${JSON.stringify({ ok: code === ExitCode.ok, checks })}\n`)
        return code
      }
      const paint = painter(traitsOf(process.stdout, env).color)
      const width = Math.max(...checks.map((check) => check.name.length))
      for (const { name, status, detail, advice } of checks) {
        const line = `${paint(tones[status], status.padEnd(4))}  ${name.padEnd(width)}  ${detail}`
        process.stdout.write(`${line}${advice === undefined ? "" : `; ${advice}`}\n`)
      }
      return code
    }),
  )
}
