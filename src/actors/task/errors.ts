/**
 * What a caller of the task engine may meet beside the failure words.
 */
import { Schema } from "effect"
import { TaskId } from "../../domain/ids.ts"

/** The task is parked: it goes on only after a retry, so that nobody is kept waiting for it. */
export class TaskParked extends Schema.TaggedError<TaskParked>()("TaskParked", { id: TaskId, reason: Schema.String }) {
  override get message() {
    return `task ${this.id} is parked (${this.reason}); retry or abort it`
  }
}
