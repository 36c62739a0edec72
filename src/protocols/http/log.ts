/**
 * What a gateway says while it works, for the person who runs it: one line for each request, session, tool and answer; with `verbose` also
 * what streams. A port: route groups call it, whoever runs the gateway decides where the lines go. Never part of a protocol.
 */
import type { Event } from "../../domain/event.ts"

/** A request that was answered, or whose client left. */
export interface LoggedRequest {
  readonly requestId: string
  readonly principal: string
  readonly method: string
  /** Without its query, which may hold what is private. */
  readonly path: string
  /** 499 where the client left before it was answered. */
  readonly status: number
  readonly durationMs: number
}

export interface GatewayLog {
  readonly request: (request: LoggedRequest) => void
  /** A client's name for a conversation was looked up: which conversation it stands for. */
  readonly session: (session: {
    readonly protocol: string
    readonly principal: string
    readonly name: string
    readonly conversationId: number
    readonly created: boolean
  }) => void
  /** An event of a conversation that some client follows. Give every one; those that are not shown cost a look at their type. */
  readonly event: (protocol: string, event: Event) => void
  /** Something to know: a limit that was reached, a handler that failed. */
  readonly notice: (line: string) => void
}

const nothing = () => {}

export const silentLog: GatewayLog = { request: nothing, session: nothing, event: nothing, notice: nothing }
