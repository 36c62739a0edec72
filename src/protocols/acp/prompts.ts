/**
 * The prompts of one session that came over this connection, from their submission to their end. Pure but for its own table.
 */
import type { PromptResponse, StopReason } from "@agentclientprotocol/sdk"
import type { Settled } from "../../actors/contract.ts"
import type { StopReason as ModelStop } from "../../domain/message.ts"

/** Ends of turns that are remembered: a prompt asks for its own right after it ended. */
const endsKept = 16

/** Reasons for which an input has no answer because somebody wanted it so. */
const wanted: ReadonlySet<string> = new Set(["aborted", "withdrawn", "reset"])

/** How a prompt ended, in the protocol's words. A prompt that failed is refused; what went wrong was said before. */
const stopReasonOf = (settled: Settled, end: ModelStop | undefined): StopReason => {
  if (settled.status !== "done") return wanted.has(settled.reason ?? "") ? "cancelled" : "refusal"
  switch (end) {
    case "length":
      return "max_tokens"
    case "content_filter":
      return "refusal"
    default:
      return "end_turn"
  }
}

/** What a prompt is answered with. */
export const promptResponse = (settled: Settled, end: ModelStop | undefined): PromptResponse => ({
  stopReason: stopReasonOf(settled, end),
  _meta: {
    superPi: {
      submission: settled.submission_id,
      usage: settled.usage,
      ...(settled.reason === null ? {} : { reason: settled.reason }),
      ...(settled.detail === null ? {} : { detail: settled.detail }),
    },
  },
})

/** How the last turns ended, by the entry of the answer. */
export class Ends {
  private readonly byEntry = new Map<number, ModelStop>()

  add(entry: number, stop: ModelStop): void {
    this.byEntry.set(entry, stop)
    const [oldest] = this.byEntry.keys()
    if (this.byEntry.size > endsKept && oldest !== undefined) this.byEntry.delete(oldest)
  }

  get(entry: number | null): ModelStop | undefined {
    return entry === null ? undefined : this.byEntry.get(entry)
  }
}
