/**
 * What clients were told while the load ran: the promises that the check holds the database to.
 */
import type { Receipt, Settled } from "../src/actors/contract.ts"
import type { Event } from "../src/domain/event.ts"
import type { AssistantPart, UserPart } from "../src/domain/message.ts"
import type { Job } from "./plan.ts"

export interface Acknowledged {
  readonly job: Job
  readonly submission: number
  readonly conversation: number
  readonly whenBusy: string
}

/** An entry that an event showed: it was committed, so it is there for good. */
export interface SeenEntry {
  readonly conversation: number
  readonly content: ReadonlyArray<AssistantPart | UserPart>
}

export class Observations {
  /** By job key. */
  readonly acknowledged = new Map<string, Acknowledged>()
  readonly settled = new Map<string, Settled>()
  /** Keys of submissions that were refused as busy: nothing of them may be written. */
  readonly refused = new Set<string>()
  readonly entries = new Map<number, SeenEntry>()
  /** Conversations that a client cancelled at least once. */
  readonly cancelled = new Set<number>()
  readonly faults: Array<string> = []
  calls = 0
  events = 0
  kills = 0
  /** Parked runs that were run again. */
  retries = 0
  readonly #listeners = new Set<(event: Event) => void>()

  /** Every event that any watcher sees. */
  event(event: Event): void {
    this.events++
    for (const listener of this.#listeners) listener(event)
  }

  /** Resolves at the next event of a type, or after `limit` milliseconds without one. */
  next(type: Event["type"], limit: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        this.#listeners.delete(listener)
        resolve()
      }
      const timer = setTimeout(done, limit)
      const listener = (event: Event) => {
        if (event.type === type) done()
      }
      this.#listeners.add(listener)
    })
  }

  fault(text: string): void {
    if (this.faults.length < 100) this.faults.push(text)
  }

  acknowledge(job: Job, whenBusy: string, receipt: Receipt): void {
    const before = this.acknowledged.get(job.key)
    if (before !== undefined && before.submission !== receipt.submission_id) {
      this.fault(`request ${job.key} was admitted twice: submissions ${before.submission} and ${receipt.submission_id}`)
    }
    const { submission_id: submission, conversation_id: conversation } = receipt
    this.acknowledged.set(job.key, { job, submission, conversation, whenBusy })
  }

  settle(job: Job, settled: Settled): void {
    const before = this.settled.get(job.key)
    if (before !== undefined && (before.status !== settled.status || before.text !== settled.text)) {
      this.fault(
        `${job.key}: told "${before.status} ${before.text}" first and "${settled.status} ${settled.text}" later`,
      )
    }
    this.settled.set(job.key, settled)
  }
}
