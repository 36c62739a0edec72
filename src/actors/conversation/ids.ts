/**
 * Ids for decisions: a small reserve per kind, filled before a decision draws from it, so that deciding stays synchronous. Ids grow in
 * the order drawn; what is left when the actor ends is a gap.
 */
import { Effect } from "effect"
import type { CommitError } from "../../storage/errors.ts"
import type { IdsByKind, StoreService } from "../../storage/store.ts"
import type { Data, IdSource, MachineEvent } from "./machine/data.ts"

const kinds = ["entry", "task", "submission", "document"] as const
type Kind = (typeof kinds)[number] | "job"

/** Ids fetched at once. */
const block = 32

export class IdReserve implements IdSource {
  private readonly reserve: { [K in Kind]: Array<IdsByKind[K]> } = {
    entry: [],
    task: [],
    submission: [],
    document: [],
    job: [],
  }
  private readonly store: StoreService

  constructor(store: StoreService) {
    this.store = store
  }

  readonly entry = () => this.draw("entry")
  readonly task = () => this.draw("task")
  readonly submission = () => this.draw("submission")
  readonly document = () => this.draw("document")
  readonly job = () => this.draw("job")

  /** Whether a decision about the event finds enough. */
  covers(data: Data, event: MachineEvent): boolean {
    return this.has(idsNeeded(data, event), jobIdsNeeded(event))
  }

  /** Makes sure that it does. */
  cover(data: Data, event: MachineEvent): Effect.Effect<void, CommitError> {
    return this.fill(idsNeeded(data, event), jobIdsNeeded(event))
  }

  private has(count: number, jobs: number): boolean {
    return this.reserve.job.length >= jobs && kinds.every((kind) => this.reserve[kind].length >= count)
  }

  /** Makes sure that `count` ids of every kind can be drawn, and `jobs` ids of jobs. */
  fill(count: number, jobs = 0): Effect.Effect<void, CommitError> {
    if (this.reserve.job.length < jobs) {
      return Effect.zipRight(
        this.fillKind("job", jobs),
        Effect.suspend(() => this.fill(count, jobs)),
      )
    }
    const short = kinds.filter((kind) => this.reserve[kind].length < count)
    return short.length === 0
      ? Effect.void
      : Effect.forEach(short, (kind) => this.fillKind(kind, count), { discard: true })
  }

  private fillKind<K extends Kind>(kind: K, count: number): Effect.Effect<void, CommitError> {
    return Effect.map(this.store.mint(kind, kind === "job" ? count : Math.max(block, count)), (ids) => {
      const reserve: Array<IdsByKind[K]> = this.reserve[kind]
      reserve.push(...ids)
    })
  }

  private draw<K extends Kind>(kind: K): IdsByKind[K] {
    const reserve: Array<IdsByKind[K]> = this.reserve[kind]
    const id = reserve.shift()
    if (id === undefined) throw new Error(`no ${kind} id in reserve: a decision drew more than was filled`)
    return id
  }
}

/** Ids of jobs that a decision about the event can draw: few events need any, so they are not kept in reserve. */
const jobIdsNeeded = (event: MachineEvent): number => (event.type === "modelFailed" ? 1 : 0)

/** More ids than one decision about the event can draw, per kind. */
const idsNeeded = (data: Data, event: MachineEvent): number =>
  8 +
  (data.run?.calls.length ?? 0) +
  data.queue.length +
  data.compactions.length * 2 +
  (event.type === "callsPrepared" ? event.verdicts.length * 2 : 0) +
  (event.type === "recover" ? event.stored.tasks.length + event.stored.submissions.length : 0)
