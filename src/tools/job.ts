/**
 * What a sandbox job gets beside its input.
 */

export interface JobContext {
  /** Says what the job is working on, for the message when it has to be ended. Cheap; the last one counts. */
  readonly at: (what: string) => void
}
