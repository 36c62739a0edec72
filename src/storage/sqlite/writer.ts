/**
 * The one writer of a database file: only it begins writing transactions on the connection. Rules:
 * 1. `idle → scheduled → (writing → idle | busy → writing)`: what is queued when the writer starts is one group, one transaction; what
 *    comes later waits for the next. There is no delay: a lone commit runs in the same turn of the event loop.
 * 2. A commit is answered only after COMMIT returned. A group is written without savepoints; if one commit of it is refused the
 *    transaction is rolled back and run again with a savepoint each, so that one alone fails. Where the disk refuses, each commit of
 *    the group gets a transaction of its own.
 * 3. Every transaction first checks the owner epoch; if that is not ours any more, all fail `Fenced`, for good.
 * 4. A lock of another program is waited for without blocking the thread, at most {@link busyLimit}.
 * 5. An accepted commit is decided before its caller can be interrupted: it never stays half known.
 */
import { Effect, Exit } from "effect"
import type { Seq } from "../../domain/ids.ts"
import { type CommitError, Fenced } from "../errors.ts"
import type { Commit, IdsByKind } from "../store.ts"
import { type Database, openTimeout } from "./connection.ts"
import { type Counters, openCounters } from "./counters.ts"
import { type EncodedCommit, encode } from "./encode.ts"
import { closed, isBusy, isRejection, unavailable } from "./failures.ts"
import { prepareWrites } from "./writes.ts"

/** Milliseconds for which commits wait while another program holds the write lock. */
const busyLimit = 5000
/** Milliseconds between two attempts while it does. */
const busyPause = 25
/** Commits in one transaction at most, so that one turn of the event loop stays short. */
const groupLimit = 256

type Answer = Exit.Exit<Seq, CommitError>

interface Waiting {
  readonly commit: EncodedCommit
  readonly answer: (effect: Answer) => void
}

export interface Writer {
  readonly epoch: number
  readonly commit: (commit: Commit) => Effect.Effect<Seq, CommitError>
  readonly mint: <K extends keyof IdsByKind>(
    kind: K,
    count: number,
  ) => Effect.Effect<ReadonlyArray<IdsByKind[K]>, CommitError>
  /** Writes what is queued, gives unused ids back, refuses what comes later. */
  readonly close: () => void
}

/** Takes ownership of `db`. Throws the driver's errors. */
export const openWriterOn = (db: Database, location: string): Writer => {
  const counters: Counters = openCounters(db, location)
  db.pragma("busy_timeout = 0")
  const { apply, forget } = prepareWrites(db)
  const begin = db.prepare("BEGIN IMMEDIATE")
  const commitStatement = db.prepare("COMMIT")
  const rollback = db.prepare("ROLLBACK")
  const savepoint = db.prepare("SAVEPOINT one")
  const release = db.prepare("RELEASE one")
  const undo = db.prepare("ROLLBACK TO one")

  let queue: Array<Waiting> = []
  let state: "idle" | "scheduled" | "busy" | "closed" = "idle"
  let fenced: Fenced | null = null
  /** When the wait for another program's lock began, by the monotonic clock; null when there is none. */
  let busySince: number | null = null

  /** Runs `body` in a transaction of our epoch; throws what it throws, with nothing written. */
  const transact = <A>(body: () => A): A => {
    if (fenced !== null) throw fenced
    begin.run()
    try {
      counters.check()
      const result = body()
      commitStatement.run()
      return result
    } catch (cause) {
      if (db.inTransaction) rollback.run()
      forget()
      if (cause instanceof Fenced && cause.what === location) fenced = cause
      throw cause
    }
  }

  const writeTogether = (group: ReadonlyArray<Waiting>): ReadonlyArray<Answer> => {
    let reserved: (() => void) | null = null
    const answers = transact(() => {
      reserved = counters.reserve("seq", group.length)
      const first = counters.take("seq", group.length)
      return group.map(({ commit }, index): Answer => {
        apply(commit, first + index)
        return Exit.succeed((first + index) as Seq)
      })
    })
    settle(reserved)
    return answers
  }

  const writeApart = (group: ReadonlyArray<Waiting>): ReadonlyArray<Answer> => {
    let reserved: (() => void) | null = null
    const answers = transact(() => {
      reserved = counters.reserve("seq", group.length)
      return group.map(({ commit }): Answer => {
        savepoint.run()
        try {
          const seq = counters.take("seq", 1)
          apply(commit, seq)
          release.run()
          return Exit.succeed(seq as Seq)
        } catch (cause) {
          if (!isRejection(cause)) throw cause
          undo.run()
          forget()
          release.run()
          return Exit.fail(cause)
        }
      })
    })
    settle(reserved)
    return answers
  }

  /** One transaction each: for what the disk refused together, since a smaller commit may still fit. Never throws. */
  const writeEach = (group: ReadonlyArray<Waiting>): ReadonlyArray<Answer> =>
    group.flatMap((one) => {
      try {
        return writeTogether([one])
      } catch (cause) {
        return [Exit.fail(isRejection(cause) ? cause : unavailable(location, cause))]
      }
    })

  /** Throws only what stops the whole group before any of it is written: we are fenced, or somebody else holds the lock. */
  const write = (group: ReadonlyArray<Waiting>): ReadonlyArray<Answer> => {
    const stops = (cause: unknown): boolean => cause === fenced || isBusy(cause)
    try {
      return writeTogether(group)
    } catch (cause) {
      if (stops(cause)) throw cause
      if (group.length === 1) return [Exit.fail(isRejection(cause) ? cause : unavailable(location, cause))]
      if (!isRejection(cause)) return writeEach(group)
    }
    try {
      return writeApart(group)
    } catch (cause) {
      if (stops(cause)) throw cause
      return writeEach(group)
    }
  }

  const flush = (): void => {
    while (queue.length > 0) {
      const group = queue.length <= groupLimit ? queue : queue.slice(0, groupLimit)
      let answers: ReadonlyArray<Answer>
      try {
        answers = write(group)
      } catch (cause) {
        if (isBusy(cause) && mayWait()) {
          state = "busy"
          setTimeout(resume, busyPause)
          return
        }
        const failure = Exit.fail(cause instanceof Fenced ? cause : unavailable(location, cause))
        answers = group.map(() => failure)
      }
      busySince = null
      queue = queue === group ? [] : queue.slice(group.length)
      for (let index = 0; index < group.length; index++) {
        const answer = answers[index]
        if (answer !== undefined) group[index]?.answer(answer)
      }
    }
    state = state === "closed" ? "closed" : "idle"
  }

  const mayWait = (): boolean => {
    if (state === "closed") return false
    const now = performance.now()
    busySince ??= now
    return now - busySince < busyLimit
  }

  const resume = (): void => {
    if (state === "closed") return
    state = "scheduled"
    flush()
  }

  const enqueue = (commit: Commit): Effect.Effect<Seq, CommitError> =>
    Effect.async<Seq, CommitError>((answer) => {
      if (state === "closed") {
        answer(closed(location))
        return
      }
      queue.push({ commit: encode(commit), answer })
      if (state === "idle") {
        state = "scheduled"
        schedule(resume)
      }
    })

  const mintNow = (kind: keyof IdsByKind, count: number): ReadonlyArray<number> => {
    if (counters.left(kind) < count) settle(transact(() => counters.reserve(kind, count)))
    const first = counters.take(kind, count)
    return Array.from({ length: count }, (_, index) => first + index)
  }

  const mint = <K extends keyof IdsByKind>(
    kind: K,
    count: number,
    attempts: number,
  ): Effect.Effect<ReadonlyArray<IdsByKind[K]>, CommitError> =>
    Effect.suspend((): Effect.Effect<ReadonlyArray<IdsByKind[K]>, CommitError> => {
      if (state === "closed") return closed(location)
      try {
        // the brand is what minting gives
        return Effect.succeed(mintNow(kind, count) as ReadonlyArray<IdsByKind[K]>)
      } catch (cause) {
        if (cause instanceof Fenced) return cause
        if (isBusy(cause) && attempts > 1) return Effect.delay(mint(kind, count, attempts - 1), busyPause)
        return unavailable(location, cause)
      }
    })

  return {
    epoch: counters.epoch,
    commit: (commit) => Effect.uninterruptible(enqueue(commit)),
    mint: (kind, count) => mint(kind, count, busyLimit / busyPause),
    close: () => {
      if (state === "closed") return
      state = "closed"
      db.pragma(`busy_timeout = ${openTimeout}`)
      flush()
      try {
        transact(() => counters.giveBack())
      } catch {
        // another owner has the counters now, or the disk is full: the rest of the blocks is skipped
      }
    },
  }
}

const settle = (reserved: (() => void) | null): void => reserved?.()

/** The end of the current turn of the event loop: what the ready fibers commit until then shares the transaction. */
const schedule = (run: () => void): void => {
  setImmediate(run)
}
