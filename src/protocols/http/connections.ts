/**
 * The connections of a server: counted in total, per address, and how many requests run on each. Owner of nothing but the counts.
 */
import type { Socket } from "node:net"

/** Requests that may run at once on one connection that sends them without waiting. */
const pipelineLimit = 32

export interface Connections {
  /** Counts a connection until it closes; false where there are too many. */
  readonly accept: (socket: Socket) => boolean
  /** Counts a running request of a connection; null where it has too many, else what ends it. */
  readonly begin: (socket: Socket) => (() => void) | null
  readonly count: () => number
}

export const makeConnections = (limits: {
  readonly connections: number
  readonly connectionsPerAddress: number
}): Connections => {
  const byAddress = new Map<string, number>()
  const running = new WeakMap<Socket, number>()
  let total = 0
  return {
    accept: (socket) => {
      const address = socket.remoteAddress ?? ""
      const same = byAddress.get(address) ?? 0
      if (total >= limits.connections || same >= limits.connectionsPerAddress) return false
      total++
      byAddress.set(address, same + 1)
      socket.once("close", () => {
        total--
        const left = (byAddress.get(address) ?? 1) - 1
        if (left === 0) byAddress.delete(address)
        else byAddress.set(address, left)
      })
      return true
    },
    begin: (socket) => {
      const now = running.get(socket) ?? 0
      if (now >= pipelineLimit) return null
      running.set(socket, now + 1)
      let ended = false
      return () => {
        if (ended) return
        ended = true
        running.set(socket, (running.get(socket) ?? 1) - 1)
      }
    },
    count: () => total,
  }
}
