/**
 * The one writer of a node, on a connection of its own. Rules:
 * 1. `idle → scheduled → working → idle`: what is queued when it works is one group, one call, one transaction; what comes while that is
 *    under way goes with the next. There is no delay: a lone commit is sent in the same turn of the event loop.
 * 2. A commit is answered only after the server answered. A group is written together; if one commit of it is refused everything is rolled
 *    back and written again apart, so that one alone fails. Where the server gives up, each commit of the group is sent by itself.
 * 3. No answer is ever guessed: when the connection breaks, the next one first reads what the group came to, and sends it again if
 *    nothing of it was written (`link.ts`). A commit that was sent therefore waits for as long as the server is away.
 * 4. A commit that was not sent waits at most for the writer's patience, and then fails with nothing written.
 * 5. Every transaction proves that the node was not fenced off; when it was, all fail `Fenced`, for good.
 * 6. An accepted commit is decided before its caller can be interrupted: it never stays half known.
 */
import { Effect, Exit } from "effect"
import type { Seq } from "../../domain/ids.ts"
import { type CommitError, Fenced, StorageUnavailable } from "../errors.ts"
import type { EncodedCommit } from "./encode.ts"
import { isDisconnected, sqlState, unavailable } from "./failures.ts"
import { type Answer, answersOf, functionCall, plainGroup, refusalOf } from "./group.ts"
import { type Link, type LinkConfig, openLink } from "./link.ts"
import { isUnfit } from "./plain.ts"
import { end, type NodeIdentity, type Resumption, register, resume } from "./registration.ts"
import { locationOf, type PostgresSettings } from "./settings.ts"

/** Commits in one call at most, so that a refusal does not cost much. */
const groupLimit = 256
/** Milliseconds between two attempts to connect. */
const connectPause = 50
/** How often commits that are in the way of another node's are tried. */
const raceLimit = 8
/** Connections that one group may lose before it is given up, with nothing of it written. */
const lossLimit = 10
/** SQLSTATEs of those: unique rules that were free a moment ago, a deadlock, a serialization failure. */
const races: ReadonlySet<string> = new Set(["23505", "40P01", "40001"])

export interface WriterOptions {
  readonly settings: PostgresSettings
  readonly config: LinkConfig
  readonly node: NodeIdentity
  /** Fences off every other node. */
  readonly alone: boolean
  /** Milliseconds for which what was not sent waits while the server is away. */
  readonly patienceMs: number
}

export interface Writer {
  readonly epoch: number
  readonly commit: (encode: () => EncodedCommit) => Effect.Effect<Seq, CommitError>
  /** Runs something on the connection in its turn; again where the connection breaks, so it must bear that. */
  readonly call: <A>(run: (link: Link) => Promise<Exit.Exit<A, CommitError>>) => Effect.Effect<A, CommitError>
  /** Writes what is queued, ends the epoch, refuses what comes later. */
  readonly close: () => Promise<void>
}

interface Waiting {
  readonly since: number
  readonly refuse: (error: CommitError) => void
}

type Work = Waiting &
  (
    | { readonly type: "commit"; readonly commit: EncodedCommit; readonly answer: (answer: Answer) => void }
    | { readonly type: "call"; readonly run: (link: Link) => Promise<void> }
  )

type CommitWork = Extract<Work, { type: "commit" }>

const detailOf = (cause: unknown): string =>
  typeof cause === "object" && cause !== null && "detail" in cause ? String(cause.detail) : "{}"

/** Registers the node and opens its writer; rejects with the driver's errors. */
export const openWriter = async (options: WriterOptions): Promise<Writer> => {
  const { alone, config, node, patienceMs, settings } = options
  const location = locationOf(settings)
  const first = await openLink(config)
  const epoch = await register(first, node, alone).catch(async (cause: unknown) => {
    await first.close()
    throw cause
  })

  let link: Link = first
  let resumed: Resumption = { group: 0, answers: "[]", fenced: null }
  let queue: Array<Work> = []
  let state: "idle" | "scheduled" | "working" = "idle"
  let working: Promise<void> = Promise.resolve()
  let fenced: Fenced | null = null
  /** When closing began, by the monotonic clock. */
  let closing: number | null = null
  let groups = 0

  const closed = () => new StorageUnavailable({ location, cause: "the store is closed", advice: "Open it again" })
  const isPatient = (since: number): boolean => performance.now() - since < patienceMs

  /** Refuses what has waited for too long, or everything that waits. */
  const refuseWaiting = (error: CommitError, which: (work: Work) => boolean): void => {
    const refused = queue.filter(which)
    if (refused.length === 0) return
    queue = queue.filter((work) => !which(work))
    for (const work of refused) work.refuse(error)
  }

  /** The connection, a new one where it is lost; null when it is not wanted any more. */
  const linked = async (wanted: () => boolean): Promise<Link | null> => {
    if (link.alive()) return link
    let why = new StorageUnavailable({
      location,
      cause: "the connection was lost",
      advice: "Work goes on when the server is back",
    })
    const expire = () => refuseWaiting(why, (work) => !isPatient(work.since))
    const watch = setInterval(expire, connectPause)
    try {
      for (;;) {
        expire()
        if (!wanted() || (closing !== null && !isPatient(closing))) return null
        try {
          link = await connected()
          return link
        } catch (cause) {
          why = unavailable(location, cause)
          await new Promise((next) => setTimeout(next, connectPause))
        }
      }
    } finally {
      clearInterval(watch)
    }
  }

  const connected = async (): Promise<Link> => {
    const next = await openLink(config)
    try {
      resumed = await resume(next, settings, epoch)
      fenced ??= resumed.fenced
      return next
    } catch (cause) {
      await next.close()
      throw cause
    }
  }

  /** Whether it says that this connection is of no use any more. Notes when the node was fenced off. */
  const isLost = (cause: unknown): boolean => {
    const sql = sqlState(cause)
    if (sql === "SP002") {
      const { current }: { current: number } = JSON.parse(detailOf(cause))
      fenced = new Fenced({ what: location, held: epoch, current })
    }
    const lost = isDisconnected(cause) || sql === "SP003"
    if (lost) void link.close()
    return lost
  }

  /** Sends a group until the server decided; throws what it refused the whole group for, with nothing written. */
  const send = async (group: ReadonlyArray<CommitWork>, apart: boolean): Promise<ReadonlyArray<Answer>> => {
    const number = ++groups
    const since = performance.now()
    const commits = group.map((work) => work.commit)
    const plain = apart ? null : plainGroup(commits)
    let statement = plain ?? functionCall(commits, apart)
    let sent = false
    let losses = 0
    for (;;) {
      const on = await linked(() => sent || isPatient(since))
      if (on === null) throw sent ? undecided() : closed()
      if (sent && resumed.group === number) return answersOf(resumed.answers)
      if (fenced !== null) throw fenced
      try {
        sent = true
        const [row] = await on.query(statement.sql, [epoch, on.number, number, ...statement.values], statement.name)
        return answersOf(String(row?.answers))
      } catch (cause) {
        if (statement === plain && isUnfit(cause)) {
          statement = functionCall(commits, apart)
          continue
        }
        if (!isLost(cause)) throw fenced ?? cause
        // a server that ends over it each time would do so again
        if (++losses === lossLimit) return undoneBy(cause, number)
      }
    }
  }

  const undoneBy = async (cause: unknown, number: number): Promise<ReadonlyArray<Answer>> => {
    if ((await linked(() => true)) === null) throw undecided()
    if (resumed.group === number) return answersOf(resumed.answers)
    throw unavailable(location, cause)
  }

  const undecided = () =>
    new StorageUnavailable({
      location,
      cause: "the store was closed while the server was away, so it is not known whether this commit was written",
      advice: "Read what is there before trying again",
    })

  const write = async (group: ReadonlyArray<CommitWork>): Promise<ReadonlyArray<Answer>> => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await send(group, attempt > 1)
      } catch (cause) {
        if (cause instanceof Fenced || cause instanceof StorageUnavailable) return group.map(() => Exit.fail(cause))
        const sql = sqlState(cause)
        if (sql === "SP001" && group.length === 1) return [Exit.fail(refusalOf(JSON.parse(detailOf(cause))))]
        if (sql === "SP001" || (races.has(sql) && attempt < raceLimit)) continue
        if (group.length === 1) return [Exit.fail(unavailable(location, cause))]
        const answers: Array<Answer> = []
        for (const one of group) answers.push(...(await write([one])))
        return answers
      }
    }
  }

  /** The next group: the commits before the next call. */
  const take = (): ReadonlyArray<CommitWork> => {
    const group: Array<CommitWork> = []
    for (const work of queue) {
      if (work.type !== "commit" || group.length === groupLimit) break
      group.push(work)
    }
    queue = queue.slice(group.length)
    return group
  }

  const step = async (): Promise<void> => {
    if (fenced !== null) return refuseWaiting(fenced, () => true)
    const on = await linked(() => queue.length > 0)
    if (on === null) return refuseWaiting(closed(), () => true)
    if (fenced !== null) return
    const [next] = queue
    if (next?.type === "call") {
      queue = queue.slice(1)
      await next.run(on).catch((cause: unknown) => {
        if (isLost(cause)) queue = [next, ...queue]
        else next.refuse(fenced ?? unavailable(location, cause))
      })
      return
    }
    const group = take()
    if (group.length === 0) return
    const answers = await write(group)
    for (const [index, work] of group.entries()) work.answer(answers[index] ?? Exit.fail(closed()))
  }

  const work = async (): Promise<void> => {
    state = "working"
    while (queue.length > 0) await step()
    state = "idle"
  }

  const enqueue = (one: Work): void => {
    queue.push(one)
    if (state !== "idle") return
    state = "scheduled"
    working = new Promise((done) => setImmediate(() => work().then(done)))
  }

  const open = Effect.suspend((): Effect.Effect<void, CommitError> => {
    if (closing !== null) return closed()
    return fenced ?? Effect.void
  })

  return {
    epoch,
    commit: (encode) =>
      Effect.uninterruptible(
        Effect.zipRight(
          open,
          Effect.suspend(() => {
            const commit = encode()
            return Effect.async<Seq, CommitError>((answer) => {
              const refuse = (error: CommitError) => answer(Exit.fail(error))
              enqueue({ type: "commit", commit, answer, refuse, since: performance.now() })
            })
          }),
        ),
      ),
    call: <A>(run: (link: Link) => Promise<Exit.Exit<A, CommitError>>) =>
      Effect.zipRight(
        open,
        Effect.async<A, CommitError>((answer) => {
          const refuse = (error: CommitError) => answer(Exit.fail(error))
          enqueue({ type: "call", run: async (on) => answer(await run(on)), refuse, since: performance.now() })
        }),
      ),
    close: async () => {
      if (closing !== null) return
      closing = performance.now()
      await working
      if (fenced === null && link.alive()) await end(link, epoch).catch(() => undefined)
      await link.close()
    },
  }
}
