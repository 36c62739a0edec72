/**
 * Asking a person about a call. Who can answer, how long, and what outlives a crash is the business of the service; where there is none,
 * nobody could be asked.
 */
import { Context, type Effect } from "effect"
import type { ConversationId, TaskId } from "../domain/ids.ts"
import type { ToolCallView } from "./plugin.ts"

/** `denied`: the question was cancelled or answered with nothing valid; `expired`: nobody answered in time; `nobody`: nobody could be asked. */
export type PermissionAnswer =
  | "allow_once"
  | "allow_always"
  | "reject_once"
  | "reject_always"
  | "denied"
  | "expired"
  | "nobody"

export interface PermissionQuestion {
  readonly conversation: ConversationId
  readonly call: ToolCallView
  /** The call's durable task, where it has one: the same call asks again after a crash, and finds its question. */
  readonly task: TaskId | null
  readonly title: string
  readonly reason: string
}

export interface AskService {
  readonly ask: (question: PermissionQuestion) => Effect.Effect<PermissionAnswer>
}

export class Ask extends Context.Tag("super-pi/Ask")<Ask, AskService>() {}
