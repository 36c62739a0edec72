/**
 * Any sequence of commits leaves an engine equal to the model in `memory/`, whatever is refused on the way; and commits that arrive
 * together leave the same as one after the other.
 */

import { Effect, Either } from "effect"
import type * as FastCheck from "fast-check"
import type { Seq } from "../../domain/ids.ts"
import type { Json } from "../../domain/json.ts"
import type { TestKit } from "../conformance.ts"
import { jobRow } from "../job-port.ts"
import { applyCommit, noRecords, type Records } from "../memory/state.ts"
import { memoryReads } from "../memory/store.ts"
import type { Commit, StoreReads } from "../store.ts"
import { conversation, document, entry, job, submission, task } from "./records.ts"
import type { Session, Sessions } from "./session.ts"

/** Ids from small ranges, so that reuse, forks and conflicts happen often. */
interface Step {
  readonly kind:
    | "create"
    | "fork"
    | "own"
    | "rename"
    | "append"
    | "edit"
    | "task"
    | "submit"
    | "document"
    | "global"
    | "job"
    | "moveJob"
    | "claimJobs"
    | "pruneJobs"
    | "artifact"
    | "remove"
  readonly a: number
  readonly b: number
  readonly c: number
  readonly json: Json
}

/** Small positive integers stand for ids; commits through the port never make ids of their own. */
const as = <Id>(value: number): Id => value as unknown as Id

const statuses = ["pending", "running", "waiting", "sleeping", "completing", "terminal"] as const
const jobStates = ["available", "executing", "completed", "discarded", "cancelled"] as const
const states = ["queued", "placed", "done", "unanswered"] as const

/** The step as a part of a commit. Entries count on, so that a conversation's own are in the order in which they are written. */
const toCommit = (step: Step, nextEntry: () => number): Commit => {
  const { a, b, c, json } = step
  switch (step.kind) {
    case "create":
      return { conversations: [conversation(as(a), { updatedAt: c, principal: b % 2 === 0 ? "ann" : "bob" })] }
    case "fork":
      return {
        conversations: [conversation(as(a + b), { parent: { conversation: as(a), entry: as(c) }, updatedAt: c })],
      }
    case "own":
      return { conversations: [conversation(as(a), { owner: as(b) })] }
    case "rename":
      return { conversationUpdates: [{ id: as(a), updatedAt: c, ...(b % 3 === 0 ? {} : { title: `t${b}` }) }] }
    case "append":
      return { entries: [entry(as(nextEntry()), as(a), { data: json })] }
    case "edit":
      return {
        entries: [
          entry(as(b % 5 === 0 ? c : nextEntry()), as(a), { head: as(c), edits: [{ type: "omit", entry: as(c) }] }),
        ],
      }
    case "task":
      return {
        tasks: [
          task(as(b), as(a), {
            status: statuses[c % 6] ?? "pending",
            fence: (c % 4) + 1,
            checkpoint: json,
            owner: c % 3 === 0 ? as(b + 1) : null,
            requestId: c % 5 === 0 ? `t${b % 3}` : null,
            inDoubt: c % 2 === 0,
          }),
        ],
      }
    case "submit":
      return {
        submissions: [
          submission(as(b), as(a), {
            status: states[c % 4] ?? "queued",
            requestId: c % 3 === 0 ? null : `r${c % 5}`,
            content: json,
          }),
        ],
      }
    case "document":
      return {
        documents: [
          document(as(b), as(a), {
            key: `${b % 4}`,
            value: json,
            history: c % 2 === 0 ? "latest" : "rewindable",
            version: c % 9 === 0 ? 2 : 1,
            ...(c % 3 === 0
              ? { revision: { type: "delta", operations: [{ op: "add", path: "/a", value: json }] } }
              : {}),
            ...(c % 8 === 0 ? { since: as(b) } : {}),
            ...(c % 5 === 0 ? { retire: true } : {}),
          }),
        ],
      }
    case "global":
      return {
        documents: [
          document(as(100 + b), null, { key: `${b % 3}`, value: json, ...(c % 4 === 0 ? { retire: true } : {}) }),
        ],
      }
    case "job":
      return {
        jobs: [
          job(as(b + c), {
            queue: `q${a % 2}`,
            args: json,
            uniqueKey: c % 3 === 0 ? null : `k${b}`,
            conversation: c % 4 === 0 ? as(a) : null,
            runAt: c,
          }),
        ],
      }
    case "moveJob":
      return {
        jobUpdates: [
          {
            job: {
              ...jobRow(job(as(b + (c % 4)), { uniqueKey: c % 2 === 0 ? null : `m${b}${c}`, runAt: c })),
              state: jobStates[c % 5] ?? "available",
              fence: a,
              errors: [{ at: c, attempt: a, error: "e" }],
              endedAt: c % 5 === 0 ? null : c,
            },
            from: a % 2 === 0 ? "executing" : "available",
            fence: c % 3,
          },
        ],
      }
    case "claimJobs":
      return { jobClaims: [{ queue: `q${a % 2}`, limit: b, now: c, leaseUntil: c + 10, node: `n${a}` }] }
    case "pruneJobs":
      return { pruneJobs: { endedBefore: c, limit: b } }
    case "artifact":
      return c % 4 === 0
        ? { removeArtifacts: [{ conversation: as(a), name: `a${b % 3}` }] }
        : {
            artifacts: [
              { conversation: as(a), name: `a${b % 3}`, mediaType: "x/y", content: Uint8Array.from([b, c]), at: c },
            ],
          }
    case "remove":
      return { removeConversations: b % 2 === 0 ? [as(a)] : [as(a), as(b)] }
  }
}

const merge = (parts: ReadonlyArray<Commit>): Commit => ({
  conversations: parts.flatMap((part) => part.conversations ?? []),
  conversationUpdates: parts.flatMap((part) => part.conversationUpdates ?? []),
  entries: parts.flatMap((part) => part.entries ?? []),
  tasks: parts.flatMap((part) => part.tasks ?? []),
  submissions: parts.flatMap((part) => part.submissions ?? []),
  documents: parts.flatMap((part) => part.documents ?? []),
  jobs: parts.flatMap((part) => part.jobs ?? []),
  jobUpdates: parts.flatMap((part) => part.jobUpdates ?? []),
  jobClaims: parts.flatMap((part) => part.jobClaims ?? []),
  ...parts.reduce<Pick<Commit, "pruneJobs">>(
    (last, { pruneJobs }) => (pruneJobs === undefined ? last : { pruneJobs }),
    {},
  ),
  artifacts: parts.flatMap((part) => part.artifacts ?? []),
  removeArtifacts: parts.flatMap((part) => part.removeArtifacts ?? []),
  removeConversations: parts.flatMap((part) => part.removeConversations ?? []),
})

/** Three conversations with two entries each and a task, for the random commits to work on. */
const beginning: Commit = {
  conversations: [1, 2, 3].map((id) => conversation(as(id), { updatedAt: id, principal: "ann" })),
  entries: [1, 2, 3, 4, 5, 6].map((id) => entry(as(id), as((id % 3) + 1))),
  tasks: [1, 2, 3].map((id) => task(as(id), as(id), { fence: 2 })),
}

/** How often each kind of step comes. */
const weights: Record<Step["kind"], number> = {
  create: 2,
  fork: 4,
  own: 1,
  rename: 2,
  append: 6,
  edit: 2,
  task: 3,
  submit: 3,
  document: 3,
  global: 1,
  job: 4,
  moveJob: 3,
  claimJobs: 2,
  pruneJobs: 1,
  artifact: 2,
  remove: 1,
}

const commitsOf = (fc: typeof FastCheck): FastCheck.Arbitrary<ReadonlyArray<Commit>> => {
  const json = fc
    .jsonValue({ maxDepth: 2 })
    .map((value): Json => JSON.parse(JSON.stringify(value).replaceAll("__proto__", "proto")))
  const kind = fc.oneof(
    ...Object.entries(weights).map(([name, weight]) => ({ weight, arbitrary: fc.constant(name as Step["kind"]) })),
  )
  const small = fc.integer({ min: 1, max: 5 })
  const step = fc.record({ kind, a: small, b: small, c: fc.integer({ min: 1, max: 16 }), json })
  return fc.array(fc.array(step, { minLength: 1, maxLength: 2 }), { minLength: 5, maxLength: 40 }).map((commits) => {
    let entryId = 6
    return [beginning, ...commits.map((steps) => merge(steps.map((one) => toCommit(one, () => ++entryId))))]
  })
}

/** Everything that the port can say about the ids in use. */
const everything = (reads: StoreReads) =>
  Effect.gen(function* () {
    const seen: Array<unknown> = [
      yield* reads.conversations({ principal: null, limit: 100 }),
      yield* reads.conversations({ principal: "ann", limit: 2 }),
      yield* reads.conversations({ principal: null, limit: 3, before: as(2) }),
      yield* reads.openTasks(),
      yield* reads.tasksInDoubt({ limit: 3 }),
      yield* reads.jobs({ limit: 100 }),
      yield* reads.jobCounts(),
    ]
    for (const queue of ["q0", "q1"]) {
      seen.push(
        yield* reads.jobs({ queue, limit: 3 }),
        yield* reads.jobs({ queue, state: "available", limit: 3, before: as(9) }),
        yield* reads.dueAt(queue),
        yield* reads.executingJobs(queue),
        yield* reads.jobByKey(queue, "k1"),
      )
    }
    for (let id = 1; id <= 12; id++) {
      seen.push(
        yield* reads.conversation(as(id)),
        yield* reads.entries(as(id)),
        yield* reads.entries(as(id), { from: as(3), to: as(20), last: 4 }),
        yield* reads.visibleEntries(as(id)),
        yield* reads.visibleEntries(as(id), as(12)),
        yield* reads.contextEntries(as(id)),
        yield* reads.openTasks(as(id)),
        yield* reads.task(as(id)),
        yield* reads.openSubmissions(as(id)),
        yield* reads.submission(as(id)),
        yield* reads.submissionByRequest(as(id), "r1"),
        yield* reads.documents(as(id)),
        yield* reads.globalDocument("pi.live", `${id}`),
        yield* reads.document(as(id)),
        yield* reads.documentsAt(as(id), as(3)),
        yield* reads.documentsAt(as(id), as(id)),
        yield* reads.documentRevisions(as(id), as(5)),
        yield* reads.documentRevisions(as(id), as(100)),
        yield* reads.documentsOf({ scope: "conversation", conversation: as(id), task: null, kind: "pi.live" }),
        yield* reads.findDocument({
          scope: "conversation",
          conversation: as(id),
          task: null,
          kind: "pi.live",
          key: "1",
        }),
        yield* reads.entry(as(id)),
        yield* reads.ownedTasks(as(id)),
        yield* reads.ownedConversations(as(id)),
        yield* reads.taskByRequest(`t${id}`),
        yield* reads.tasksInDoubt({ conversation: as(id), limit: 2 }),
        yield* reads.job(as(id)),
        yield* reads.artifacts(as(id)),
        yield* reads.artifact(as(id), "a1"),
      )
    }
    return seen
  })

/** What the model says to a list of commits: its records, and the refusals by tag. The engine's numbers are given to it. */
const model = (commits: ReadonlyArray<Commit>, numbers: ReadonlyArray<Seq | null>) => {
  let records: Records = noRecords
  let last = 0
  const refusals = commits.map((commit, index) => {
    // What was refused has no number; what it would have had decides whether a document changed since.
    last = numbers[index] ?? last + 1
    const result = applyCommit(records, commit, as<Seq>(last))
    if (Either.isRight(result)) records = result.right
    return Either.isLeft(result) ? result.left._tag : null
  })
  return { records, refusals }
}

const outcome = <E extends { readonly _tag: string }>(effect: Effect.Effect<Seq, E>) =>
  Effect.map(Effect.either(effect), (result) =>
    Either.isRight(result) ? { seq: result.right, refusal: null } : { seq: null, refusal: result.left._tag },
  )

export const properties = ({ describe, it, expect, fc }: TestKit, sessions: Sessions, runs: number): void => {
  const agrees = (write: (session: Session, commits: ReadonlyArray<Commit>) => Effect.Effect<Written>) =>
    fc.assert(
      fc.asyncProperty(commitsOf(fc), (commits) =>
        sessions((session) =>
          Effect.gen(function* () {
            const written = yield* write(session, commits)
            const expected = model(
              commits,
              written.map((one) => one.seq),
            )
            expect(written.map((one) => one.refusal)).toEqual(expected.refusals)
            const numbers = written.flatMap((one) => (one.seq === null ? [] : [one.seq]))
            expect(numbers).toEqual([...new Set(numbers)].sort((x, y) => x - y))
            const wanted = yield* everything(memoryReads(() => expected.records))
            expect(yield* everything(session.store())).toEqual(wanted)
            yield* session.reopen
            expect(yield* everything(session.store())).toEqual(wanted)
          }),
        ),
      ),
      { numRuns: runs },
    )

  describe("any sequence of commits", () => {
    it("leaves what the model leaves, and refuses what it refuses", () =>
      agrees((session, commits) => Effect.forEach(commits, (commit) => outcome(session.commit(commit)))))

    it("leaves the same when the commits arrive together", () =>
      agrees((session, commits) =>
        Effect.forEach(commits, (commit) => outcome(session.store().commit(commit)), { concurrency: "unbounded" }),
      ))
  })
}

type Written = ReadonlyArray<{ readonly seq: Seq | null; readonly refusal: string | null }>
