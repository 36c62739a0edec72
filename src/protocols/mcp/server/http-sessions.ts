/**
 * The sessions of the gateway's MCP endpoint, each with its own server, and per principal one connection for the requests of the stateless
 * protocol. They live on this node and in memory: after a restart clients are told that theirs is gone, and begin another.
 *
 *   absent → open (initialize) → ended: by its client, unused for `ttlMs`, or with the gateway
 *
 * A session belongs to the principal that opened it; to anybody else it is not there.
 */
import type { Connection } from "./connection.ts"

/** What answers requests, as the official package has it. */
export interface Endpoint {
  readonly handle: (request: Request, parsedBody: unknown) => Promise<Response>
  readonly close: () => Promise<void>
}

export interface HttpSession {
  readonly connection: Connection
  readonly endpoint: Endpoint
}

interface Kept extends HttpSession {
  readonly principal: string
  /** In ms since the epoch. */
  usedAt: number
  /** Requests that are being answered. */
  active: number
}

export interface SessionTable {
  /** Whether one more may be opened at `now`; what was unused for too long is ended first. */
  readonly hasRoom: (now: number) => boolean
  readonly add: (id: string, session: HttpSession, now: number) => void
  /** The session of that principal; `done` says that its request was answered. */
  readonly use: (
    id: string,
    principal: string,
    now: number,
  ) => { readonly session: HttpSession; readonly done: (now: number) => void } | null
  readonly has: (id: string) => boolean
  readonly remove: (id: string) => void
  /** Ends those that were unused for too long. */
  readonly sweep: (now: number) => void
  /** Ends all of them; what is at work goes on at the next start. */
  readonly leave: () => Promise<void>
  readonly size: () => number
}

export const makeSessionTable = (limits: { readonly ttlMs: number; readonly max: number }): SessionTable => {
  const kept = new Map<string, Kept>()

  const end = (id: string, session: Kept): Promise<void> => {
    kept.delete(id)
    return session.endpoint.close().catch(() => {})
  }
  const expired = (session: Kept, now: number) => session.active === 0 && now - session.usedAt >= limits.ttlMs
  const sweep = (now: number) => {
    for (const [id, session] of [...kept]) if (expired(session, now)) void end(id, session)
  }

  return {
    hasRoom: (now) => {
      if (kept.size >= limits.max) sweep(now)
      return kept.size < limits.max
    },
    add: (id, session, now) => {
      kept.set(id, { ...session, principal: session.connection.principal, usedAt: now, active: 0 })
    },
    use: (id, principal, now) => {
      const session = kept.get(id)
      if (session === undefined || session.principal !== principal) return null
      if (expired(session, now)) {
        void end(id, session)
        return null
      }
      session.usedAt = now
      session.active++
      return {
        session,
        done: (at) => {
          session.active--
          session.usedAt = at
        },
      }
    },
    has: (id) => kept.has(id),
    remove: (id) => {
      const session = kept.get(id)
      if (session !== undefined) void end(id, session)
    },
    sweep,
    leave: async () => {
      for (const { connection } of kept.values()) connection.leaving = true
      await Promise.all([...kept].map(([id, session]) => end(id, session)))
    },
    size: () => kept.size,
  }
}
