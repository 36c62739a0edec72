/**
 * The calling side of the attach protocol on a wire whose greeting is over, whatever the wire runs on. It lives until the other side ends
 * it, answers no ping, or the scope closes; from then on every call and stream fails with `OwnerGone`.
 */
import * as RpcClient from "@effect/rpc/RpcClient"
import { RpcClientError } from "@effect/rpc/RpcClientError"
import type { FromServerEncoded } from "@effect/rpc/RpcMessage"
import { Cause, Deferred, Effect, FiberSet, Option, type Scope } from "effect"
import { type Failure, ServiceFailure } from "../../domain/failure.ts"
import { OwnerGone } from "./attachment.ts"
import { makeHeartbeat } from "./heartbeat.ts"
import { receive, type Wire } from "./wire.ts"

export interface Connection {
  /** What an `@effect/rpc` client of this connection is made with. */
  readonly protocol: RpcClient.Protocol["Type"]
  /** Completes when the connection has ended, for whatever reason. */
  readonly gone: Effect.Effect<void>
  /** What a call failed with: one of the five failures, or the owner is gone. */
  readonly translate: (cause: Cause.Cause<Failure | RpcClientError>) => Effect.Effect<never, Failure | OwnerGone>
  readonly call: <A>(effect: Effect.Effect<A, Failure | RpcClientError>) => Effect.Effect<A, Failure | OwnerGone>
}

const ping = `${JSON.stringify({ _tag: "Ping" })}\n`

const isFromServer = (message: { readonly _tag: string }): message is FromServerEncoded =>
  ["Chunk", "Exit", "Defect", "Pong"].includes(message._tag)

/** Speaks on `wire` until the scope closes, with a ping each `pingMs` milliseconds. */
export const makeConnection = (wire: Wire, pingMs: number): Effect.Effect<Connection, never, Scope.Scope> =>
  Effect.gen(function* () {
    const gone = yield* Deferred.make<void>()
    const lost = new RpcClientError({ reason: "Protocol", message: "the owner of the database is gone" })
    let alive = true

    const protocol = yield* RpcClient.Protocol.make((write) =>
      Effect.gen(function* () {
        // A chunk waits for its reader, and nothing else may wait for it: each gets a fiber. Its acknowledgement holds back the next one.
        const chunks = yield* FiberSet.makeRuntime<never>()
        // Not `send`, which waits for room: an owner that does not read is one that may be gone.
        const heartbeat = makeHeartbeat(pingMs, () => wire.outlet.write(ping))
        const read = receive(wire, isFromServer, (message) => {
          heartbeat.sign()
          return message._tag === "Chunk" ? Effect.sync(() => void chunks(write(message))) : write(message)
        })
        const end = Effect.gen(function* () {
          alive = false
          yield* wire.close
          yield* write({ _tag: "ClientProtocolError", error: lost })
          yield* Deferred.succeed(gone, undefined)
        })
        yield* Effect.raceFirst(Effect.raceFirst(read, wire.outlet.closed), heartbeat.silence).pipe(
          Effect.zipRight(end),
          Effect.forkScoped,
        )
        return {
          send: (message: object) => Effect.suspend(() => (alive ? wire.send(message) : Effect.fail(lost))),
          supportsAck: true,
          supportsTransferables: false,
        }
      }),
    )

    const translate: Connection["translate"] = (cause) => {
      const failure = Option.getOrNull(Cause.failureOption(cause))
      if (failure === null) {
        // The owner interrupted the call (it is leaving): that connection has no future.
        if (Cause.isInterruptedOnly(cause)) return Effect.zipRight(wire.close, new OwnerGone())
        const detail = "the owner of the database answered something unexpected; update super-pi and restart it"
        return Effect.zipRight(
          Effect.logError("attached call failed", cause),
          new ServiceFailure({ code: "protocol", detail, reference: "attach" }),
        )
      }
      return failure._tag === "RpcClientError" ? new OwnerGone() : Effect.fail(failure)
    }
    return {
      protocol,
      gone: Deferred.await(gone),
      translate,
      call: (effect) => Effect.catchAllCause(effect, translate),
    }
  })
