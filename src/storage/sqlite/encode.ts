/**
 * A commit as rows of SQL parameters, made before its transaction starts: what cannot be encoded fails its caller alone. Pure.
 * The `seq` is stamped later, so every row leaves it out; the statements in `writes.ts` name the columns in this order.
 */

import { json } from "../json.ts"
import type { NameChange } from "../name-port.ts"
import type { Commit } from "../store.ts"
import { type EncodedArtifacts, encodeArtifacts } from "./artifacts.ts"
import { type DocumentRow, encodeDocument } from "./documents.ts"
import { type EncodedJobs, encodeJobs } from "./jobs.ts"
import { encodeNames } from "./names.ts"

export type Param = number | string | null
export type Row = ReadonlyArray<Param>

export interface EncodedCommit {
  readonly conversations: ReadonlyArray<Row>
  readonly conversationUpdates: ReadonlyArray<{
    readonly id: number
    readonly title: string | null | undefined
    readonly updatedAt: number
  }>
  readonly entries: ReadonlyArray<Row>
  readonly tasks: ReadonlyArray<{
    readonly id: number
    readonly conversation: number | null
    readonly fence: number
    readonly requestId: string | null
    readonly row: Row
  }>
  readonly submissions: ReadonlyArray<{
    readonly conversation: number
    readonly requestId: string | null
    readonly row: Row
  }>
  readonly documents: ReadonlyArray<DocumentRow>
  readonly jobs: EncodedJobs | null
  readonly artifacts: EncodedArtifacts | null
  readonly names: ReadonlyArray<NameChange> | null
  readonly removed: ReadonlyArray<number>
  /** Conversations that must exist once this commit's own are written. */
  readonly touched: ReadonlySet<number>
}

const none: ReadonlyArray<never> = []
const bit = (value: boolean): number => (value ? 1 : 0)

export const encode = (commit: Commit): EncodedCommit => {
  const touched = new Set<number>()
  const conversations = commit.conversations?.map((c): Row => {
    if (c.parent !== null) touched.add(c.parent.conversation)
    return [
      c.id,
      c.parent === null ? null : c.parent.conversation,
      c.parent === null ? null : c.parent.entry,
      c.owner,
      c.principal,
      c.title,
      c.createdAt,
      c.updatedAt,
    ]
  })
  const entries = commit.entries?.map((e): Row => {
    touched.add(e.conversation)
    return [
      e.id,
      e.conversation,
      e.kind,
      json(e.model, `entry ${e.id}.model`),
      e.data === null ? null : json(e.data, `entry ${e.id}.data`),
      e.head,
      e.edits.length === 0 ? "[]" : json(e.edits, `entry ${e.id}.edits`),
      e.task,
      e.createdAt,
    ]
  })
  const tasks = commit.tasks?.map((t) => {
    if (t.conversation !== null) touched.add(t.conversation)
    const row: Row = [
      t.id,
      t.conversation,
      t.kind,
      t.version,
      json(t.input, `task ${t.id}.input`),
      t.status,
      json(t.checkpoint, `task ${t.id}.checkpoint`),
      t.owner,
      bit(t.background),
      bit(t.abortRequested),
      t.crashes,
      t.parked,
      t.node,
      t.fence,
      t.leaseUntil,
      t.wakeAt,
      t.waitingOn === null ? null : json(t.waitingOn, `task ${t.id}.waitingOn`),
      t.outcome === null ? null : json(t.outcome, `task ${t.id}.outcome`),
      t.requestId,
      bit(t.inDoubt),
      t.createdAt,
      t.startedAt,
      t.endedAt,
    ]
    return { id: t.id, conversation: t.conversation, fence: t.fence, requestId: t.requestId, row }
  })
  const submissions = commit.submissions?.map((s) => {
    touched.add(s.conversation)
    const row: Row = [
      s.id,
      s.conversation,
      s.kind,
      json(s.content, `submission ${s.id}.content`),
      s.whenBusy,
      s.status,
      s.reason,
      s.detail,
      s.requestId,
      s.entry,
      s.answer,
      s.createdAt,
    ]
    return { conversation: s.conversation, requestId: s.requestId, row }
  })
  const documents = commit.documents?.map((d): DocumentRow => {
    if (d.conversation !== null) touched.add(d.conversation)
    return encodeDocument(d)
  })
  const conversationUpdates = commit.conversationUpdates?.map((u) => ({
    id: u.id,
    title: u.title,
    updatedAt: u.updatedAt,
  }))
  return {
    conversations: conversations ?? none,
    conversationUpdates: conversationUpdates ?? none,
    entries: entries ?? none,
    tasks: tasks ?? none,
    submissions: submissions ?? none,
    documents: documents ?? none,
    jobs: encodeJobs(commit, touched),
    artifacts: encodeArtifacts(commit, touched),
    names: encodeNames(commit, touched),
    removed: commit.removeConversations ?? none,
    touched,
  }
}
