/**
 * Records for tests: everything that a test does not care about has a plain value.
 */
import type { Conversation } from "../../domain/conversation.ts"
import type { Entry } from "../../domain/entry.ts"
import type { ConversationId, DocumentId, EntryId, JobId, SubmissionId, TaskId } from "../../domain/ids.ts"
import { text } from "../../domain/message.ts"
import type { Submission } from "../../domain/submission.ts"
import type { Task } from "../../domain/task.ts"
import type { JobInsert } from "../job-port.ts"
import type { DocumentWrite, Unstamped } from "../store.ts"

type Some<Row> = Partial<Unstamped<Row>>

const at = 1_750_000_000_000

export const conversation = (id: ConversationId, some: Some<Conversation> = {}): Unstamped<Conversation> => ({
  id,
  parent: null,
  owner: null,
  principal: "somebody",
  title: null,
  createdAt: at,
  updatedAt: at,
  ...some,
})

export const entry = (id: EntryId, of: ConversationId, some: Some<Entry> = {}): Unstamped<Entry> => ({
  id,
  conversation: of,
  kind: "pi.user",
  model: [{ role: "user", content: [text(`entry ${id}`)] }],
  data: null,
  head: null,
  edits: [],
  task: null,
  createdAt: at,
  ...some,
})

export const task = (id: TaskId, of: ConversationId | null, some: Some<Task> = {}): Unstamped<Task> => ({
  id,
  conversation: of,
  kind: "pi.generation",
  version: 1,
  input: {},
  status: "pending",
  checkpoint: null,
  owner: null,
  background: false,
  abortRequested: false,
  crashes: 0,
  parked: null,
  node: null,
  fence: 1,
  leaseUntil: null,
  wakeAt: null,
  waitingOn: null,
  outcome: null,
  requestId: null,
  inDoubt: false,
  createdAt: at,
  startedAt: null,
  endedAt: null,
  ...some,
})

export const submission = (
  id: SubmissionId,
  of: ConversationId,
  some: Some<Submission> = {},
): Unstamped<Submission> => ({
  id,
  conversation: of,
  kind: "input",
  content: { content: [] },
  whenBusy: "followUp",
  status: "queued",
  reason: null,
  detail: null,
  requestId: null,
  entry: null,
  answer: null,
  createdAt: at,
  ...some,
})

export const document = (
  id: DocumentId,
  of: ConversationId | null,
  some: Partial<DocumentWrite> = {},
): DocumentWrite => ({
  id,
  kind: "pi.live",
  scope: of === null ? "global" : "conversation",
  conversation: of,
  task: null,
  key: "",
  version: 1,
  history: "latest",
  fork: "initial",
  value: null,
  ...some,
})

export const job = (id: JobId, some: Partial<JobInsert> = {}): JobInsert => ({
  id,
  queue: "q",
  worker: "w",
  args: {},
  uniqueKey: null,
  uniqueFor: "live",
  maxAttempts: 3,
  runAt: at,
  conversation: null,
  createdAt: at,
  ...some,
})
