/** An attached process over a real unix socket: the same sessions, the same failures, and a clear end. */
import { mkdtempSync, statSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Chunk, Deferred, Effect, Exit, Fiber, Logger, LogLevel, Option, Scope, Stream } from "effect"
import type { Event } from "../../src/domain/event.ts"
import { ConversationId, EntryId } from "../../src/domain/ids.ts"
import { text } from "../../src/domain/message.ts"
import { attach } from "../../src/protocols/attach/attach.ts"
import { attachedSessions } from "../../src/protocols/attach/derive.ts"
import { type Peer, renderGreeting } from "../../src/protocols/attach/handshake.ts"
import { relayWatch } from "../../src/protocols/attach/relay.ts"
import { serveAttach } from "../../src/protocols/attach/serve.ts"
import { makeFakeSessions } from "./fake-sessions.ts"

const newPath = () => join(mkdtempSync(join(tmpdir(), "sp-attach-")), "private", "socket")
const peer = (version: string, instance = "one"): Peer => ({ program: "super-pi", version, pid: process.pid, instance })
const conversation = ConversationId.make(1)
const target = { conversationId: conversation }

const setup = (options: { readonly hold?: boolean } = {}) =>
  Effect.gen(function* () {
    const fake = yield* makeFakeSessions(options)
    const path = newPath()
    const serving = yield* Scope.make()
    yield* Scope.extend(serveAttach({ path, sessions: fake.sessions, self: peer("1.0.0") }), serving)
    yield* Effect.addFinalizer(() => Scope.close(serving, Exit.void))
    const attachment = yield* attach({ socket: path, self: peer("1.0.0", "two") })
    return { ...fake, path, serving, attachment, remote: attachment.sessions }
  })

const open = { conversationId: null, agent: { cwd: "/tmp" }, title: null, requestId: null }

describe("an attached process", () => {
  it.scopedLive("has the sessions of the owner, over a socket of this user only", () =>
    Effect.gen(function* () {
      const { remote, path, attachment } = yield* setup()
      expect(attachment.owner).toEqual(peer("1.0.0"))
      expect(statSync(path).mode & 0o777).toBe(0o600)
      expect(statSync(join(path, "..")).mode & 0o777).toBe(0o700)
      const state = yield* remote.open(open)
      expect(state).toMatchObject({ conversation_id: 1, cwd: "/tmp" })
      const receipt = yield* remote.submit({ ...target, content: [text("héllo ✓")], requestId: "a" })
      const settled = yield* remote.awaitSubmission({ ...target, submissionId: receipt.submission_id })
      expect(settled.text).toBe("HÉLLO ✓")
      expect(yield* remote.state(target)).toMatchObject({ entries: 2 })
      expect((yield* remote.list({})).length).toBe(1)
      expect(yield* remote.transcript(target)).toEqual([])
      expect(yield* remote.cancel(target)).toEqual({ cancelled: false })
      expect(yield* remote.configure({ ...target, agent: { model: "m" } })).toMatchObject({ model: "m" })
      expect(yield* remote.retry(target)).toMatchObject({ state: "idle" })
      const note = yield* remote.write({ ...target, kind: "app.note", requestId: "n" })
      expect(note).toMatchObject({ status: "done" })
      expect(yield* remote.write({ ...target, kind: "app.note", requestId: "n" })).toEqual(note)
      const edits = [{ type: "omit" as const, entry: EntryId.make(3) }]
      expect(yield* remote.write({ ...target, edits, head: "self", requestId: null })).toMatchObject({ status: "done" })
      expect(yield* remote.reset({ ...target, handoff: "go on", requestId: null })).toMatchObject({ status: "done" })
      const found = yield* remote.submission({ ...target, submissionId: null, requestId: "n" })
      expect(found).toMatchObject({ submission_id: note.submission_id, request_id: "n" })
      expect(yield* remote.submissions(target)).toEqual([])
      const ended = { ...target, submissionId: note.submission_id }
      expect(yield* Effect.flip(remote.withdraw(ended))).toMatchObject({ _tag: "Refused", rule: "submission_status" })
      const forked = { ...target, entryId: EntryId.make(3), agent: { cwd: "/" }, title: "branch", requestId: null }
      expect(yield* remote.fork(forked)).toMatchObject({ title: "branch", cwd: "/" })
      expect((yield* remote.tree).name).toBe("node")
      expect(yield* remote.remove(target)).toEqual({ removed: true })
    }),
  )

  it.scopedLive("gets the owner's failures as they are, and its faults as a reference", () =>
    Effect.gen(function* () {
      const { remote } = yield* setup()
      expect(yield* Effect.flip(remote.state(target))).toMatchObject({ _tag: "NotFound", what: "conversation 1" })
      yield* remote.open(open)
      const refused = yield* Effect.flip(remote.configure({ ...target, agent: { mode: "auto" } }))
      expect(refused).toMatchObject({ _tag: "Refused", rule: "policy.mode" })
      const fault = yield* Effect.flip(remote.submit({ ...target, content: [text("defect")], requestId: null }))
      expect(fault).toMatchObject({ _tag: "ServiceFailure", code: "defect" })
      expect(JSON.stringify(fault)).not.toContain("secret")
      expect(
        yield* Effect.flip(Stream.runDrain(remote.watch({ conversationId: ConversationId.make(9), after: null }))),
      ).toMatchObject({
        _tag: "NotFound",
      })
      // None of them ended the connection.
      expect(yield* remote.state(target)).toMatchObject({ conversation_id: 1 })
    }).pipe(Logger.withMinimumLogLevel(LogLevel.None)),
  )

  it.scopedLive("sees every event at once, in order, and the end of the stream", () =>
    Effect.gen(function* () {
      const { remote, emit, endWatches } = yield* setup()
      yield* remote.open(open)
      const seen: Array<Event> = []
      const first = yield* Deferred.make<void>()
      const watching = yield* Effect.fork(
        Stream.runForEach(remote.watch({ ...target, after: null }), (event) =>
          Effect.suspend(() => {
            seen.push(event)
            // One event at a time: the next comes only after this one was seen.
            if (event.seq_no < 200) emit(1, { type: "text_delta", text: "é".repeat(event.seq_no) })
            else endWatches(1)
            return Deferred.succeed(first, undefined)
          }),
        ),
      )
      yield* Deferred.await(first)
      yield* Fiber.join(watching)
      expect(seen.map((event) => event.seq_no)).toEqual(Array.from({ length: 201 }, (_, i) => i))
      expect(seen[0]?.type).toBe("snapshot")
    }),
  )

  it.scopedLive("that leaves a watch unread holds up neither its other calls nor the owner", () =>
    Effect.gen(function* () {
      const { remote, emit, watchers } = yield* setup()
      yield* remote.open(open)
      const started = yield* Deferred.make<void>()
      yield* Effect.forkScoped(
        Stream.runForEach(remote.watch({ ...target, after: null }), () =>
          Effect.zipRight(Deferred.succeed(started, undefined), Effect.never),
        ),
      )
      yield* Deferred.await(started)
      // The owner goes on, other calls are answered, and at last the subscription is given up until somebody reads again.
      const burst = Effect.suspend(() => {
        for (let i = 0; i < 500; i++) emit(1, { type: "text_delta", text: "x".repeat(100) })
        return remote.state(target)
      })
      yield* burst.pipe(Effect.repeat({ until: () => watchers(1) === 0 }))
    }),
  )

  it.scopedLive("ends its watch and its calls at the owner when it stops waiting for them", () =>
    Effect.gen(function* () {
      const { remote, watchers } = yield* setup({ hold: true })
      yield* remote.open(open)
      const first = yield* Stream.runHead(remote.watch({ ...target, after: null }))
      expect(Option.getOrThrow(first).type).toBe("snapshot")
      yield* remote.state(target).pipe(Effect.repeat({ until: () => watchers(1) === 0 }))
      const { submission_id } = yield* remote.submit({ ...target, content: [text("a")], requestId: null })
      const waiting = yield* Effect.fork(remote.awaitSubmission({ ...target, submissionId: submission_id }))
      yield* remote.state(target)
      yield* Fiber.interrupt(waiting)
      expect(yield* remote.state(target)).toMatchObject({ queued: [submission_id] })
    }),
  )

  it.scopedLive("learns at once that the owner is gone, in every call and watch that waits", () =>
    Effect.gen(function* () {
      const { remote, serving, attachment } = yield* setup({ hold: true })
      yield* remote.open(open)
      const { submission_id } = yield* remote.submit({ ...target, content: [text("a")], requestId: null })
      const waiting = yield* Effect.fork(
        Effect.flip(remote.awaitSubmission({ ...target, submissionId: submission_id })),
      )
      const watched = yield* Deferred.make<void>()
      const watching = yield* Effect.fork(
        Effect.flip(
          Stream.runForEach(remote.watch({ ...target, after: null }), () => Deferred.succeed(watched, undefined)),
        ),
      )
      yield* Deferred.await(watched)
      yield* Scope.close(serving, Exit.void)
      expect(yield* Fiber.join(waiting)).toMatchObject({ _tag: "OwnerGone" })
      expect(yield* Fiber.join(watching)).toMatchObject({ _tag: "OwnerGone" })
      yield* attachment.gone
      expect(yield* Effect.flip(remote.tree)).toMatchObject({ _tag: "OwnerGone" })
      expect(yield* Effect.flip(attachedSessions(attachment).tree)).toMatchObject({ code: "owner_gone" })
    }),
  )

  it.scopedLive("of another version is told so, by pid and version", () =>
    Effect.gen(function* () {
      const { path } = yield* setup()
      const error = yield* Effect.flip(attach({ socket: path, self: peer("2.0.0") }))
      expect(error).toMatchObject({ _tag: "VersionMismatch", theirs: "1.0.0", ours: "2.0.0", pid: process.pid })
      expect(error.message).toBe(
        `the database is open in process ${process.pid} of super-pi 1.0.0, this is super-pi 2.0.0; end that process or use its version`,
      )
    }),
  )
})

describe("a socket on which no owner answers", () => {
  const listen = (server: Server, path: string) =>
    Effect.acquireRelease(
      Effect.promise(() => new Promise<void>((resolve) => server.listen(path, resolve))),
      () => Effect.sync(() => server.close()),
    )
  const reason = (socket: string) =>
    Effect.map(Effect.flip(attach({ socket, self: peer("1.0.0"), timeoutMs: 50 })), (error) =>
      error._tag === "NotAnswering" ? error.reason : error._tag,
    )

  it.scopedLive("is told apart: absent, refused, silent, a stranger's", () =>
    Effect.gen(function* () {
      const directory = mkdtempSync(join(tmpdir(), "sp-nobody-"))
      expect(yield* reason(join(directory, "absent"))).toBe("absent")
      writeFileSync(join(directory, "file"), "")
      expect(yield* reason(join(directory, "file"))).toBe("refused")
      yield* listen(createServer(), join(directory, "silent"))
      expect(yield* reason(join(directory, "silent"))).toBe("silent")
      yield* listen(
        createServer((socket) => socket.write("SSH-2.0\n")),
        join(directory, "stranger"),
      )
      expect(yield* reason(join(directory, "stranger"))).toBe("stranger")
      yield* listen(
        createServer((socket) => socket.destroy()),
        join(directory, "leaving"),
      )
      expect(yield* reason(join(directory, "leaving"))).toBe("refused")
    }),
  )
})

describe("an owner that stops answering", () => {
  it.scopedLive("is taken for gone after two pings without a sign of life", () =>
    Effect.gen(function* () {
      const path = join(mkdtempSync(join(tmpdir(), "sp-ping-")), "socket")
      let pings = 0
      const server = createServer((socket) => {
        socket.write(renderGreeting(peer("1.0.0")))
        socket.on("data", (bytes) => {
          for (const line of String(bytes).split("\n")) {
            if (line.includes("Ping") && ++pings <= 2) socket.write('{"_tag":"Pong"}\n')
          }
        })
      })
      yield* Effect.acquireRelease(
        Effect.promise(() => new Promise<void>((resolve) => server.listen(path, resolve))),
        () => Effect.sync(() => server.close()),
      )
      const attachment = yield* attach({ socket: path, self: peer("1.0.0"), pingMs: 10 })
      yield* attachment.gone
      expect(pings).toBeGreaterThanOrEqual(2)
    }),
  )
})

describe("a relayed watch", () => {
  it.scopedLive("gives a reader that fell behind a fresh snapshot in the place of what it missed", () =>
    Effect.gen(function* () {
      const { sessions, emit } = yield* makeFakeSessions({})
      yield* sessions.open(open)
      let behind = true
      const seen = yield* relayWatch(sessions, { ...target, after: null }, 10).pipe(
        Stream.tap(() =>
          Effect.suspend(() => {
            if (!behind) return Effect.void
            behind = false
            for (let i = 0; i < 50; i++) emit(1, { type: "text_delta", text: `${i}` })
            // The relay reads on while its reader is busy here.
            return Effect.yieldNow().pipe(Effect.repeatN(200))
          }),
        ),
        Stream.take(2),
        Stream.runCollect,
      )
      expect(Chunk.toReadonlyArray(seen).map((event) => [event.type, event.seq_no])).toEqual([
        ["snapshot", 0],
        ["snapshot", 50],
      ])
    }),
  )

  it.scopedLive("passes everything on to a reader that keeps up, then the end", () =>
    Effect.gen(function* () {
      const { sessions, emit, endWatches } = yield* makeFakeSessions({})
      yield* sessions.open(open)
      const seen = yield* relayWatch(sessions, { ...target, after: null }, 10).pipe(
        Stream.tap((event) =>
          Effect.sync(() => (event.seq_no < 100 ? emit(1, { type: "text_delta", text: "." }) : endWatches(1))),
        ),
        Stream.runCollect,
      )
      expect(Chunk.size(seen)).toBe(101)
    }),
  )
})
