/**
 * A decision in the making: the rows to commit, the actions to perform after it, and the data to adopt. One draft per event; it never
 * leaves `decide`.
 */
import type { BuiltinKind } from "../../../domain/builtin-documents.ts"
import { appendEntry } from "../../../domain/context.ts"
import type { Conversation } from "../../../domain/conversation.ts"
import { DocumentKind } from "../../../domain/document.ts"
import { everySixtyFour } from "../../../domain/document-definition.ts"
import { changeOf, noTail } from "../../../domain/document-revision.ts"
import type { Entry } from "../../../domain/entry.ts"
import type { EventBody, MachineState } from "../../../domain/event.ts"
import type { DocumentId, EntryId, SubmissionId, TaskId } from "../../../domain/ids.ts"
import type { Json } from "../../../domain/json.ts"
import type { Message } from "../../../domain/message.ts"
import type { TaskOutcome } from "../../../domain/task.ts"
import type { EntryDraft } from "../../../domain/write.ts"
import { builtinWrite } from "../../../storage/documents/builtin.ts"
import type { JobInsert } from "../../../storage/job-port.ts"
import type { DocumentWrite, Unstamped } from "../../../storage/store.ts"
import type { Action, Data, Decision, Env, Reply, Run, SubmissionRow, TaskRow } from "./data.ts"
import { withdrawQuestions } from "./question-open.ts"

/** While it works, a conversation's `updatedAt` follows at this distance at most, in ms: it has two indexes, which every change writes. */
const touchMs = 1_000

/** Characters of a queued input shown in `pi.inbox`. */
const previewLength = 80

/** What an entry changes of the context before it. `head: "self"`: it starts at the entry itself. */
export interface ContextChange {
  readonly head: EntryId | "self" | null
  readonly edits: Entry["edits"]
}

const unchanged: ContextChange = { head: null, edits: [] }

const whyOver = (outcome: TaskOutcome): string => (outcome.status === "aborted" ? outcome.reason : "who asked is over")

/** A job as a decision words it. */
export type DraftJob = Omit<JobInsert, "id" | "conversation" | "createdAt">

/** The row of something handed in, as it begins. */
export const queuedSubmission = (
  given: Pick<SubmissionRow, "id" | "conversation" | "kind" | "content" | "whenBusy" | "requestId" | "createdAt">,
): SubmissionRow => ({
  status: "queued",
  reason: null,
  detail: null,
  entry: null,
  answer: null,
  ...given,
})

export class Draft {
  data: Data
  readonly env: Env
  private readonly entries: Array<Unstamped<Entry>> = []
  private readonly tasks = new Map<TaskId, TaskRow>()
  private readonly submissions = new Map<SubmissionId, SubmissionRow>()
  private readonly documents = new Map<string, DocumentWrite>()
  private readonly jobs: Array<JobInsert> = []
  private readonly actions: Array<Action> = []
  private title: string | null = null
  private readonly conversations: Array<Unstamped<Conversation>> = []

  private readonly written: Data["written"]

  constructor(data: Data, env: Env) {
    this.data = data
    this.written = data.written
    this.env = env
  }

  patch(change: Partial<Data>): void {
    this.data = { ...this.data, ...change }
  }

  /** Changes the run; a defect when there is none. */
  patchRun(change: Partial<Run>): Run {
    const run = { ...this.run, ...change }
    this.patch({ run })
    return run
  }

  get run(): Run {
    if (this.data.run === null) throw new Error(`no run in state ${this.data.state}`)
    return this.data.run
  }

  /** Enters a state. */
  to(state: MachineState): void {
    this.patch({ state })
  }

  act(action: Action): void {
    this.actions.push(action)
  }

  publish(event: EventBody): void {
    this.actions.push({ type: "publish", event, turn: this.data.run?.generation.id ?? null })
  }

  succeed<A>(reply: Reply<A>, value: A): void {
    this.actions.push({ type: "succeed", reply, value })
  }

  /** Appends an entry to the transcript and the context. */
  addEntry(
    kind: string,
    model: ReadonlyArray<Message>,
    task: TaskId | null,
    data: Json = null,
    change: ContextChange = unchanged,
  ): Unstamped<Entry> {
    const id = this.env.ids.entry()
    const entry: Unstamped<Entry> = {
      id,
      conversation: this.data.conversation.id,
      kind,
      model,
      data,
      head: change.head === "self" ? id : change.head,
      edits: change.edits,
      task,
      createdAt: this.env.now,
    }
    this.entries.push(entry)
    this.patch({ context: appendEntry(this.data.context, entry), entryCount: this.data.entryCount + 1 })
    return entry
  }

  /** Appends any entry; one whose head is `self` begins a context of its own. */
  append({ data, edits, head, kind, model }: EntryDraft, task: TaskId | null): Unstamped<Entry> {
    return this.addEntry(kind, model, task, data, { head, edits })
  }

  putTask(task: TaskRow): TaskRow {
    this.tasks.set(task.id, task)
    return task
  }

  /** A new task that runs from now on, or waits as `pending`. */
  newTask(kind: string, input: Json, checkpoint: Json, owner: TaskId | null, running = true): TaskRow {
    return this.putTask({
      id: this.env.ids.task(),
      conversation: this.data.conversation.id,
      kind,
      version: 1,
      input,
      status: running ? "running" : "pending",
      checkpoint,
      owner,
      background: false,
      abortRequested: false,
      crashes: 0,
      parked: null,
      node: running ? this.env.node : null,
      fence: this.env.fence,
      leaseUntil: null,
      wakeAt: null,
      waitingOn: null,
      outcome: null,
      requestId: null,
      inDoubt: false,
      createdAt: this.env.now,
      startedAt: running ? this.env.now : null,
      endedAt: null,
    })
  }

  /** Ends a task; the questions that it asks are withdrawn. */
  endTask(task: TaskRow, outcome: TaskOutcome): TaskRow {
    if (this.data.questions.length > 0) withdrawQuestions(this, task.id, whyOver(outcome))
    return this.putTask({
      ...task,
      status: "terminal",
      outcome,
      node: null,
      fence: this.env.fence,
      wakeAt: null,
      endedAt: this.env.now,
    })
  }

  /** Stores a submission and tells its watchers. */
  putSubmission(row: SubmissionRow): SubmissionRow {
    this.submissions.set(row.id, row)
    this.publish({
      type: "submission_updated",
      submission_id: row.id,
      status: row.status,
      reason: row.reason,
      detail: row.detail,
    })
    return row
  }

  /** A submission as this decision leaves it. */
  submission(row: SubmissionRow): SubmissionRow {
    return this.submissions.get(row.id) ?? row
  }

  /** Ends submissions as unanswered and wakes whoever waits for them. */
  unanswered(rows: ReadonlyArray<SubmissionRow>, reason: NonNullable<SubmissionRow["reason"]>, detail: string): void {
    for (const row of rows) {
      this.act({ type: "settle", submission: this.putSubmission({ ...row, status: "unanswered", reason, detail }) })
    }
  }

  /** Sets the queue and mirrors it in `pi.inbox`. */
  setQueue(queue: ReadonlyArray<SubmissionRow>): void {
    if (queue.length === 0 && this.data.queue.length === 0) return
    this.patch({ queue })
    this.putDocument(DocumentKind.inbox, {
      queued: queue.map((row) => ({
        submission: row.id,
        whenBusy: row.kind === "write" ? "write" : row.whenBusy,
        preview: JSON.stringify(row.content).slice(0, previewLength),
      })),
      notes: [],
    })
  }

  /** Puts a job about this conversation into a queue, in the decision's commit. */
  addJob(job: DraftJob): void {
    this.jobs.push({ ...job, id: this.env.ids.job(), conversation: this.data.conversation.id, createdAt: this.env.now })
  }

  /**
   * Sets a document of the conversation. A rewindable one is remembered as what changed since the write before it, where this life of
   * the actor made that write; its first in a life is whole, which bounds what a read of the past must replay.
   */
  putDocument(kind: BuiltinKind, value: Json): void {
    const known: DocumentId | undefined = this.data.documents[kind]
    const id = known ?? this.env.ids.document()
    if (known === undefined) this.patch({ documents: { ...this.data.documents, [kind]: id } })
    const write = builtinWrite(kind, id, this.data.conversation.id, value)
    this.documents.set(kind, write.history === "latest" ? write : { ...write, ...this.revision(kind, value) })
  }

  /** A write that somebody else worded: it says itself which value it was made from. */
  addDocument(write: DocumentWrite): void {
    this.documents.set(`${write.kind}/${write.id}`, write)
  }

  private revision(kind: BuiltinKind, value: Json): Pick<DocumentWrite, "revision"> {
    // what stands in the store, whatever this decision wrote before
    const last = this.written[kind]
    const { operations, tail } =
      last === undefined ? { operations: null, tail: noTail } : changeOf(last.value, value, last.tail, everySixtyFour)
    this.patch({ written: { ...this.data.written, [kind]: { value, tail } } })
    return operations === null ? {} : { revision: { type: "delta", operations } }
  }

  /** Creates another conversation, with what it begins with; its rows are no part of this one's data. */
  addConversation(born: {
    readonly row: Unstamped<Conversation>
    readonly documents: ReadonlyArray<DocumentWrite>
    readonly submission: SubmissionRow | null
    readonly entry: Unstamped<Entry> | null
  }): void {
    this.conversations.push(born.row)
    for (const document of born.documents) this.addDocument(document)
    if (born.submission !== null) this.submissions.set(born.submission.id, born.submission)
    if (born.entry !== null) this.entries.push(born.entry)
  }

  setTitle(title: string): void {
    this.title = title
    this.patch({ conversation: { ...this.data.conversation, title } })
  }

  /** Whether somebody handed something in with this decision, or the last touch is a while ago. */
  private get touches(): boolean {
    const { now } = this.env
    if (this.title !== null || now - this.data.conversation.updatedAt >= touchMs) return true
    for (const { createdAt } of this.submissions.values()) if (createdAt === now) return true
    return false
  }

  /** The decision. A commit that writes what somebody handed in also touches the conversation's `updatedAt`. */
  done(): Decision {
    const writes =
      this.entries.length > 0 || this.tasks.size > 0 || this.submissions.size > 0 || this.documents.size > 0
    const touches = writes && this.touches
    if (touches) this.patch({ conversation: { ...this.data.conversation, updatedAt: this.env.now } })
    return {
      type: "go",
      data: this.data,
      commit: writes
        ? {
            entries: this.entries,
            tasks: [...this.tasks.values()],
            submissions: [...this.submissions.values()],
            documents: [...this.documents.values()],
            jobs: this.jobs,
            // Absent where there are none: who follows commits looks at it.
            ...(this.conversations.length === 0 ? {} : { conversations: this.conversations }),
            conversationUpdates: touches
              ? [
                  {
                    id: this.data.conversation.id,
                    updatedAt: this.env.now,
                    ...(this.title === null ? {} : { title: this.title }),
                  },
                ]
              : [],
          }
        : null,
      actions: this.actions,
    }
  }
}
