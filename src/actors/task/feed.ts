/**
 * Every open task of the node, as the commits leave them, whoever commits: the engine's own and those of conversations. It serves the live
 * graph, and tells the engine what it cannot see on its board: ends of other tasks, and conversations that come to rest. Among several
 * nodes it shows the tasks at places that this node holds.
 */
import { Effect, Stream } from "effect"
import type { Conversation } from "../../domain/conversation.ts"
import type { ConversationId, Seq, TaskId } from "../../domain/ids.ts"
import type { TaskOutcome } from "../../domain/task.ts"
import { type TaskGraph, type TaskGraphEvent, type TaskNode, taskNode } from "../../domain/task-graph.ts"
import { isOpen, isWorkflow } from "../../domain/task-rules.ts"
import type { Commit, StoreService, Unstamped } from "../../storage/store.ts"
import type { TaskRow } from "./board.ts"

export interface FeedListener {
  readonly endedElsewhere: (id: TaskId, outcome: TaskOutcome) => void
  readonly conversationIdle: (owner: TaskId) => void
}

/** Told once: at the next commit that ends or parks the task, or (null) to look again, because the task is seen here no more. */
export type TaskWaiter = (row: TaskRow | null) => void

/** Changes that a slow reader is behind before it gets the whole value again. */
const behindLimit = 1_000

export class TaskFeed {
  readonly rows = new Map<TaskId, TaskRow>()
  /** Why a task cannot run, from the catalog. */
  blockedOf: (row: TaskRow) => string | null = () => null
  /** Whether this node holds a place; null: it is alone. */
  holds: ((place: number) => boolean) | null = null
  private listener: FeedListener | null = null
  private readonly readers = new Set<GraphReader>()
  private readonly waiters = new Map<TaskId, Set<TaskWaiter>>()
  private readonly ownerOf = new Map<ConversationId, TaskId>()
  private readonly ownedBy = new Map<TaskId, Set<ConversationId>>()
  /** Open tasks of the conversation machine, by conversation. */
  private readonly work = new Map<ConversationId, number>()
  /** Places of open tasks that were read, where they are not to be had from their owners. */
  private readonly places = new Map<TaskId, number>()
  /** Tasks that were committed since a read began that is to be loaded. */
  private touched: Set<TaskId> | null = null

  /** Everything that was open when the node started. */
  load(tasks: ReadonlyArray<TaskRow>, owned: ReadonlyArray<Unstamped<Conversation>>): void {
    for (const row of owned) this.own(row)
    for (const row of tasks) this.put(row)
  }

  /** Says that tasks are about to be read. */
  expect(): void {
    this.touched = new Set()
  }

  /** What was read since {@link expect}; of what was committed meanwhile that counts. */
  loadExpected(
    tasks: ReadonlyArray<{ readonly task: TaskRow; readonly place: number }>,
    owned: ReadonlyArray<Unstamped<Conversation>>,
  ): void {
    const touched = this.touched ?? new Set()
    this.touched = null
    const fresh = tasks.filter(({ task }) => !touched.has(task.id))
    for (const { place, task } of fresh) this.places.set(task.id, place)
    const rows = fresh.map(({ task }) => task)
    this.load(rows, owned)
    if (this.readers.size > 0) this.publish(null, rows)
  }

  /** The place of a task that is or was here. */
  placeOf(row: Pick<TaskRow, "id" | "conversation" | "owner">): number {
    const known = this.places.get(row.id)
    if (known !== undefined) return known
    if (row.conversation !== null) return this.placeOfConversation(row.conversation)
    const owner = row.owner === null ? undefined : this.rows.get(row.owner)
    return owner === undefined ? (row.owner ?? row.id) : this.placeOf(owner)
  }

  private placeOfConversation(id: ConversationId): number {
    const owner = this.ownerOf.get(id)
    if (owner === undefined) return id
    const row = this.rows.get(owner)
    return this.places.get(owner) ?? (row === undefined ? id : this.placeOf(row))
  }

  /** Tasks that left this node: they are shown no more, and who waits for one looks elsewhere. */
  drop(left: (row: TaskRow) => boolean): void {
    this.prune()
    const gone = [...this.rows.values()].filter(left)
    // Known a little longer: what stops late still commits.
    for (const row of gone) this.places.set(row.id, this.placeOf(row))
    for (const row of gone) this.leave(row)
    if (this.readers.size > 0) this.publish(null, gone.map(ended))
  }

  /** Forgets what is only known of tasks that left some time ago. */
  private prune(): void {
    for (const id of this.places.keys()) if (!this.rows.has(id)) this.places.delete(id)
    for (const owner of this.ownedBy.keys()) if (!this.rows.has(owner)) this.forget(owner)
  }

  /** Something may have happened to a task that is not here. */
  nudge(id: TaskId): void {
    this.tell(id, null)
  }

  listen(listener: FeedListener): void {
    this.listener = listener
  }

  /** Gives what takes the waiter back. */
  wait(id: TaskId, waiter: TaskWaiter): () => void {
    const waiting = this.waiters.get(id) ?? new Set()
    this.waiters.set(id, waiting.add(waiter))
    return () => {
      waiting.delete(waiter)
      if (waiting.size === 0 && this.waiters.get(id) === waiting) this.waiters.delete(id)
    }
  }

  /** A store whose commits are seen here, before their committer goes on. */
  observe(store: StoreService): StoreService {
    return {
      ...store,
      commit: (commit) =>
        commit.tasks === undefined && commit.conversations === undefined && commit.removeConversations === undefined
          ? store.commit(commit)
          : Effect.uninterruptible(
              Effect.map(store.commit(commit), (seq) => {
                this.committed(commit, seq)
                return seq
              }),
            ),
    }
  }

  /** Conversations that the task owns and that have work. */
  busyConversations(owner: TaskId): ReadonlyArray<ConversationId> {
    const owned = this.ownedBy.get(owner)
    return owned === undefined ? [] : [...owned].filter((id) => this.work.has(id))
  }

  graph(): TaskGraph {
    return this.graphOf(this.rows.values())
  }

  /** The graph of these tasks. */
  graphOf(rows: Iterable<TaskRow>): TaskGraph {
    const graph = new Map<TaskId, TaskNode>()
    for (const row of rows) {
      const node = this.node(row)
      if (node !== null) graph.set(row.id, node)
    }
    return graph
  }

  /** The graph, then its changes. */
  readonly watch: Stream.Stream<TaskGraphEvent> = Stream.unwrapScoped(
    Effect.map(
      Effect.acquireRelease(
        Effect.sync(() => {
          const reader = new GraphReader(() => this.graph())
          this.readers.add(reader)
          return reader
        }),
        (reader) => Effect.sync(() => void this.readers.delete(reader)),
      ),
      (reader) => Stream.repeatEffect(reader.take),
    ),
  )

  /** The code of a kind was loaded: what was blocked may not be any more. */
  refresh(kind: string): void {
    if (this.readers.size === 0) return
    this.publish(
      null,
      [...this.rows.values()].filter((row) => row.kind === kind),
    )
  }

  private node(row: TaskRow): TaskNode | null {
    return taskNode(row, isWorkflow(row) ? this.blockedOf(row) : null)
  }

  private committed(commit: Commit, seq: Seq): void {
    for (const row of commit.conversations ?? []) this.own(row)
    const rows = commit.tasks ?? []
    const shown = this.holds === null ? rows : rows.map((row) => this.seen(row))
    for (let at = 0; at < shown.length; at++) {
      const row = shown[at]
      if (row === undefined) continue
      if (row === rows[at]) this.put(row)
      else this.leave(row)
    }
    const removed = this.removed(commit.removeConversations ?? [])
    if (this.readers.size > 0) this.publish(seq, [...shown, ...removed])
  }

  /** A task at a place that left is as good as ended here. */
  private seen(row: TaskRow): TaskRow {
    this.touched?.add(row.id)
    return this.holds?.(this.placeOf(row)) === false ? ended(row) : row
  }

  private leave(row: TaskRow): void {
    if (this.rows.delete(row.id)) this.count(row, -1)
    this.nudge(row.id)
  }

  private own({ id, owner }: Unstamped<Conversation>): void {
    if (owner === null) return
    this.ownerOf.set(id, owner)
    const owned = this.ownedBy.get(owner)
    if (owned === undefined) this.ownedBy.set(owner, new Set([id]))
    else owned.add(id)
  }

  private put(row: TaskRow): void {
    if (this.waiters.size > 0 && (!isOpen(row) || row.parked !== null)) this.tell(row.id, row)
    const known = this.rows.get(row.id)
    if (isOpen(row)) {
      this.rows.set(row.id, row)
      if (known === undefined) this.count(row, 1)
      return
    }
    if (known !== undefined) {
      this.rows.delete(row.id)
      this.count(row, -1)
    }
    this.forget(row.id)
    if (this.places.size > 0) this.places.delete(row.id)
    if (!isWorkflow(row) && row.outcome !== null) this.listener?.endedElsewhere(row.id, row.outcome)
  }

  private tell(id: TaskId, row: TaskRow | null): void {
    const waiting = this.waiters.get(id)
    this.waiters.delete(id)
    for (const waiter of waiting ?? []) waiter(row)
  }

  private count(row: TaskRow, by: 1 | -1): void {
    const { conversation } = row
    if (conversation === null || isWorkflow(row)) return
    const now = (this.work.get(conversation) ?? 0) + by
    if (now > 0) {
      this.work.set(conversation, now)
      return
    }
    this.work.delete(conversation)
    const owner = this.ownerOf.get(conversation)
    if (owner !== undefined) this.listener?.conversationIdle(owner)
  }

  /** What an ended task owned is on its own. */
  private forget(owner: TaskId): void {
    for (const conversation of this.ownedBy.get(owner) ?? []) this.ownerOf.delete(conversation)
    this.ownedBy.delete(owner)
  }

  private removed(conversations: ReadonlyArray<ConversationId>): ReadonlyArray<TaskRow> {
    if (conversations.length === 0) return []
    const gone = [...this.rows.values()].filter(
      (row) => row.conversation !== null && conversations.includes(row.conversation),
    )
    for (const row of gone) this.rows.delete(row.id)
    for (const conversation of conversations) this.work.delete(conversation)
    return gone.map(ended)
  }

  private publish(seq: Seq | null, rows: ReadonlyArray<TaskRow>): void {
    for (const row of rows) {
      const node = this.node(row)
      for (const reader of this.readers) reader.add(row.id, node)
    }
    for (const reader of this.readers) reader.wake(seq)
  }
}

/** As the graph sees a task that is to be shown no more. */
const ended = (row: TaskRow): TaskRow => ({ ...row, status: "terminal" })

/** What one reader has not taken yet: the newest state of each task that changed. */
class GraphReader {
  private readonly graph: () => TaskGraph
  private pending = new Map<TaskId, TaskNode | null>()
  private whole = true
  private seq: Seq | null = null
  private waiting: ((event: Effect.Effect<TaskGraphEvent>) => void) | null = null

  constructor(graph: () => TaskGraph) {
    this.graph = graph
  }

  readonly take: Effect.Effect<TaskGraphEvent> = Effect.async((resume) => {
    const ready = this.next()
    if (ready !== null) {
      resume(Effect.succeed(ready))
      return
    }
    this.waiting = resume
    return Effect.sync(() => {
      this.waiting = null
    })
  })

  add(id: TaskId, node: TaskNode | null): void {
    if (this.whole) return
    this.pending.set(id, node)
    if (this.pending.size <= behindLimit) return
    this.pending.clear()
    this.whole = true
  }

  wake(seq: Seq | null): void {
    this.seq = seq ?? this.seq
    const { waiting } = this
    if (waiting === null) return
    const event = this.next()
    if (event === null) return
    this.waiting = null
    waiting(Effect.succeed(event))
  }

  private next(): TaskGraphEvent | null {
    if (this.whole) {
      this.whole = false
      return { type: "graph", tasks: this.graph() }
    }
    if (this.pending.size === 0) return null
    const changed: Array<TaskNode> = []
    const ended: Array<TaskId> = []
    for (const [id, node] of this.pending) {
      if (node === null) ended.push(id)
      else changed.push(node)
    }
    const event: TaskGraphEvent = { type: "change", seq: this.seq, changed, ended }
    this.pending = new Map()
    this.seq = null
    return event
  }
}
