/** The three transports: who may connect, what becomes of the socket file, what stdout carries. */
import { spawn } from "node:child_process"
import { existsSync, lstatSync, mkdtempSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { serveTcp, serveUnix } from "../../src/protocols/jsonrpc/serve.ts"
import { bundle } from "./bundle.ts"
import { makeFakeSessions } from "./fake-sessions.ts"
import { connect, lineClient } from "./line-client.ts"
import { protocolService } from "./service.ts"

const scratch = () => join(mkdtempSync(join(tmpdir(), "sp-serve-")), "socket")

const service = Effect.map(makeFakeSessions({}), ({ sessions }) => protocolService(sessions))

describe("a unix socket", () => {
  it.scopedLive("has mode 0600, serves many clients, and goes away with its server", () =>
    Effect.gen(function* () {
      const path = scratch()
      const scope = yield* Scope.make()
      const served = yield* service
      yield* Scope.extend(serveUnix(path, served), scope)
      expect(lstatSync(path).mode & 0o777).toBe(0o600)
      const clients = yield* Effect.promise(() => Promise.all([connect(path), connect(path)]))
      for (const client of clients) {
        expect((yield* Effect.promise(() => client.request("session.open"))).result).toHaveProperty("conversation_id")
      }
      yield* Scope.close(scope, Exit.void)
      expect(existsSync(path)).toBe(false)
      for (const client of clients) expect(yield* Effect.promise(() => client.next())).toBeNull()
    }),
  )

  it.scopedLive("replaces the file of a server that is dead, and leaves one that answers alone", () =>
    Effect.gen(function* () {
      const path = scratch()
      const served = yield* service
      // A dead server's file: one that was moved away before its server closed.
      yield* Effect.promise(
        () =>
          new Promise<void>((resolve) => {
            const dead = createServer().listen(`${path}.old`, () => {
              renameSync(`${path}.old`, path)
              dead.close(() => resolve())
            })
          }),
      )
      expect(lstatSync(path).isSocket()).toBe(true)
      yield* serveUnix(path, served)
      const second = yield* Effect.flip(serveUnix(path, served))
      expect(second).toMatchObject({ _tag: "ListenFailed", address: path, code: "EADDRINUSE" })
      expect(second.message).toBe(`${path}: already in use; stop the other server or choose another address`)
      const client = yield* Effect.promise(() => connect(path))
      expect((yield* Effect.promise(() => client.request("session.list"))).result).toEqual([])
      client.destroy()
    }),
  )

  it.scopedLive("is refused where a file is in the way, a directory is missing, or the path is too long", () =>
    Effect.gen(function* () {
      const path = scratch()
      const served = yield* service
      writeFileSync(path, "precious")
      expect(yield* Effect.flip(serveUnix(path, served))).toMatchObject({ code: "ENOTSOCK" })
      expect(readFileSync(path, "utf8")).toBe("precious")
      expect(yield* Effect.flip(serveUnix(join(scratch(), "missing", "socket"), served))).toHaveProperty("message")
      const long = yield* Effect.flip(serveUnix(`/tmp/${"x".repeat(120)}`, served))
      expect(long).toMatchObject({ code: "ENAMETOOLONG" })
    }),
  )
})

describe("TCP", () => {
  it.scopedLive("listens on the loopback address and says on which port", () =>
    Effect.gen(function* () {
      const served = yield* service
      const port = yield* serveTcp(0, served)
      const client = yield* Effect.promise(() => connect(port))
      expect((yield* Effect.promise(() => client.request("session.list"))).result).toEqual([])
      expect(yield* Effect.flip(serveTcp(port, served))).toMatchObject({ code: "EADDRINUSE" })
      client.destroy()
    }),
  )
})

describe("stdio", () => {
  const start = Effect.gen(function* () {
    const program = yield* Effect.promise(() => bundle("stdio"))
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => spawn(process.execPath, [program], { stdio: "pipe" })),
      (child) => Effect.sync(() => child.kill("SIGKILL")),
    )
    const exit = new Promise<number | null>((resolve) => child.on("exit", resolve))
    return { child, exit, client: lineClient(child.stdout, child.stdin) }
  })

  it.scopedLive("answers on stdout, finishes what runs when stdin ends, and exits", () =>
    Effect.gen(function* () {
      const { client, exit } = yield* start
      const opened = yield* Effect.promise(() => client.request("session.open"))
      expect(opened.result).toMatchObject({ conversation_id: 1 })
      const receipt = client.request("session.submit", { conversationId: 1, content: "hello" })
      const settled = client.request("session.await", { conversationId: 1, submissionId: 2 })
      client.end()
      expect((yield* Effect.promise(() => receipt)).result).toMatchObject({ submission_id: 2 })
      expect((yield* Effect.promise(() => settled)).result).toMatchObject({ text: "HELLO" })
      expect(yield* Effect.promise(() => client.next())).toBeNull()
      expect(yield* Effect.promise(() => exit)).toBe(0)
    }),
  )

  it.scopedLive("keeps the process going while nobody reads its stdout", () =>
    Effect.gen(function* () {
      const { client, child } = yield* start
      yield* Effect.promise(() => client.request("session.open", { title: "t".repeat(100_000) }))
      client.pause()
      for (let i = 0; i < 200; i++) {
        client.send(`{"jsonrpc":"2.0","id":${i},"method":"session.state","params":{"conversationId":1}}\n`)
      }
      // Its event loop turns although its stdout is full: the ticks on stderr go on.
      let ticks = 0
      yield* Effect.promise(
        () =>
          new Promise<void>((resolve) => {
            child.stderr.on("data", () => ++ticks === 20 && resolve())
          }),
      )
      client.resume()
      for (let i = 0; i < 200; i++) expect(yield* Effect.promise(() => client.next())).toHaveProperty("result")
    }),
  )
})
