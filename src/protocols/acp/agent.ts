/**
 * The agent side of one connection: each method of the protocol, checked and brought to the sessions. It owns who the editor is (its
 * capabilities, its principal) and the registry of its sessions.
 *
 *   connected → initialize → (authenticate, where a token is needed) → sessions
 */
import { randomUUID } from "node:crypto"
import {
  type AgentApp,
  type AgentContext,
  agent,
  type ClientCapabilities,
  type LoadSessionResponse,
  methods,
  PROTOCOL_VERSION,
  RequestError,
} from "@agentclientprotocol/sdk"
import { Cause, Effect, Exit, FiberSet, Option, type Scope } from "effect"
import type { AgentDocument, ExecutionMode } from "../../domain/document.ts"
import type { Failure } from "../../domain/failure.ts"
import { isRecord } from "../../domain/json.ts"
import { remoteAgent } from "../remote.ts"
import type { ProtocolService } from "../service.ts"
import { type Choices, choicesOf, chosenMode, chosenOption, configOptions, modeState } from "./choices.ts"
import type { ClientFiles } from "./client-files.ts"
import { promptParts } from "./content.ts"
import { extrasOf, makeEditor } from "./editor.ts"
import { errorOf, faultOf } from "./errors.ts"
import { initialized, type Login } from "./handshake.ts"
import { harnessIn, promptIn, tokenIn } from "./meta.ts"
import { makeRegistry } from "./registry.ts"
import type { AcpSession, SessionParts } from "./session.ts"

/** A command that can be typed, as editors list it. */
export interface Command {
  readonly name: string
  readonly description: string
  /** What may follow it; absent: nothing. */
  readonly hint?: string
}

export interface AcpOptions {
  /** Absolute: the directory of conversations that have none of their own. */
  readonly cwd: string
  /** The mode of new sessions where the settings have none for remote callers. Default `accept-edits`: an editor can be asked. */
  readonly mode?: ExecutionMode
  /** On whose behalf the editor acts where it needs no token. Default `local`. */
  readonly principal?: string
  /** Given: the editor has to authenticate with a token first. */
  readonly login?: Login
  /** The commands for a directory and a harness. Default: none. */
  readonly commands?: (cwd: string, harness: string | null) => Promise<ReadonlyArray<Command>>
  /** Given: the texts of the editor's buffers are offered to tools. */
  readonly clientFiles?: ClientFiles
}

const denied = () => new RequestError(-32000, 'Authentication required: authenticate with the method "token"')

/** The app that serves one connection, living in the scope. */
export const makeAgent = (service: ProtocolService, options: AcpOptions): Effect.Effect<AgentApp, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { models, remote: rules, sessions, version } = service
    const runPromise = yield* FiberSet.makeRuntimePromise<never>()
    let capabilities: ClientCapabilities = {}
    let client = "acp"
    let principal: string | null = options.login === undefined ? (options.principal ?? "local") : null

    const registry = yield* makeRegistry({
      sessions,
      rules,
      cwd: options.cwd,
      onOpen: (session) => options.clientFiles?.attach(session, capabilities) ?? Effect.void,
    })

    /** Runs a handler; its failure becomes the error of the answer, a fault a reference. */
    const run = async <A>(effect: Effect.Effect<A, Failure>): Promise<A> => {
      const exit = await runPromise(Effect.exit(effect))
      if (Exit.isSuccess(exit)) return exit.value
      const failure = Cause.failureOption(exit.cause)
      if (Option.isSome(failure)) throw errorOf(failure.value)
      const reference = randomUUID().slice(0, 12)
      await runPromise(Effect.annotateLogs(Effect.logError("ACP request failed", exit.cause), { reference }))
      throw faultOf(reference)
    }

    const who = (): string => {
      if (principal === null) throw denied()
      return principal
    }

    const catalog = Effect.gen(function* () {
      const listed = yield* Effect.catchAll(models, () => Effect.succeed([]))
      return { models: listed, harnesses: yield* sessions.harnesses, rules }
    })

    const partsOf = (context: AgentContext): Effect.Effect<SessionParts, Failure> => {
      const as = who()
      const extras = extrasOf(capabilities)
      return Effect.map(catalog, (known) => ({
        sessions,
        editor: makeEditor(context),
        principal: as,
        client,
        catalog: known,
        extras,
      }))
    }

    /** Sends the commands once the answer that names the session is on its way. */
    const announce = (session: AcpSession, context: AgentContext): void => {
      const { directory, sessionId } = session.place
      const found = options.commands?.(directory.canonical, session.choices().harness) ?? Promise.resolve([])
      setImmediate(() => {
        found
          .then((commands) =>
            context.notify("session/update", {
              sessionId,
              update: {
                sessionUpdate: "available_commands_update",
                availableCommands: commands.map(({ description, hint, name }) => ({
                  name,
                  description,
                  ...(hint === undefined ? {} : { input: { hint } }),
                })),
              },
            }),
          )
          .catch(() => {})
      })
    }

    const opened = async (
      context: AgentContext,
      use: (parts: SessionParts) => Effect.Effect<AcpSession, Failure>,
    ): Promise<LoadSessionResponse & { readonly sessionId: string }> => {
      const effect = Effect.flatMap(partsOf(context), (parts) =>
        Effect.map(use(parts), (session) => ({ session, known: parts.catalog })),
      )
      const { known, session } = await run(effect)
      announce(session, context)
      const choices = session.choices()
      return {
        sessionId: session.place.sessionId,
        modes: modeState(choices, known),
        configOptions: configOptions(choices, known),
        _meta: { superPi: { conversation: session.place.conversationId, harness: choices.harness } },
      }
    }

    /** Changes what an open session has chosen. */
    const choose = (
      session: AcpSession,
      choice: (choices: Choices) => Effect.Effect<AgentDocument, Failure>,
    ): Effect.Effect<Choices, Failure> =>
      Effect.gen(function* () {
        const wanted = yield* choice(session.choices())
        if (Object.keys(wanted).length === 0) return session.choices()
        const changed = yield* remoteAgent(wanted, rules, false)
        const { conversationId } = session.place
        const state = yield* sessions.configure({ conversationId, principal: who(), agent: changed })
        session.chose(state)
        return choicesOf(state)
      })

    return agent({ name: "super-pi" })
      .onRequest(methods.agent.initialize, async ({ params }) => {
        capabilities = params.clientCapabilities ?? {}
        client = params.clientInfo?.name.slice(0, 60) || "acp"
        const harnesses = await run(sessions.harnesses)
        return initialized(PROTOCOL_VERSION, version, harnesses, options.login !== undefined)
      })
      .onRequest(methods.agent.authenticate, async ({ params }) => {
        const { login } = options
        if (login === undefined) return {}
        const token = await run(tokenIn(params._meta))
        const found = params.methodId === "token" && token !== null ? login(token) : null
        if (found === null)
          throw new RequestError(-32000, "Authentication failed: expected a valid token in _meta.token")
        principal = found
        return {}
      })
      .onRequest(methods.agent.logout, async () => {
        if (options.login !== undefined) principal = null
        return {}
      })
      .onRequest(methods.agent.session.new, ({ client: context, params }) =>
        opened(context, (parts) =>
          Effect.gen(function* () {
            const harness = yield* harnessIn(params._meta)
            const mode = rules.remoteDefaultMode ?? options.mode ?? "accept-edits"
            return yield* registry.create(params, { mode, ...(harness === null ? {} : { harness }) }, parts)
          }),
        ),
      )
      .onRequest(methods.agent.session.load, ({ client: context, params }) =>
        opened(context, (parts) => registry.open(params.sessionId, params, parts, true)),
      )
      .onRequest(methods.agent.session.resume, ({ client: context, params }) =>
        opened(context, (parts) => registry.open(params.sessionId, params, parts, false)),
      )
      .onRequest(
        "_superpi/session/fork",
        (params: unknown) => forkParams(params),
        ({ client: context, params }) =>
          opened(context, (parts) => registry.fork(params.sessionId, { cwd: params.cwd ?? options.cwd }, parts)),
      )
      .onRequest(methods.agent.session.list, ({ params }) => {
        const { cursor = null, cwd = null } = params
        return run(registry.list(who(), { cursor, cwd }))
      })
      .onRequest(methods.agent.session.close, async ({ params }) => {
        const as = who()
        const closed = await run(registry.close(params.sessionId))
        if (!closed) await run(sessions.findNamed({ namespace: "acp", name: params.sessionId, principal: as }))
        return {}
      })
      .onRequest(methods.agent.session.delete, async ({ params }) => {
        await run(registry.remove(params.sessionId, who()))
        return {}
      })
      .onRequest(methods.agent.session.setMode, async ({ params }) => {
        who()
        const known = await run(catalog)
        const effect = Effect.flatMap(registry.find(params.sessionId), (session) =>
          choose(session, (choices) => chosenMode("modeId", params.modeId, choices, known)),
        )
        await run(effect)
        return {}
      })
      .onRequest(methods.agent.session.setConfigOption, async ({ params }) => {
        who()
        const known = await run(catalog)
        const effect = Effect.flatMap(registry.find(params.sessionId), (session) =>
          choose(session, (choices) => chosenOption(params.configId, params.value, choices, known)),
        )
        return { configOptions: configOptions(await run(effect), known) }
      })
      .onRequest(methods.agent.session.prompt, ({ params, signal }) => {
        who()
        return run(
          Effect.gen(function* () {
            const session = yield* registry.find(params.sessionId)
            const content = yield* promptParts(params.prompt)
            const { requestId, whenBusy } = yield* promptIn(params._meta)
            const prompt = session.prompt({ content, requestId: requestId ?? randomUUID(), whenBusy })
            return yield* Effect.scoped(Effect.zipRight(cancelledBy(signal, session), prompt))
          }),
        )
      })
      .onNotification(methods.agent.session.cancel, async ({ params }) => {
        const cancel = Effect.flatMap(registry.find(params.sessionId), (session) => session.cancel(false))
        await run(Effect.catchAll(cancel, (failure) => Effect.logDebug("nothing was cancelled", failure)))
      })
  })

/** In the scope: `$/cancel_request` of a prompt is a cancel of its session. The end of the connection is not: the turn goes on. */
const cancelledBy = (signal: AbortSignal, session: AcpSession): Effect.Effect<void, never, Scope.Scope> =>
  Effect.forkScoped(
    Effect.zipRight(
      Effect.async<void>((resume) => {
        const abort = () => {
          const asked: unknown = signal.reason
          if (asked instanceof RequestError && asked.code === -32800) resume(Effect.void)
        }
        if (signal.aborted) abort()
        signal.addEventListener("abort", abort)
        return Effect.sync(() => signal.removeEventListener("abort", abort))
      }),
      Effect.ignore(session.cancel(false)),
    ),
  )

/** Parameters of `_superpi/session/fork`. */
const forkParams = (params: unknown): { readonly sessionId: string; readonly cwd: string | null } => {
  const { cwd = null, sessionId } = isRecord(params) ? params : {}
  if (typeof sessionId !== "string") throw RequestError.invalidParams({ sessionId: { _errors: ["expected string"] } })
  if (cwd !== null && typeof cwd !== "string")
    throw RequestError.invalidParams({ cwd: { _errors: ["expected string"] } })
  return { sessionId, cwd }
}
