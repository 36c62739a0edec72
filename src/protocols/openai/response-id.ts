/**
 * Ids of responses: which conversation and which of its inputs. They give nothing away, since whose they are is asked each time. Pure.
 */
import { ConversationId, SubmissionId } from "../../domain/ids.ts"

export interface ResponseKey {
  readonly conversationId: ConversationId
  readonly submissionId: SubmissionId
}

export const responseId = ({ conversationId, submissionId }: ResponseKey): string =>
  `resp_${conversationId}_${submissionId}`

/** Null for what is no id of ours. */
export const responseKey = (id: string): ResponseKey | null => {
  const match = /^resp_([1-9]\d{0,14})_([1-9]\d{0,14})$/.exec(id)
  if (match === null) return null
  return {
    conversationId: ConversationId.make(Number(match[1])),
    submissionId: SubmissionId.make(Number(match[2])),
  }
}
