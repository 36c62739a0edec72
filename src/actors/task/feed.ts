/**
 * Every open task of the node, as the commits leave them, whoever commits: the engine's own and those of conversations. It serves the live
 * graph, and tells the engine what it cannot see on its board: ends of other tasks, and conversations that come to rest.
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

/** Told once, at the next commit that ends or parks the task. */
export type TaskWaiter = (row: TaskRow) => void

/** Changes that a slow reader is behind before it gets the whole value again. */
const behindLimit = 1_000

export class TaskFeed {
  readonly rows = new Map<TaskId, TaskRow>()
  /** Why a task cannot run, from the catalog. */
  blockedOf: (row: TaskRow) => string | null = () => null
  private listener: FeedListener | null = null
  private readonly readers = new Set<GraphReader>()
  private readonly waiters = new Map<TaskId, Set<TaskWaiter>>()
  private readonly ownerOf = new Map<ConversationId, TaskId>()
  private readonly ownedBy = new Map<TaskId, Set<ConversationId>>()
  /** Open tasks of the conversation machine, by conversation. */
  private readonly work = new Map<ConversationId, number>()

  /** Everything that was open when the node started. */
  load(tasks: ReadonlyArray<TaskRow>, owned: ReadonlyArray<Unstamped<Conversation>>): void {
    for (const row of tasks) this.put(row)
    for (const row of owned) this.own(row)
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
    const graph = new Map<TaskId, TaskNode>()
    for (const row of this.rows.values()) {
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
    for (const row of rows) this.put(row)
    const removed = this.removed(commit.removeConversations ?? [])
    if (this.readers.size > 0) this.publish(seq, [...rows, ...removed])
  }

  private own({ id, owner }: Unstamped<Conversation>): void {
    if (owner === null) return
    this.ownerOf.set(id, owner)
    const owned = this.ownedBy.get(owner)
    if (owned === undefined) this.ownedBy.set(owner, new Set([id]))
    else owned.add(id)
  }

  private put(row: TaskRow): void {
    if (this.waiters.size > 0 && (!isOpen(row) || row.parked !== null)) this.tell(row)
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
    if (!isWorkflow(row) && row.outcome !== null) this.listener?.endedElsewhere(row.id, row.outcome)
  }

  private tell(row: TaskRow): void {
    const waiting = this.waiters.get(row.id)
    this.waiters.delete(row.id)
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
    return gone.map((row) => ({ ...row, status: "terminal" as const }))
  }

  private publish(seq: Seq | null, rows: ReadonlyArray<TaskRow>): void {
    for (const row of rows) {
      const node = this.node(row)
      for (const reader of this.readers) reader.add(row.id, node)
    }
    for (const reader of this.readers) reader.wake(seq)
  }
}

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
