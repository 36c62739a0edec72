/** The takeover within one process: what callers see while owners come and go. */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Logger, LogLevel, Scope, Stream } from "effect"
import type { SessionsService } from "../../src/actors/sessions.ts"
import type { Event } from "../../src/domain/event.ts"
import { NotFound } from "../../src/domain/failure.ts"
import { ConversationId } from "../../src/domain/ids.ts"
import { type Attachment, NotAnswering, OwnerGone } from "../../src/protocols/attach/attachment.ts"
import type { Holder } from "../../src/protocols/attach/election.ts"
import { type HeldElsewhere, type TakeoverOptions, takeover } from "../../src/protocols/attach/takeover.ts"
import { makeFakeSessions } from "./fake-sessions.ts"

const held: HeldElsewhere = {
  _tag: "OwnedElsewhere",
  pid: 7,
  host: "here",
  since: 0,
  program: "super-pi",
  socket: "/s",
}
const target = { conversationId: ConversationId.make(1) }
const open = { conversationId: null, agent: {}, title: null, requestId: null }

class Broken {
  readonly _tag = "Broken"
  readonly message = "the disk is full"
}

/** An owner elsewhere, made of a local service, that can go. */
const ownerElsewhere = (sessions: SessionsService, instance: string) =>
  Effect.map(Deferred.make<void>(), (gone) => {
    const leave = Deferred.succeed(gone, undefined)
    const lost = Effect.zipRight(Deferred.await(gone), new OwnerGone())
    const attachment: Attachment = {
      owner: { program: "super-pi", version: "1", pid: 7, instance },
      gone: Deferred.await(gone),
      sessions: {
        ...sessions,
        list: (payload) => Effect.raceFirst(lost, sessions.list(payload)),
        state: () => Effect.zipRight(Deferred.await(gone), new OwnerGone()),
        remove: (payload) => Effect.zipRight(Effect.zipRight(sessions.remove(payload), leave), new OwnerGone()),
        open: (payload) => Effect.zipRight(Effect.zipRight(sessions.open(payload), leave), new OwnerGone()),
        write: (payload) => Effect.zipRight(Effect.zipRight(sessions.write(payload), leave), new OwnerGone()),
        reset: (payload) => Effect.zipRight(Effect.zipRight(sessions.reset(payload), leave), new OwnerGone()),
        fork: (payload) => Effect.zipRight(Effect.zipRight(sessions.fork(payload), leave), new OwnerGone()),
        watch: (payload) => Stream.merge(sessions.watch(payload), Stream.fromEffect(lost)),
      },
    }
    return { attachment, leave }
  })

const options = (given: Partial<TakeoverOptions<string, Broken, Broken>>): TakeoverOptions<string, Broken, Broken> => ({
  claim: Effect.succeed("lease"),
  own: () => Effect.map(makeFakeSessions({ name: "own" }), ({ sessions }) => sessions),
  serve: () => Effect.void,
  attach: () => new NotAnswering({ socket: "/s", reason: "absent" }),
  ...given,
})

describe("a process that owns", () => {
  it.scopedLive("stops serving before it stops its node, and its node before it gives the lease back (E8)", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const resource = (name: string) =>
        Effect.acquireRelease(
          Effect.sync(() => void log.push(`+${name}`)),
          () => Effect.sync(() => void log.push(`-${name}`)),
        )
      const scope = yield* Scope.make()
      const served = yield* Deferred.make<void>()
      yield* Scope.extend(
        takeover(
          options({
            claim: Effect.as(resource("lease"), "lease"),
            own: () =>
              Effect.zipRight(
                resource("node"),
                Effect.map(makeFakeSessions({}), ({ sessions }) => sessions),
              ),
            serve: () => Effect.zipRight(resource("socket"), Deferred.succeed(served, undefined)),
          }),
        ),
        scope,
      )
      yield* Deferred.await(served)
      yield* Scope.close(scope, Exit.void)
      expect(log).toEqual(["+lease", "+node", "+socket", "-socket", "-node", "-lease"])
    }),
  )

  it.scopedLive("works also when it cannot serve others", () =>
    Effect.gen(function* () {
      const api = yield* takeover(options({ serve: () => Effect.fail({ message: "path too long" }) }))
      expect((yield* api.tree).name).toBe("own")
    }).pipe(Logger.withMinimumLogLevel(LogLevel.None)),
  )

  it.scopedLive("gives the lease back when its node does not start, and fails with that error (E6)", () =>
    Effect.gen(function* () {
      let leases = 0
      const claim = Effect.acquireRelease(
        Effect.sync(() => `${++leases}`),
        () => Effect.sync(() => leases--),
      )
      const error = yield* Effect.flip(takeover(options({ claim, own: () => Effect.fail(new Broken()) })))
      expect(error._tag).toBe("Broken")
      expect(leases).toBe(0)
    }),
  )

  it.scopedLive("passes a fault of the node on instead of waiting for ever", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(takeover(options({ own: () => Effect.die("bug") })))
      expect(Exit.isFailure(exit)).toBe(true)
    }),
  )

  it.scopedLive("fails calls once it has left", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const api = yield* Scope.extend(takeover(options({})), scope)
      yield* Scope.close(scope, Exit.void)
      expect(yield* Effect.flip(api.tree)).toMatchObject({ _tag: "ServiceFailure", code: "closed" })
    }),
  )
})

describe("a process that is attached", () => {
  /** Held by others in turn; afterwards the lease is free. */
  const attachedTo = (...attachments: ReadonlyArray<Attachment>) => {
    let met = 0
    return options({
      claim: Effect.suspend(() =>
        met < attachments.length ? Effect.fail({ ...held, pid: 7 + met }) : Effect.succeed("lease"),
      ),
      attach: () =>
        Effect.suspend(() => {
          const attachment = attachments[met++]
          return attachment === undefined
            ? new NotAnswering({ socket: "/s", reason: "absent" })
            : Effect.succeed(attachment)
        }),
    })
  }

  it.scopedLive("repeats a call in flight on the owner after the next (E9)", () =>
    Effect.gen(function* () {
      const fake = yield* makeFakeSessions({})
      yield* fake.sessions.open(open)
      const first = yield* ownerElsewhere(fake.sessions, "a")
      const second = yield* ownerElsewhere(fake.sessions, "b")
      const api = yield* takeover({
        ...attachedTo(first.attachment, second.attachment),
        own: () => Effect.succeed(fake.sessions),
      })
      const calling = yield* Effect.fork(api.state(target))
      yield* first.leave
      yield* second.leave
      expect(yield* Fiber.join(calling)).toMatchObject({ conversation_id: 1 })
    }),
  )

  it.scopedLive("opens once under the request id that it made, and removes once (E9)", () =>
    Effect.gen(function* () {
      const fake = yield* makeFakeSessions({})
      const first = yield* ownerElsewhere(fake.sessions, "a")
      const second = yield* ownerElsewhere(fake.sessions, "b")
      const api = yield* takeover({
        ...attachedTo(first.attachment, second.attachment),
        own: () => Effect.succeed(fake.sessions),
      })
      expect(yield* api.open(open)).toMatchObject({ conversation_id: 1 })
      expect(yield* api.remove(target)).toEqual({ removed: true })
      expect(yield* fake.sessions.list({})).toEqual([])
      expect(yield* Effect.flip(api.remove(target))).toEqual(new NotFound({ what: "conversation 1" }))
    }),
  )

  it.scopedLive("writes, resets and forks once under the request id that it made (E9)", () =>
    Effect.gen(function* () {
      const fake = yield* makeFakeSessions({})
      yield* fake.sessions.open(open)
      const owners = [
        yield* ownerElsewhere(fake.sessions, "a"),
        yield* ownerElsewhere(fake.sessions, "b"),
        yield* ownerElsewhere(fake.sessions, "c"),
      ]
      const api = yield* takeover({
        ...attachedTo(...owners.map((one) => one.attachment)),
        own: () => Effect.succeed(fake.sessions),
      })
      const write = yield* api.write({ ...target, kind: "app.note", requestId: null })
      const reset = yield* api.reset({ ...target, handoff: null, requestId: null })
      const fork = yield* api.fork({ ...target, entryId: null, agent: {}, title: null, requestId: null })
      // Each was carried out by the owner that went, and asked for again of the next one.
      expect(fake.calls.filter((name) => ["write", "reset", "fork"].includes(name))).toEqual(
        expect.arrayContaining(["write", "write", "reset", "reset", "fork", "fork"]),
      )
      expect(write.submission_id).not.toBe(reset.submission_id)
      expect(fork.conversation_id).toBe(Number(reset.submission_id) + 1)
      expect(yield* fake.sessions.list({})).toHaveLength(2)
    }),
  )

  it.scopedLive("goes on watching: behind what it saw at the same owner, from a marked snapshot at another (E10)", () =>
    Effect.gen(function* () {
      const fake = yield* makeFakeSessions({})
      const later = yield* makeFakeSessions({})
      for (const sessions of [fake.sessions, later.sessions]) yield* sessions.open(open)
      const first = yield* ownerElsewhere(fake.sessions, "a")
      const again = yield* ownerElsewhere(fake.sessions, "a")
      const api = yield* takeover({
        ...attachedTo(first.attachment, again.attachment),
        own: () => Effect.succeed(later.sessions),
      })
      const seen: Array<string> = []
      const actions = new Map<string, Effect.Effect<unknown>>([
        ["snapshot 0", Effect.sync(() => fake.emit(1, { type: "text_delta", text: "one" }))],
        [
          "text_delta 1",
          Effect.zipRight(
            first.leave,
            Effect.sync(() => fake.emit(1, { type: "text_delta", text: "two" })),
          ),
        ],
        ["text_delta 2", again.leave],
      ])
      yield* api.watch({ ...target, after: null }).pipe(
        Stream.tap((event: Event) => {
          const name = `${event.type} ${event.seq_no}`
          seen.push(name)
          const action = actions.get(name) ?? Effect.void
          actions.delete(name)
          return action
        }),
        Stream.take(5),
        Stream.runDrain,
      )
      expect(seen).toEqual(["snapshot 0", "text_delta 1", "text_delta 2", "stream_reset 0", "snapshot 0"])
    }),
  )
})

describe("a process that can neither own nor attach", () => {
  it.scopedLive("fails naming the holder, and looks again at the next call (E7)", () =>
    Effect.gen(function* () {
      const fake = yield* makeFakeSessions({})
      const owner = yield* ownerElsewhere(fake.sessions, "a")
      let answers: "attaches" | "forbidden" = "attaches"
      let free = false
      const api = yield* takeover(
        options({
          claim: Effect.suspend(() => (free ? Effect.succeed("lease") : Effect.fail(held))),
          attach: (holder: Holder) =>
            Effect.suspend(() =>
              answers === "attaches"
                ? Effect.succeed(owner.attachment)
                : new NotAnswering({ socket: holder.socket, reason: "forbidden" }),
            ),
        }),
      )
      answers = "forbidden"
      const calling = yield* Effect.fork(Effect.flip(api.state(target)))
      yield* owner.leave
      const failure = yield* Fiber.join(calling)
      expect(failure).toMatchObject({ _tag: "ServiceFailure", code: "database_held", reference: "process 7" })
      expect(failure.message).toContain("held by super-pi (process 7 on here")
      expect(yield* Effect.flip(api.list({}))).toMatchObject({ code: "database_held" })
      free = true
      expect((yield* api.tree).name).toBe("own")
    }),
  )
})
