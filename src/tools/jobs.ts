/**
 * The jobs of the sandbox by name. Each is a synchronous function of structured-cloneable data; the worker thread's program runs them.
 */
import { type Diff, unifiedDiff } from "./diff.ts"
import { applyEdits, type EditInput, type EditOutput } from "./edits.ts"
import type { JobContext } from "./job.ts"
import { type FindInput, type FindOutput, find, type ListInput, type ListOutput, list } from "./listing.ts"
import { type SearchInput, type SearchOutput, search } from "./search.ts"

export interface DiffInput {
  readonly before: string
  readonly after: string
  readonly diffLines: number
}

interface Jobs {
  readonly grep: (input: SearchInput, job: JobContext) => SearchOutput
  readonly find: (input: FindInput, job: JobContext) => FindOutput
  readonly ls: (input: ListInput, job: JobContext) => ListOutput
  readonly edit: (input: EditInput, job: JobContext) => EditOutput
  readonly diff: (input: DiffInput, job: JobContext) => Diff
}

export type JobName = keyof Jobs
export type JobInput<J extends JobName> = Parameters<Jobs[J]>[0]
export type JobOutput<J extends JobName> = ReturnType<Jobs[J]>

export const jobs: Jobs = {
  grep: search,
  find,
  ls: list,
  edit: applyEdits,
  diff: ({ before, after, diffLines }) => unifiedDiff(before, after, { context: 3, maxLines: diffLines }),
}
