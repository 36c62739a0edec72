/**
 * The connection to one MCP server as an actor: it owns the connection, and with it the server's process. Transitions are in machine.ts; it
 * is told by the fiber that connects (`opened`, `failed`), by the connection (`lost`, `tools`), and by calls (`use`, `suspect`).
 *
 * 1. There is at most one connection and one attempt. An attempt that another one has overtaken changes nothing and is closed.
 * 2. Whoever wants the connection while there is none waits for the attempts in progress, within its own time.
 * 3. With the end of an incarnation its connection ends, and its process with everything that it has started.
 */
import { Effect, Scope } from "effect"
import type { McpServer } from "../../domain/mcp.ts"
import {
  type ActorContext,
  type ActorRef,
  type Behavior,
  keep,
  type Machine,
  next,
  type ReplyTo,
  stateMachine,
  stateTimeout,
  type Transition,
  tell,
  unsafeTell,
} from "../kernel/index.ts"
import { ConnectError, type Connection, type ConnectProblem, type OpenOptions, type ServerTool } from "./connection.ts"
import {
  afterFailure,
  afterLoss,
  afterSuccess,
  type History,
  type LinkState,
  newHistory,
  triesForCall,
} from "./machine.ts"

/** Nothing can be had of the server now; `detail` says why. */
export interface Away {
  readonly state: LinkState
  readonly detail: string
}

export type LinkMessage =
  | { readonly type: "use"; readonly reply: ReplyTo<Connection, Away> }
  /** A call found the connection of no use. `again`: connect at once. */
  | { readonly type: "suspect"; readonly connection: Connection; readonly detail: string; readonly again: boolean }
  | { readonly type: "restart"; readonly reply: ReplyTo<void> | null }
  | { readonly type: "opened"; readonly attempt: number; readonly connection: Connection }
  | { readonly type: "failed"; readonly attempt: number; readonly problem: ConnectProblem; readonly detail: string }
  | { readonly type: "lost"; readonly attempt: number; readonly detail: string }
  | { readonly type: "tools"; readonly attempt: number; readonly tools: ReadonlyArray<ServerTool> }
  | { readonly type: "wake" }

/** What others see of the link. */
export interface LinkView {
  readonly state: LinkState
  readonly detail: string | null
  readonly server: string | null
  readonly protocolVersion: string | null
  readonly restarts: number
}

export interface LinkOptions {
  readonly server: McpServer
  /** The server as it is started, or why it cannot be: placeholders are replaced now. */
  readonly resolved: () => McpServer | { readonly problem: string }
  /** Everything else of an attempt. */
  readonly open: Omit<OpenOptions, "server" | "signal" | "onTools" | "onLost" | "log">
  /** Told with every change; `tools` null: as they were. */
  readonly publish: (view: LinkView, tools: ReadonlyArray<ServerTool> | null, link: ActorRef<LinkMessage>) => void
  /** For lines of the server and of the connection. */
  readonly log: (line: string) => void
  readonly now: () => number
  readonly random: () => number
  /** Loads the code that connects. */
  readonly load: () => Promise<(options: OpenOptions) => Promise<Connection>>
}

interface Data {
  readonly history: History
  readonly attempt: number
  readonly detail: string | null
  readonly problem: ConnectProblem | null
  readonly server: string | null
  readonly protocolVersion: string | null
  readonly waiting: ReadonlyArray<ReplyTo<Connection, Away>>
  /** Those who asked for a restart and wait for how it goes. */
  readonly restarting: ReadonlyArray<ReplyTo<void>>
  readonly connection: Connection | null
  /** The attempt whose connection was lost before we were told that it was made. */
  readonly lostAttempt: number
}

type Change = Transition<LinkState, Data, LinkMessage>
type Self = ActorContext<LinkMessage>

/** Connections that this incarnation has to close: known before anybody is told of them. */
class Open {
  private readonly all = new Set<Connection>()
  add(connection: Connection): void {
    this.all.add(connection)
  }
  close(connection: Connection | null): Effect.Effect<void> {
    if (connection === null || !this.all.delete(connection)) return Effect.void
    return Effect.promise(() => connection.close())
  }
  get closeAll(): Effect.Effect<void> {
    return Effect.suspend(() =>
      Effect.forEach([...this.all], (one) => this.close(one), { concurrency: 4, discard: true }),
    )
  }
}

/** One server. */
export const mcpLink = (options: LinkOptions): Behavior<Machine<LinkState, Data>, LinkMessage> => {
  const { log, now, publish, random } = options
  const opens = new WeakMap<Self["scope"], Open>()
  const openOf = (self: Self): Open => opens.get(self.scope) ?? new Open()

  const viewOf = (state: LinkState, data: Data): LinkView => ({
    state,
    detail: data.detail,
    server: data.server,
    protocolVersion: data.protocolVersion,
    restarts: data.history.restarts,
  })

  /** Begins an attempt; the one before, if any, is overtaken. */
  const connect = (data: Data, self: Self): Effect.Effect<Data> =>
    Effect.gen(function* () {
      const attempt = data.attempt + 1
      const open = openOf(self)
      const failed = (error: unknown) => {
        const { message, problem } =
          error instanceof ConnectError ? error : new ConnectError("unreachable", String(error))
        return tell(self.ref, { type: "failed" as const, attempt, problem, detail: message })
      }
      const server = options.resolved()
      const run =
        "problem" in server
          ? failed(new ConnectError("misconfigured", server.problem))
          : Effect.tryPromise({
              try: async (signal) => {
                const openConnection = await options.load()
                const connection = await openConnection({
                  ...options.open,
                  server,
                  signal,
                  onTools: (tools) => void unsafeTell(self.ref, { type: "tools", attempt, tools }),
                  onLost: (detail) => void unsafeTell(self.ref, { type: "lost", attempt, detail }),
                  log,
                })
                open.add(connection)
                return connection
              },
              catch: (error) => error,
            }).pipe(
              Effect.matchEffect({
                onFailure: failed,
                onSuccess: (connection) => tell(self.ref, { type: "opened" as const, attempt, connection }),
              }),
            )
      yield* self.fork(run)
      const { connection } = data
      // What was there before is ended beside: the next attempt does not wait for it.
      if (connection !== null) yield* self.fork(open.close(connection))
      const started = { ...data, attempt, connection: null }
      publish(viewOf("connecting", started), null, self.ref)
      return started
    })

  const toConnecting = (data: Data, self: Self): Effect.Effect<Change> =>
    Effect.map(connect(data, self), (started) => next("connecting", started))

  /** Everybody who waits learns that there is nothing to wait for. */
  const settle = (state: LinkState, data: Data): Data => {
    for (const reply of data.restarting) reply.succeed(undefined)
    if (state === "backoff") return { ...data, restarting: [] }
    const away: Away = { state, detail: data.detail ?? "" }
    for (const reply of data.waiting) reply.fail(away)
    return { ...data, waiting: [], restarting: [] }
  }

  const away = (data: Data, step: ReturnType<typeof afterLoss>, self: Self, detail: string): Effect.Effect<Change> =>
    Effect.gen(function* () {
      const { history, state, waitMs } = step
      if (data.connection !== null) yield* self.fork(openOf(self).close(data.connection))
      const after = settle(state, { ...data, history, detail, connection: null })
      publish(viewOf(state, after), null, self.ref)
      log(`${state}: ${detail}`)
      return next(state, after, state === "backoff" ? [stateTimeout<LinkMessage>(waitMs, { type: "wake" })] : [])
    })

  const opened = (data: Data, { attempt, connection }: Extract<LinkMessage, { type: "opened" }>, self: Self) =>
    Effect.gen(function* () {
      if (attempt !== data.attempt) {
        yield* self.fork(openOf(self).close(connection))
        return keep(data) as Change
      }
      if (data.lostAttempt === attempt) {
        yield* self.fork(openOf(self).close(connection))
        return yield* away(
          data,
          afterFailure(data.history, "unreachable", random()),
          self,
          data.detail ?? "it was lost",
        )
      }
      const { protocolVersion, server } = connection
      const ready: Data = {
        ...data,
        history: afterSuccess(data.history, now()),
        detail: null,
        problem: null,
        server,
        protocolVersion,
        connection,
        waiting: [],
        restarting: [],
      }
      publish(viewOf("ready", ready), connection.tools, self.ref)
      for (const reply of data.waiting) reply.succeed(connection)
      for (const reply of data.restarting) reply.succeed(undefined)
      return next("ready", ready) as Change
    })

  const handle = (state: LinkState, message: LinkMessage, data: Data, self: Self): Effect.Effect<Change> => {
    switch (message.type) {
      case "use": {
        const { connection } = data
        if (connection !== null) {
          message.reply.succeed(connection)
          return Effect.succeed(keep(data))
        }
        if (state === "connecting" || state === "backoff") {
          return Effect.succeed(keep({ ...data, waiting: [...data.waiting, message.reply] }))
        }
        if (triesForCall(state, data.problem)) {
          return toConnecting({ ...data, waiting: [...data.waiting, message.reply] }, self)
        }
        message.reply.fail({ state, detail: data.detail ?? "" })
        return Effect.succeed(keep(data))
      }
      case "suspect":
        if (data.connection !== message.connection) return Effect.succeed(keep(data))
        if (message.again) return toConnecting(data, self)
        return away(data, afterLoss(data.history, now(), random()), self, message.detail)
      case "restart": {
        const restarting = message.reply === null ? data.restarting : [...data.restarting, message.reply]
        const fresh = { ...data, history: { ...data.history, failures: 0 }, restarting }
        return toConnecting(fresh, self)
      }
      case "opened":
        return opened(data, message, self)
      case "failed": {
        if (message.attempt !== data.attempt || state !== "connecting") return Effect.succeed(keep(data))
        const step = afterFailure(data.history, message.problem, random())
        return away({ ...data, problem: message.problem }, step, self, message.detail)
      }
      case "lost":
        if (message.attempt !== data.attempt) return Effect.succeed(keep(data))
        if (state === "connecting") {
          return Effect.succeed(keep({ ...data, lostAttempt: message.attempt, detail: message.detail }))
        }
        if (state !== "ready") return Effect.succeed(keep(data))
        return away(data, afterLoss(data.history, now(), random()), self, message.detail)
      case "tools":
        if (message.attempt === data.attempt && state === "ready") publish(viewOf(state, data), message.tools, self.ref)
        return Effect.succeed(keep(data))
      case "wake":
        return state === "backoff" ? toConnecting(data, self) : Effect.succeed(keep(data))
    }
  }

  return stateMachine<Data, LinkMessage, LinkState>({
    name: "mcp",
    init: (self) =>
      Effect.gen(function* () {
        const open = new Open()
        opens.set(self.scope, open)
        yield* Effect.addFinalizer(() => open.closeAll).pipe(Effect.provideService(Scope.Scope, self.scope))
        const first: Data = {
          history: newHistory,
          attempt: 0,
          detail: null,
          problem: null,
          server: null,
          protocolVersion: null,
          waiting: [],
          restarting: [],
          connection: null,
          lostAttempt: 0,
        }
        return { state: "connecting" as const, data: yield* connect(first, self) }
      }),
    handle,
    describe: (state, { detail }) => (detail === null ? state : `${state}: ${detail.slice(0, 100)}`),
  })
}
