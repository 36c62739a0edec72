/**
 * Effects as answers of the protocol: run for one request, interrupted when its client gives it up, failures worded for a client. A defect
 * is logged under a reference, and never ends anything but its request.
 */
import { randomBytes } from "node:crypto"
import {
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  type ServerContext,
} from "@modelcontextprotocol/server"
import { Cause, Effect, Exit, Option, Runtime } from "effect"
import type { Failure } from "../../../domain/failure.ts"
import type { Say } from "./follow.ts"

/** What went wrong, in one line. */
const lineOf = (failure: Failure): string => {
  if (failure._tag === "Busy" && failure.retryAfterMs !== null) {
    return `${failure.message}; try again in ${Math.ceil(failure.retryAfterMs / 1000)} s`
  }
  if (failure._tag === "ServiceFailure" && failure.reference !== "") {
    return `${failure.message} (reference ${failure.reference})`
  }
  return failure.message
}

export const errorResult = (message: string): CallToolResult => ({
  content: [{ type: "text", text: message }],
  isError: true,
})

/** Runs Effects of requests with the services of the server's fiber. */
export interface Answers {
  /** A call of a tool: whatever fails is a result that says so. */
  readonly tool: (work: Effect.Effect<CallToolResult, Failure>, signal: AbortSignal) => Promise<CallToolResult>
  /** Anything else: what fails is an error of the protocol. `uri`: what was not found is that resource. */
  readonly read: <A>(work: Effect.Effect<A, Failure>, signal: AbortSignal, uri?: string) => Promise<A>
  /** Logs at debug level what the package reports and answers by itself. */
  readonly note: (what: string, error: Error) => void
  /** Waits for what was given up to come to its end, {@link idleMs} at most. */
  readonly idle: Effect.Effect<void>
}

/** How long the end of requests that were given up is waited for, in ms: longer than a command takes to be ended. */
const idleMs = 5_000

const reference = (): string => randomBytes(6).toString("hex")

/** Over the runtime of the server's fiber. */
export const makeAnswers = (runtime: Runtime.Runtime<never>): Answers => {
  const working = new Set<Promise<unknown>>()
  const run = <A>(work: Effect.Effect<A, Failure>, signal: AbortSignal): Promise<Exit.Exit<A, Failure>> => {
    const exit = Runtime.runPromiseExit(runtime)(work, { signal })
    working.add(exit)
    return exit.finally(() => working.delete(exit))
  }

  /** The failure, or the line that stands for what nobody expected. */
  const failed = async (cause: Cause.Cause<Failure>): Promise<Failure | string> => {
    const failure = Cause.failureOption(cause)
    if (Option.isSome(failure)) return failure.value
    if (Cause.isInterruptedOnly(cause)) return "the request was cancelled"
    const ref = reference()
    const logged = Effect.annotateLogs(Effect.logError("MCP request failed", cause), { reference: ref })
    await Runtime.runPromise(runtime)(logged)
    return `internal error (reference ${ref})`
  }

  return {
    note: (what, error) => Runtime.runFork(runtime)(Effect.logDebug(`${what}: ${error.message}`)),
    idle: Effect.asVoid(
      Effect.timeoutOption(
        // Waited for behind other work: it may not hold the end of the program.
        Effect.interruptible(Effect.promise(() => Promise.allSettled([...working]))),
        idleMs,
      ),
    ),
    tool: async (work, signal) => {
      const exit = await run(work, signal)
      if (Exit.isSuccess(exit)) return exit.value
      const why = await failed(exit.cause)
      return errorResult(typeof why === "string" ? why : lineOf(why))
    },
    read: async (work, signal, uri) => {
      const exit = await run(work, signal)
      if (Exit.isSuccess(exit)) return exit.value
      const why = await failed(exit.cause)
      if (typeof why === "string") throw new ProtocolError(ProtocolErrorCode.InternalError, why)
      if (why._tag === "NotFound" && uri !== undefined) throw new ResourceNotFoundError(uri)
      const theirs = why._tag === "InvalidRequest" || why._tag === "NotFound"
      const code = theirs ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError
      throw new ProtocolError(code, lineOf(why))
    },
  }
}

/** Progress where the client asked for it, and notices as log messages. */
export const sayTo = (context: ServerContext, wantsLogs: boolean): Say => {
  const { mcpReq } = context
  const token = mcpReq._meta?.progressToken
  let steps = 0
  const quietly = (send: () => Promise<void>) => Effect.promise(() => send().catch(() => {}))
  return (item) => {
    if (item.type === "log" && !wantsLogs) return Effect.void
    if (item.type === "log") return quietly(() => mcpReq.log(item.level, item.message, "super-pi"))
    if (token === undefined) return Effect.void
    const params = { progressToken: token, progress: ++steps, message: item.message }
    return quietly(() => mcpReq.notify({ method: "notifications/progress", params }))
  }
}
