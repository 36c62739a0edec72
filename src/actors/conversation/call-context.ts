/**
 * What a call's code gets: its keys, its workspace, and where its output goes; and what becomes of its failure.
 */
import type { Effect } from "effect"
import type { ConversationId } from "../../domain/ids.ts"
import { text } from "../../domain/message.ts"
import { effectKeyOf } from "../../tools/effect-key.ts"
import type { ToolContext, ToolFailure, ToolResult, Workspace } from "../../tools/tool.ts"
import type { CallSlot } from "./machine/data.ts"

/** Where the calls of one conversation act. */
export interface Place {
  readonly conversation: ConversationId
  readonly workspace: Workspace
}

export const callContext = (
  { call, effect }: CallSlot,
  { conversation, workspace }: Place,
  emit: (chunk: string) => Effect.Effect<void>,
): ToolContext => ({
  callId: call.id,
  conversation,
  idempotencyKey: effect,
  effectKey: (name) => effectKeyOf(effect, name),
  workspace,
  emit,
})

/** The error result of a failure that the tool declares. */
export const failedResult = ({ details, inDoubt, message }: ToolFailure): ToolResult => ({
  output: [text(message)],
  isError: true,
  ...(details === undefined ? {} : { details }),
  ...(inDoubt === undefined ? {} : { inDoubt }),
})
