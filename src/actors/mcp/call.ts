/**
 * One call of a tool of an MCP server.
 *
 * 1. While the server is away the call waits for it, as long as a start may take; then it says so.
 * 2. A call that the server has not seen is made again, once, on another connection. One that may have been carried out is only made again
 *    where that changes nothing (`readOnlyHint`, `idempotentHint`); any other is in doubt.
 * 3. The time of a call counts from its last sign of life; while a person is asked it does not count.
 */
import { Effect, Runtime } from "effect"
import type { JsonObject } from "../../domain/json.ts"
import { effectInDoubt, toolFailure } from "../../tools/define.ts"
import type { ToolContext, ToolFailure, ToolResult } from "../../tools/tool.ts"
import { type ActorRef, ask, tell } from "../kernel/index.ts"
import type { Away, LinkMessage } from "./actor.ts"
import { CallError, type Connection } from "./connection.ts"
import { resultOf } from "./content.ts"
import { answerOf, questionOf } from "./elicitation.ts"

export interface CallParts {
  /** The server's name, for people. */
  readonly server: string
  /** The tool's name at the server, and as models see it. */
  readonly tool: string
  readonly name: string
  /** Whether a second call changes nothing more. */
  readonly repeatable: boolean
  readonly link: ActorRef<LinkMessage>
  /** How long a call waits for a server that is away, in ms. */
  readonly startupMs: number
  readonly callMs: number
}

/** Characters of progress that wait to be shown; older ones give way. */
const maxPending = 16_000

const awayText: Readonly<Record<Away["state"], string>> = {
  connecting: "is starting",
  ready: "is ready",
  backoff: "is away and will be tried again",
  needs_login: "wants a login",
  failed: "is not available",
}

const use = (parts: CallParts): Effect.Effect<Connection, ToolFailure> => {
  const { link, name, server, startupMs } = parts
  const failed = (what: string) => toolFailure(name, `The MCP server "${server}" ${what}. The call was not made.`)
  return ask<LinkMessage, Connection, Away>(link, (reply) => ({ type: "use", reply }), { timeoutMs: startupMs }).pipe(
    Effect.mapError((error) => {
      if ("_tag" in error) {
        return error._tag === "AskTimeout"
          ? failed(`is away, and did not come back within ${startupMs / 1000} s`)
          : failed("was stopped")
      }
      const login = error.state === "needs_login" ? ` (super-pi mcp login ${server})` : ""
      return failed(`${awayText[error.state]}${login}${error.detail === "" ? "" : `: ${error.detail}`}`)
    }),
  )
}

/** Counts the time of a call; `held` while a person is asked. */
class Watchdog {
  readonly controller = new AbortController()
  private timer: NodeJS.Timeout | null = null
  private held = 0
  private readonly ms: number

  constructor(ms: number, outer: AbortSignal) {
    this.ms = ms
    const give = () => this.controller.abort(outer.reason)
    if (outer.aborted) give()
    else outer.addEventListener("abort", give, { once: true })
    this.reset()
  }

  reset(): void {
    this.stop()
    if (this.held > 0) return
    this.timer = setTimeout(() => this.controller.abort(new Error(`no answer within ${this.ms / 1000} s`)), this.ms)
  }

  async hold<A>(work: Promise<A>): Promise<A> {
    this.held++
    this.stop()
    try {
      return await work
    } finally {
      this.held--
      this.reset()
    }
  }

  stop(): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
  }
}

/** Shows text in order, one piece at a time, and never keeps more than the last of it. */
const shower = (runtime: Runtime.Runtime<never>, emit: ToolContext["emit"]) => {
  let pending = ""
  let running = false
  const flush = async (): Promise<void> => {
    running = true
    while (pending !== "") {
      const chunk = pending
      pending = ""
      await Runtime.runPromise(runtime)(emit(chunk)).catch(() => undefined)
    }
    running = false
  }
  return (text: string): void => {
    pending = (pending + text).slice(-maxPending)
    if (!running) void flush()
  }
}

const once = (
  parts: CallParts,
  connection: Connection,
  args: JsonObject,
  context: ToolContext,
  questions: { asked: number },
): Effect.Effect<unknown, CallError> =>
  Effect.flatMap(Effect.runtime<never>(), (runtime) =>
    Effect.tryPromise({
      try: async (signal) => {
        const watchdog = new Watchdog(parts.callMs, signal)
        const show = shower(runtime, context.emit)
        const { ask: askPerson } = context
        const elicit = async (params: unknown): Promise<unknown> => {
          const question = questionOf(parts.server, params, `mcp-${++questions.asked}`)
          if (question === null || askPerson === undefined) return { action: "decline" }
          const asked = Runtime.runPromise(runtime)(askPerson(question), { signal: watchdog.controller.signal })
          return answerOf(params, await watchdog.hold(asked))
        }
        try {
          return await connection.call(parts.tool, args, {
            signal: watchdog.controller.signal,
            onProgress: (text) => {
              watchdog.reset()
              show(text)
            },
            elicit: askPerson === undefined ? null : elicit,
            conversation: context.conversation,
          })
        } finally {
          watchdog.stop()
        }
      },
      catch: (error) => (error instanceof CallError ? error : new CallError("unanswered", String(error), false)),
    }),
  )

/** Makes the call. */
export const callTool = (
  parts: CallParts,
  args: JsonObject,
  context: ToolContext,
): Effect.Effect<ToolResult, ToolFailure> => {
  const { link, name, repeatable, server } = parts
  const questions = { asked: 0 }
  const failure = (error: CallError): ToolFailure => {
    const said = `The MCP server "${server}" did not carry out the call: ${error.message}`
    if (error.problem === "login") return toolFailure(name, `${said} (super-pi mcp login ${server})`)
    if (error.problem !== "unanswered") return toolFailure(name, said)
    const text = `The MCP server "${server}" gave no answer: ${error.message}.`
    return repeatable
      ? toolFailure(name, text)
      : effectInDoubt(name, `${text} The call may or may not have been carried out; it was not made again.`)
  }
  const attempt = (again: boolean): Effect.Effect<ToolResult, ToolFailure> =>
    Effect.flatMap(use(parts), (connection) =>
      Effect.matchEffect(once(parts, connection, args, context, questions), {
        onSuccess: (answer) => Effect.succeed(resultOf(answer)),
        onFailure: (error) => {
          const harmless =
            error.problem === "undelivered" || (error.problem === "unanswered" && error.lost && repeatable)
          const suspect = { type: "suspect" as const, connection, detail: error.message, again: error.sessionGone }
          const told = error.lost ? tell(link, suspect) : Effect.void
          return Effect.zipRight(told, again && harmless ? attempt(false) : Effect.fail(failure(error)))
        },
      }),
    )
  return attempt(true)
}
