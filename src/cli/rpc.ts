/**
 * `super-pi rpc`: serves JSON-RPC on a unix socket, on loopback TCP or on stdio, until the client ends (stdio) or a signal comes.
 */
import { resolve } from "node:path"
import { Effect } from "effect"
import type { Invocation } from "./arguments.ts"
import { nodeOptionsOf } from "./context.ts"
import { ExitCode, usageFailure } from "./exit.ts"
import { authOf } from "./gateway-settings.ts"
import { openSessions } from "./node.ts"
import * as option from "./options.ts"
import { protocolServiceOf } from "./protocol-service.ts"
import { runCommand } from "./runtime.ts"
import { withDefaults } from "./serve-options.ts"

type Place =
  | { readonly kind: "unix"; readonly path: string }
  | { readonly kind: "tcp"; readonly port: number }
  | { readonly kind: "stdio" }

const placeOf = (invocation: Invocation): Place => {
  const unix = invocation.get(option.unix)
  const word = invocation.words[0]
  const places: Array<Place> = []
  if (unix !== undefined) places.push({ kind: "unix", path: resolve(unix) })
  if (invocation.get(option.stdio) === true) places.push({ kind: "stdio" })
  if (word !== undefined) {
    const port = /^\d{1,5}$/.test(word) ? Number(word) : -1
    if (port < 0 || port > 65_535) throw usageFailure(`PORT: expected a number from 0 to 65535, got "${word}"`)
    places.push({ kind: "tcp", port })
  }
  const [place, second] = places
  if (place === undefined || second !== undefined) {
    throw usageFailure(
      `super-pi rpc takes ${place === undefined ? "a place" : "one place"} to serve: --unix PATH, --stdio or PORT`,
    )
  }
  return place
}

export const main = async (invocation: Invocation): Promise<number> => {
  const place = placeOf(invocation)
  const options = withDefaults(nodeOptionsOf(invocation), invocation)
  const auth = await authOf(options)
  return runCommand(
    () =>
      Effect.gen(function* () {
        const server = yield* Effect.promise(() => import("../protocols/jsonrpc/serve.ts"))
        const sessions = yield* openSessions(options)
        const service = { ...(yield* protocolServiceOf(sessions, options, "programs")), auth }
        if (place.kind === "stdio") {
          yield* server.serveStdio(service)
          return ExitCode.ok
        }
        const where =
          place.kind === "unix"
            ? yield* Effect.as(server.serveUnix(place.path, service), place.path)
            : `127.0.0.1:${yield* server.serveTcp(place.port, service)}`
        process.stderr.write(`super-pi: serving JSON-RPC on ${where}\n`)
        return yield* Effect.never
      }),
    ExitCode.ok,
  )
}
