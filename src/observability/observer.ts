/**
 * What the node tells whoever counts (metrics.ts). Each call is one increment in place and must neither throw nor wait; where nobody
 * counts there is no observer, and nothing is measured.
 */
import type { Usage } from "../domain/usage.ts"

export type TurnStatus = "completed" | "error" | "cancelled" | "interrupted"

/** How a request to a model ended; durations in ms. */
export interface RequestEnd {
  /** `provider/model`. */
  readonly model: string
  /** `ok`, `interrupted`, or the code of its failure. */
  readonly status: string
  readonly durationMs: number
  /** Until the first part of the answer; null where none came. */
  readonly firstMs: number | null
  /** Null where it was not said. */
  readonly usage: Usage | null
}

export interface Observer {
  readonly turnEnded: (model: string, status: TurnStatus, durationMs: number) => void
  readonly requestEnded: (end: RequestEnd) => void
  readonly toolEnded: (tool: string, status: "ok" | "error" | "blocked", durationMs: number) => void
  readonly retried: (model: string) => void
  readonly compacted: (reason: string, method: string, status: string) => void
  readonly asked: (kind: "permission" | "choice") => void
  readonly questionEnded: (result: string) => void
  /** A node runs in this process; the newest counts. */
  readonly node: (probe: NodeProbe) => void
  /** A conversation came into memory, or left it. */
  readonly conversations: (change: 1 | -1) => void
  readonly watchers: (change: 1 | -1) => void
  /** A commit of the store. */
  readonly committed: (status: "ok" | "conflict" | "fenced" | "unavailable", durationMs: number) => void
  /** An HTTP request was answered: to its head where server-sent events follow. `route` is a pattern, `""` where none fits. */
  readonly httpEnded: (request: HttpEnd) => void
  /** A response of server-sent events began, or ended. */
  readonly streams: (group: string, change: 1 | -1) => void
}

/** Counts that a node keeps for itself. */
export interface NodeProbe {
  /** Messages to actors that were gone, since the node started. */
  readonly deadLetters: () => number
}

/** One answered request. */
export interface HttpEnd {
  /** Name of the route group, for example `openai`. */
  readonly group: string
  readonly method: string
  readonly route: string
  readonly status: number
  readonly durationMs: number
}
