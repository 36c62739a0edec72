/**
 * One of several processes that share a database: claims its lease, serves or attaches, takes over. Commands come as JSON lines on stdin,
 * `{id, op, ...}`; answers and news go as JSON lines to stdout.
 */
import { createInterface } from "node:readline"
import { Effect, Exit, Fiber, type Scope, Stream } from "effect"
import type { Failure } from "../../../src/domain/failure.ts"
import { ConversationId, SubmissionId } from "../../../src/domain/ids.ts"
import { text } from "../../../src/domain/message.ts"
import { attach } from "../../../src/protocols/attach/attach.ts"
import { serveAttach } from "../../../src/protocols/attach/serve.ts"
import { takeover } from "../../../src/protocols/attach/takeover.ts"
import { claim } from "../../../src/storage/sqlite/ownership.ts"
import { makeFakeSessions } from "../fake-sessions.ts"

const env = process.env
const db = env.DB ?? ""
const tell = (line: object) => void process.stdout.write(`${JSON.stringify(line)}\n`)
const self = (instance: string) => ({
  program: "super-pi" as const,
  version: env.VERSION ?? "1",
  pid: process.pid,
  instance,
})

const sessions = takeover({
  claim: claim(db, { program: `peer ${env.NAME}` }),
  own: () =>
    Effect.map(
      makeFakeSessions({
        journal: `${db}.journal`,
        hold: env.HOLD === "1",
        stall: env.STALL === "1",
        name: env.NAME ?? "",
      }),
      (fake) => fake.sessions,
    ),
  serve: (sessions, lease) =>
    Effect.zipRight(
      serveAttach({ path: lease.socket, sessions, self: self(`${process.pid}`) }),
      Effect.sync(() => tell({ news: "serving" })),
    ),
  attach: (holder) => attach({ socket: holder.socket, self: self("client"), timeoutMs: 300 }),
  patienceMs: Number(env.PATIENCE ?? 10_000),
  onChange: (state) => tell({ news: state }),
})

interface Command {
  readonly id: number
  readonly op: string
  readonly conversation?: number
  readonly submission?: number
  readonly text?: string
  readonly requestId?: string
}

const main: Effect.Effect<void, unknown, Scope.Scope> = Effect.gen(function* () {
  const api = yield* sessions
  const perform = (command: Command): Effect.Effect<unknown, Failure> => {
    const conversationId = ConversationId.make(command.conversation ?? 1)
    switch (command.op) {
      case "open":
        return api.open({ conversationId: null, agent: {}, title: null, requestId: null })
      case "submit":
        return api.submit({ conversationId, content: [text(command.text ?? "")], requestId: command.requestId ?? null })
      case "await":
        return api.awaitSubmission({ conversationId, submissionId: SubmissionId.make(command.submission ?? 0) })
      case "remove":
        return api.remove({ conversationId })
      case "tree":
        return api.tree
      case "watch":
        return Stream.runForEach(api.watch({ conversationId, after: null }), (event) =>
          Effect.sync(() => tell({ watch: command.id, type: event.type, seq: event.seq_no })),
        )
      default:
        return api.list({})
    }
  }
  const lines = createInterface({ input: process.stdin })
  lines.on("line", (line) => {
    const command: Command = JSON.parse(line)
    Effect.runCallback(perform(command), {
      onExit: (exit) =>
        tell(
          Exit.isSuccess(exit)
            ? { id: command.id, result: exit.value ?? null }
            : { id: command.id, failed: exit.cause.toString() },
        ),
    })
  })
  tell({ news: "ready" })
  yield* Effect.never
})

const fiber = Effect.runFork(Effect.scoped(main))
fiber.addObserver((exit) => {
  if (Exit.isFailure(exit)) tell({ news: "failed", cause: exit.cause.toString() })
  process.stdout.write(`${JSON.stringify({ news: "left" })}\n`, () => process.exit(0))
})
process.on("SIGTERM", () => void Effect.runFork(Fiber.interrupt(fiber)))
