/**
 * Checks of the database: whether it opens, is whole, and who owns it.
 */
import { existsSync, statSync } from "node:fs"
import { connect } from "node:net"
import { Effect } from "effect"
import { openFailure } from "../storage/sqlite/failures.ts"
import { mayBeAlive, readOwner } from "../storage/sqlite/owner-file.ts"
import { canonicalPathOf } from "../storage/sqlite/paths.ts"
import { openReader } from "../storage/sqlite/reader.ts"
import { type Check, fail, ok, warn } from "./check.ts"

const mebibyte = 1024 * 1024

/** A log longer than this, in bytes, says that no checkpoint gets through. */
const longLog = 64 * mebibyte

const size = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

const megabytes = (bytes: number): string => `${(bytes / mebibyte).toFixed(1)} MiB`

export const checkDatabase = (path: string): Effect.Effect<ReadonlyArray<Check>> => {
  if (!existsSync(path)) return Effect.succeed([ok("database", `${path} (made when first needed)`)])
  const read = Effect.gen(function* () {
    const { rows, version } = yield* openReader(canonicalPathOf(path))
    return { version, faults: yield* rows("PRAGMA quick_check(3)") }
  }).pipe(
    Effect.scoped,
    Effect.mapError((cause) => openFailure(path, cause)),
  )
  return read.pipe(
    Effect.map(({ version, faults }): ReadonlyArray<Check> => {
      const found = faults.map((row) => Object.values(row).join(" "))
      const whole = found.length === 1 && found[0] === "ok"
      const wal = size(`${path}-wal`)
      return [
        whole
          ? ok("database", `${path}, version ${version}, ${megabytes(size(path))}, whole`)
          : fail(
              "database",
              `${path} is damaged: ${found[0] ?? "no answer"}`,
              "copy it away, then: sqlite3 COPY .recover",
            ),
        wal > longLog
          ? warn(
              "log",
              `the write-ahead log has ${megabytes(wal)}`,
              "end programs that keep the database open for reading",
            )
          : ok("log", `write-ahead log ${megabytes(wal)}`),
      ]
    }),
    Effect.catchAll((error) =>
      Effect.succeed([fail("database", error.message, "super-pi doctor --db PATH checks another one")]),
    ),
  )
}

/** Milliseconds that an owner may take to answer. */
const answerTimeout = 2000

const answers = (socket: string): Effect.Effect<boolean> =>
  Effect.async((resume) => {
    const connection = connect(socket)
    const end = (answer: boolean) => {
      connection.destroy()
      resume(Effect.succeed(answer))
    }
    connection.setTimeout(answerTimeout, () => end(false))
    connection.once("connect", () => end(true))
    connection.once("error", () => end(false))
  })

export const checkOwner = (path: string): Effect.Effect<ReadonlyArray<Check>> =>
  Effect.gen(function* () {
    const owner = readOwner(canonicalPathOf(path))
    if (owner === null || !mayBeAlive(owner)) return [ok("owner", "nobody owns the database at the moment")]
    const who = `${owner.program}, process ${owner.pid} on ${owner.host}`
    if (yield* answers(owner.socket)) return [ok("owner", `${who}, answers`)]
    return [
      fail(
        "owner",
        `${who}, holds the database but does not answer`,
        `end process ${owner.pid}; what it acknowledged is kept`,
      ),
    ]
  })
