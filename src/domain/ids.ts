/**
 * Branded record ids: plain positive integers on the wire and in SQL, distinct types in code.
 * Ids grow in the order in which they are minted; gaps are allowed.
 */
import { Schema } from "effect"

const id = <const Name extends string>(name: Name) => Schema.Int.pipe(Schema.positive(), Schema.brand(name))

export const ConversationId = id("ConversationId")
export type ConversationId = typeof ConversationId.Type

export const EntryId = id("EntryId")
export type EntryId = typeof EntryId.Type

export const TaskId = id("TaskId")
export type TaskId = typeof TaskId.Type

export const SubmissionId = id("SubmissionId")
export type SubmissionId = typeof SubmissionId.Type

export const DocumentId = id("DocumentId")
export type DocumentId = typeof DocumentId.Type

export const JobId = id("JobId")
export type JobId = typeof JobId.Type

/** The strictly increasing number of a commit, stamped on every row that it writes. */
export const Seq = id("Seq")
export type Seq = typeof Seq.Type
