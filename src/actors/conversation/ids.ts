/**
 * Ids for decisions: a small reserve per kind, filled before a decision draws from it, so that deciding stays synchronous. Ids grow in
 * the order drawn; what is left when the actor ends is a gap.
 */
import { Effect } from "effect"
import { TaskKind } from "../../domain/task.ts"
import type { CommitError } from "../../storage/errors.ts"
import type { IdsByKind, StoreService } from "../../storage/store.ts"
import type { ToolControl } from "../../tools/tool.ts"
import type { Data, IdSource, MachineEvent } from "./machine/data.ts"

const kinds = ["entry", "task", "submission", "document"] as const
/** Those of which few decisions need any: they are not kept in reserve. */
const rare = ["job", "conversation"] as const
type Kind = (typeof kinds)[number] | (typeof rare)[number]

/** Ids fetched at once. */
const block = 32

export class IdReserve implements IdSource {
  private readonly reserve: { [K in Kind]: Array<IdsByKind[K]> } = {
    entry: [],
    task: [],
    submission: [],
    document: [],
    job: [],
    conversation: [],
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
  readonly conversation = () => this.draw("conversation")

  /** Whether a decision about the event finds enough. */
  covers(data: Data, event: MachineEvent): boolean {
    return this.has(idsNeeded(data, event), rareIdsNeeded(event))
  }

  /** Makes sure that it does. */
  cover(data: Data, event: MachineEvent): Effect.Effect<void, CommitError> {
    return this.fill(idsNeeded(data, event), rareIdsNeeded(event))
  }

  private has(count: number, few: number): boolean {
    return (
      rare.every((kind) => this.reserve[kind].length >= few) &&
      kinds.every((kind) => this.reserve[kind].length >= count)
    )
  }

  /** Makes sure that `count` ids of every kind can be drawn, and `few` of the rare ones. */
  fill(count: number, few = 0): Effect.Effect<void, CommitError> {
    const missing = rare.find((kind) => this.reserve[kind].length < few)
    if (missing !== undefined) {
      return Effect.zipRight(
        this.fillKind(missing, few),
        Effect.suspend(() => this.fill(count, few)),
      )
    }
    const short = kinds.filter((kind) => this.reserve[kind].length < count)
    return short.length === 0
      ? Effect.void
      : Effect.forEach(short, (kind) => this.fillKind(kind, count), { discard: true })
  }

  private fillKind<K extends Kind>(kind: K, count: number): Effect.Effect<void, CommitError> {
    return Effect.map(
      this.store.mint(kind, rare.some((one) => one === kind) ? count : Math.max(block, count)),
      (ids) => {
        const reserve: Array<IdsByKind[K]> = this.reserve[kind]
        reserve.push(...ids)
      },
    )
  }

  private draw<K extends Kind>(kind: K): IdsByKind[K] {
    const reserve: Array<IdsByKind[K]> = this.reserve[kind]
    const id = reserve.shift()
    if (id === undefined) throw new Error(`no ${kind} id in reserve: a decision drew more than was filled`)
    return id
  }
}

/** Ids of jobs and of conversations that a decision about the event can draw. */
const rareIdsNeeded = (event: MachineEvent): number => {
  switch (event.type) {
    case "modelFailed":
      return 1
    case "recover":
      return event.stored.tasks.filter((task) => task.kind === TaskKind.subagent).length
    case "toolEnded":
      return bornBy(event.result.control)
    case "reconciled":
      return "happened" in event.found && event.found.happened ? bornBy(event.found.result.control) : 0
    default:
      return 0
  }
}

/** Conversations that a result creates. */
const bornBy = (control: ToolControl | undefined): number =>
  control === undefined ? 0 : (control.await?.orders.length ?? 0) + (control.store === undefined ? 0 : 1)

/** More ids than one decision about the event can draw, per kind. */
const idsNeeded = (data: Data, event: MachineEvent): number =>
  8 +
  (data.run?.calls.length ?? 0) +
  data.queue.length +
  data.compactions.length * 2 +
  rareIdsNeeded(event) * 2 +
  (event.type === "callsPrepared" ? event.verdicts.length * 2 : 0) +
  (event.type === "inputRead" ? event.commands.length * 2 : 0) +
  (event.type === "recover" ? event.stored.tasks.length + event.stored.submissions.length : 0)
