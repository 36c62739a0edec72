/**
 * Opens a TCP or TLS connection to another node.
 */
import { connect as connectTcp, type Socket } from "node:net"
import { connect as connectTls } from "node:tls"
import { Effect, type Scope } from "effect"
import { errorCode } from "../../domain/error-code.ts"
import { type HostPort, renderHostPort } from "../../domain/host-port.ts"
import { PeerFault, type PeerFaultReason } from "./faults.ts"
import type { PeerTls } from "./tls.ts"

const reasonOf = (code: string, tls: boolean, connected: boolean): PeerFaultReason => {
  if (code === "ECONNREFUSED") return "refused"
  if (connected && tls) return code === "ECONNRESET" || code === "EPIPE" ? "left" : "tls"
  return "unreachable"
}

const detailOf = (cause: unknown): string => errorCode(cause) || (cause instanceof Error ? cause.message : "unknown")

/** A connection without Nagle's delay, until the scope closes. `timeoutMs` is for TCP and TLS together. */
export const dial = (
  address: HostPort,
  tls: PeerTls | null,
  timeoutMs: number,
): Effect.Effect<Socket, PeerFault, Scope.Scope> => {
  const shown = renderHostPort(address)
  const open = Effect.async<Socket, PeerFault>((resume) => {
    const options = { ...address, noDelay: true, keepAlive: true, keepAliveInitialDelay: 10_000 }
    // An address has no name to announce, and the name in a certificate is not checked.
    const socket =
      tls === null ? connectTcp(options) : connectTls({ ...options, ...tls, checkServerIdentity: () => undefined })
    let connected = false
    socket.once("connect", () => {
      connected = true
    })
    const failed = (cause: unknown) => {
      socket.destroy()
      const reason = reasonOf(errorCode(cause), tls !== null, connected)
      resume(new PeerFault({ address: shown, reason, detail: detailOf(cause) }))
    }
    socket.once("error", failed)
    socket.once(tls === null ? "connect" : "secureConnect", () => {
      socket.off("error", failed)
      // Nobody may miss an error between here and the wire's own listener.
      socket.on("error", () => undefined)
      resume(Effect.succeed(socket))
    })
    return Effect.sync(() => socket.destroy())
  })
  const timely = Effect.timeoutFail(open, {
    duration: timeoutMs,
    onTimeout: () => new PeerFault({ address: shown, reason: "unreachable", detail: "ETIMEDOUT" }),
  })
  return Effect.acquireRelease(timely, (socket) => Effect.sync(() => socket.destroy()))
}
