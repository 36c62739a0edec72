/**
 * The attached side: a `Sessions` over the owner's unix socket. Load it lazily: it brings `@effect/rpc`'s client. A connection is used
 * until it ends and never again; who wants to go on after that attaches anew (see `takeover.ts`).
 */
import { createConnection, type Socket } from "node:net"
import * as RpcClient from "@effect/rpc/RpcClient"
import { RpcClientError } from "@effect/rpc/RpcClientError"
import type { FromServerEncoded } from "@effect/rpc/RpcMessage"
import { Cause, Deferred, Effect, FiberSet, Option, Schedule, type Scope, Stream } from "effect"
import { SessionRpcs } from "../../actors/contract.ts"
import { errorCode } from "../../domain/error-code.ts"
import { type Failure, ServiceFailure } from "../../domain/failure.ts"
import { type AttachFailure, type Attachment, NotAnswering, OwnerGone, type SessionsOver } from "./attachment.ts"
import { compare, maxGreeting, type Peer, readGreeting, renderGreeting } from "./handshake.ts"
import { makeWire, receive, type Wire } from "./wire.ts"

export interface AttachOptions {
  readonly socket: string
  readonly self: Peer
  /** How long the owner may take to greet, in milliseconds; default 2,000. */
  readonly timeoutMs?: number
  /** Milliseconds between two pings, after two of which without a sign of life the owner is taken for gone; default 10,000. */
  readonly pingMs?: number
}

/** Milliseconds between two pings. */
const defaultPingMs = 10_000
/**
 * Pings in a row without a sign of life after which an owner is taken for gone. More than one, since a process that was stopped itself
 * finds its timer before the answers that wait for it.
 */
const missesLimit = 2

const ping = `${JSON.stringify({ _tag: "Ping" })}\n`

const reasonOf = (cause: unknown): NotAnswering["reason"] => {
  const code = errorCode(cause)
  if (code === "ENOENT") return "absent"
  if (code === "EACCES" || code === "EPERM") return "forbidden"
  return "refused"
}

const connect = (path: string): Effect.Effect<Socket, NotAnswering, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.async<Socket, NotAnswering>((resume) => {
      const socket = createConnection({ path })
      const failed = (cause: unknown) => resume(new NotAnswering({ socket: path, reason: reasonOf(cause) }))
      socket.once("error", failed)
      socket.once("connect", () => {
        socket.off("error", failed)
        // Nobody may miss an error between here and the wire's own listener.
        socket.on("error", () => undefined)
        resume(Effect.succeed(socket))
      })
      return Effect.sync(() => socket.destroy())
    }),
    (socket) => Effect.sync(() => socket.destroy()),
  )

const greet = (wire: Wire, options: AttachOptions): Effect.Effect<Peer, AttachFailure> =>
  Effect.gen(function* () {
    wire.outlet.write(renderGreeting(options.self))
    const line = yield* Effect.timeoutFail(wire.line, {
      duration: options.timeoutMs ?? 2000,
      onTimeout: () => new NotAnswering({ socket: options.socket, reason: "silent" }),
    })
    // It left while we came.
    if (line === null) return yield* new NotAnswering({ socket: options.socket, reason: "refused" })
    const peer = line.length > maxGreeting ? null : readGreeting(line)
    if (peer === null) return yield* new NotAnswering({ socket: options.socket, reason: "stranger" })
    return yield* compare(options.self, peer)
  })

const isFromServer = (message: { readonly _tag: string }): message is FromServerEncoded =>
  ["Chunk", "Exit", "Defect", "Pong"].includes(message._tag)

/** Attaches to the owner on a socket until the scope closes. */
export const attach = (options: AttachOptions): Effect.Effect<Attachment, AttachFailure, Scope.Scope> =>
  Effect.gen(function* () {
    const wire = makeWire(yield* connect(options.socket))
    const owner = yield* greet(wire, options)
    const gone = yield* Deferred.make<void>()
    const lost = new RpcClientError({ reason: "Protocol", message: "the owner of the database is gone" })
    let alive = true
    let misses = 0

    const protocol = yield* RpcClient.Protocol.make((write) =>
      Effect.gen(function* () {
        // A chunk waits for its reader, and nothing else may wait for it: each gets a fiber. Its acknowledgement holds back the next one.
        const chunks = yield* FiberSet.makeRuntime<never>()
        const read = receive(wire, isFromServer, (message) => {
          misses = 0
          return message._tag === "Chunk" ? Effect.sync(() => void chunks(write(message))) : write(message)
        })
        const watchLife = Effect.suspend(() => {
          if (misses >= missesLimit) return Effect.fail("silent" as const)
          misses++
          // Not `send`, which waits for room: an owner that does not read is one that may be gone.
          return Effect.sync(() => wire.outlet.write(ping))
        }).pipe(Effect.repeat(Schedule.spaced(options.pingMs ?? defaultPingMs)), Effect.ignore)
        const end = Effect.gen(function* () {
          alive = false
          yield* wire.close
          yield* write({ _tag: "ClientProtocolError", error: lost })
          yield* Deferred.succeed(gone, undefined)
        })
        yield* Effect.raceFirst(Effect.raceFirst(read, wire.outlet.closed), watchLife).pipe(
          Effect.zipRight(end),
          Effect.forkScoped,
        )
        return {
          send: (message: object) => Effect.suspend(() => (alive ? wire.send(message) : Effect.fail(lost))),
          supportsAck: true,
          supportsTransferables: false,
        }
      }),
    )
    const client = yield* Effect.provideService(
      RpcClient.make(SessionRpcs, { disableTracing: true }),
      RpcClient.Protocol,
      protocol,
    )

    /** What a call failed with: one of the five failures, or the owner is gone. */
    const translate = (cause: Cause.Cause<Failure | RpcClientError>): Effect.Effect<never, Failure | OwnerGone> => {
      const failure = Option.getOrNull(Cause.failureOption(cause))
      if (failure === null) {
        // The owner interrupted the call (it is leaving): that connection has no future.
        if (Cause.isInterruptedOnly(cause)) return Effect.zipRight(wire.close, new OwnerGone())
        const detail = "the owner of the database answered something unexpected; update super-pi and restart it"
        return Effect.zipRight(
          Effect.logError("attached call failed", cause),
          new ServiceFailure({ code: "protocol", detail, reference: "attach" }),
        )
      }
      return failure._tag === "RpcClientError" ? new OwnerGone() : Effect.fail(failure)
    }
    const call = <A>(effect: Effect.Effect<A, Failure | RpcClientError>) => Effect.catchAllCause(effect, translate)

    const sessions: SessionsOver<OwnerGone> = {
      open: (payload) => call(client.Open(payload)),
      openNamed: (payload) => call(client.OpenNamed(payload)),
      setName: (payload) => call(client.SetName(payload)),
      findNamed: (payload) => call(client.FindNamed(payload)),
      listNamed: (payload) => call(client.ListNamed(payload)),
      submit: (payload) => call(client.Submit(payload)),
      write: (payload) => call(client.Write(payload)),
      reset: (payload) => call(client.Reset(payload)),
      withdraw: (payload) => call(client.Withdraw(payload)),
      fork: (payload) => call(client.Fork(payload)),
      submission: (payload) => call(client.ReadSubmission(payload)),
      submissions: (payload) => call(client.ListSubmissions(payload)),
      awaitSubmission: (payload) => call(client.AwaitSubmission(payload)),
      watch: (payload) =>
        client
          .Watch(payload, { streamBufferSize: 256 })
          .pipe(Stream.catchAllCause((cause) => Stream.fromEffect(translate(cause)))),
      cancel: (payload) => call(client.Cancel(payload)),
      state: (payload) => call(client.State(payload)),
      configure: (payload) => call(client.Configure(payload)),
      list: (payload) => call(client.List(payload)),
      transcript: (payload) => call(client.Transcript(payload)),
      remove: (payload) => call(client.Remove(payload)),
      compact: (payload) => call(client.Compact(payload)),
      retry: (payload) => call(client.Retry(payload)),
      effects: (payload) => call(client.Effects(payload)),
      settleEffect: (payload) => call(client.SettleEffect(payload)),
      checkpoints: (payload) => call(client.Checkpoints(payload)),
      undo: (payload) => call(client.Undo(payload)),
      harnesses: call(Effect.suspend(() => client.ListHarnesses())),
      why: (payload) => call(client.Why(payload)),
      questions: (payload) => call(client.Questions(payload)),
      answer: (payload) => call(client.Answer(payload)),
      queues: call(Effect.suspend(() => client.ListQueues())),
      changeQueue: (payload) => call(client.ChangeQueue(payload)),
      tasks: (payload) => call(client.ListTasks(payload)),
      task: (payload) => call(client.ReadTask(payload)),
      changeTask: (payload) => call(client.ChangeTask(payload)),
      addMcpServers: (payload) => call(client.AddMcpServers(payload)),
      mcpServers: (payload) => call(client.ListMcpServers(payload)),
      restartMcpServer: (payload) => call(client.RestartMcpServer(payload)),
      tree: call(Effect.suspend(() => client.Tree())),
    }
    return { owner, sessions, gone: Deferred.await(gone) }
  })
