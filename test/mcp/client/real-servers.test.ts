/**
 * Servers of others, over every transport that they speak.
 */
import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { McpServer } from "../../../src/domain/mcp.ts"
import { missing, program } from "../../clients/programs.ts"
import { collect } from "../../conversation/harness.ts"
import { ask, callOf, isReady, openWith, resultsIn, serverWhen, textOf, withMcpNode, withPlace } from "./node.ts"

const absent = missing("serverEverything", "serverFilesystem")

const rules = [
  callOf("^echo", "mcp__every__echo", { message: "hello" }),
  callOf("^sum", "mcp__every__get-structured-content", { location: "New York" }),
  callOf("^image", "mcp__every__get-tiny-image"),
  callOf("^long", "mcp__every__trigger-long-running-operation", { duration: 0.3, steps: 3 }),
]

/** A port that nobody listens on. */
const freePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

/** The server of every feature as an HTTP server, for the scope. */
const everythingOn = (transport: "streamableHttp" | "sse") =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const port = await freePort()
      const child = spawn(process.execPath, [program("serverEverything"), transport], {
        env: { ...process.env, PORT: String(port) },
        stdio: ["ignore", "pipe", "pipe"],
      })
      await new Promise<void>((resolve) => {
        child.stdout.once("data", () => resolve())
        child.stderr.once("data", () => resolve())
      })
      return { port, child }
    }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL")),
  )

const uses = (server: McpServer) =>
  withPlace((place) =>
    withMcpNode(place, { servers: [server], rules }, (sessions) =>
      Effect.gen(function* () {
        const { tools } = yield* serverWhen(sessions, "every", isReady)
        expect(tools).toContain("mcp__every__echo")
        const id = yield* openWith(sessions)
        yield* ask(sessions, id, "echo")
        yield* ask(sessions, id, "sum")
        yield* ask(sessions, id, "image")
        const shown = yield* collect(sessions, id, (event) => event.type === "tool_output")
        yield* ask(sessions, id, "long")
        expect((yield* shown.await)._tag).toBe("Success")
        const [echo, sum, image, long] = resultsIn(yield* sessions.transcript({ conversationId: id }))
        expect(textOf(echo)).toBe("Echo: hello")
        expect(textOf(sum)).toContain("temperature")
        expect(textOf(image)).toContain("[image/png]")
        expect(textOf(long)).toContain("completed")
      }),
    ),
  )

describe.skipIf(absent !== null)(`servers of others${absent === null ? "" : ` (${absent})`}`, () => {
  it.live("server-everything over stdio", () =>
    uses({
      name: "every",
      transport: "stdio",
      command: process.execPath,
      args: [program("serverEverything"), "stdio"],
    }),
  )

  it.live("server-everything over Streamable HTTP", () =>
    Effect.scoped(
      Effect.flatMap(everythingOn("streamableHttp"), ({ port }) =>
        uses({ name: "every", transport: "http", url: `http://127.0.0.1:${port}/mcp` }),
      ),
    ),
  )

  it.live("server-everything over HTTP+SSE, found by itself", () =>
    Effect.scoped(
      Effect.flatMap(everythingOn("sse"), ({ port }) =>
        uses({ name: "every", transport: "http", url: `http://127.0.0.1:${port}/sse` }),
      ),
    ),
  )

  it.live("server-filesystem works in the root that it is told, whatever its arguments", () =>
    withPlace((place) => {
      writeFileSync(join(place.directory, "a.txt"), "content of a")
      const files: McpServer = {
        name: "files",
        transport: "stdio",
        command: process.execPath,
        args: [program("serverFilesystem"), "/usr"],
      }
      const path = join(place.directory, "a.txt")
      return withMcpNode(
        place,
        { servers: [files], rules: [callOf("", "mcp__files__read_text_file", { path })] },
        (sessions) =>
          Effect.gen(function* () {
            const id = yield* openWith(sessions)
            // It asks for the roots once the handshake is over, beside everything else.
            const read = Effect.gen(function* () {
              yield* ask(sessions, id, "read it")
              return textOf(resultsIn(yield* sessions.transcript({ conversationId: id })).at(-1))
            })
            const last = yield* Effect.repeat(read, { until: (text) => text === "content of a", times: 20 })
            expect(last).toBe("content of a")
          }),
      )
    }),
  )
})
