/**
 * The sessions of one connection: those that are open on it, and those that are stored. A session's id is a name of its conversation, so that
 * an editor finds it again after a restart. It owns a scope for each open session.
 */
import { randomBytes } from "node:crypto"
import { realpath } from "node:fs/promises"
import { isAbsolute, normalize } from "node:path"
import type { McpServer, SessionInfo } from "@agentclientprotocol/sdk"
import { Effect, ExecutionStrategy, Exit, Schedule, Scope } from "effect"
import type { SessionsService } from "../../actors/sessions.ts"
import type { AgentDocument } from "../../domain/document.ts"
import type { SessionState } from "../../domain/event.ts"
import { Busy, type Failure, InvalidRequest, NotFound } from "../../domain/failure.ts"
import { type RemoteRules, remoteAgent } from "../remote.ts"
import { mcpServers } from "./mcp-servers.ts"
import { type AcpSession, openSession, type SessionParts } from "./session.ts"

/** Sessions that are open on one connection at once. */
const sessionLimit = 64
/** Sessions in one answer of `session/list`, and names that are looked at for them. */
const pageSize = 50
const scanLimit = 1000

/** How long a cancelled conversation may take to come to rest before its removal is refused. */
const leaving = Schedule.spaced("100 millis").pipe(Schedule.intersect(Schedule.recurs(50)))

const namespace = "acp" as const

export interface RegistryParts {
  readonly sessions: SessionsService
  readonly rules: RemoteRules
  /** The directory of conversations that have none of their own. */
  readonly cwd: string
  /** Called with each session that opens, in its scope. */
  readonly onOpen: (session: AcpSession) => Effect.Effect<void, never, Scope.Scope>
}

/** Where a session is to work. */
export interface Surroundings {
  readonly cwd: string
  readonly mcpServers?: ReadonlyArray<McpServer>
  readonly additionalDirectories?: ReadonlyArray<string>
}

export interface Registry {
  readonly create: (
    around: Surroundings,
    agent: AgentDocument,
    parts: SessionParts,
  ) => Effect.Effect<AcpSession, Failure>
  /** Opens a stored session; `replays` tells the editor all that was said in it. */
  readonly open: (
    sessionId: string,
    around: Surroundings,
    parts: SessionParts,
    replays: boolean,
  ) => Effect.Effect<AcpSession, Failure>
  readonly fork: (sessionId: string, around: Surroundings, parts: SessionParts) => Effect.Effect<AcpSession, Failure>
  readonly find: (sessionId: string) => Effect.Effect<AcpSession, NotFound>
  readonly list: (
    principal: string,
    filter: { readonly cwd: string | null; readonly cursor: string | null },
  ) => Effect.Effect<{ readonly sessions: Array<SessionInfo>; readonly nextCursor: string | null }, Failure>
  readonly close: (sessionId: string) => Effect.Effect<boolean, Failure>
  readonly remove: (sessionId: string, principal: string) => Effect.Effect<void, Failure>
}

const invalid = (path: string, expected: string, actual: string) => new InvalidRequest({ path, expected, actual })

/** A fault of what the session is made of, in the words of the request. */
const ofRequest = (failure: Failure): Failure =>
  failure._tag === "InvalidRequest"
    ? new InvalidRequest({
        path: failure.path
          .replace(/^agent\.cwd/, "cwd")
          .replace(/^servers/, "mcpServers")
          .replace(/^agent\./, "_meta."),
        expected: failure.expected,
        actual: failure.actual,
      })
    : failure

const checkAround = ({ additionalDirectories = [], cwd }: Surroundings): Effect.Effect<void, InvalidRequest> => {
  if (!isAbsolute(cwd)) return invalid("cwd", "an absolute path", JSON.stringify(cwd.slice(0, 200)))
  if (additionalDirectories.length === 0) return Effect.void
  return invalid("additionalDirectories", "none: a session works in one directory", `${additionalDirectories.length}`)
}

/** The same directory, whichever way its path is written. */
const samePath = (one: string, other: string): boolean => {
  const plain = (path: string) => normalize(path).replace(/(.)[/\\]$/, "$1")
  return plain(one) === plain(other)
}

const newId = (): string => `acp_${randomBytes(16).toString("base64url")}`

const encodeCursor = (name: string): string => Buffer.from(name).toString("base64url")

const decodeCursor = (cursor: string): Effect.Effect<string, InvalidRequest> => {
  const name = Buffer.from(cursor, "base64url").toString()
  return name !== "" && name.length <= 256 && encodeCursor(name) === cursor
    ? Effect.succeed(name)
    : Effect.fail(invalid("cursor", "the nextCursor of an earlier answer", JSON.stringify(cursor.slice(0, 60))))
}

export const makeRegistry = ({
  cwd: ownCwd,
  onOpen,
  rules,
  sessions,
}: RegistryParts): Effect.Effect<Registry, never, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const open = new Map<string, { readonly session: AcpSession; readonly scope: Scope.CloseableScope }>()

    const release = (sessionId: string): Effect.Effect<void> =>
      Effect.suspend(() => {
        const one = open.get(sessionId)
        open.delete(sessionId)
        return one === undefined ? Effect.void : Scope.close(one.scope, Exit.void)
      })

    const attach = (
      sessionId: string,
      { conversation_id, cwd }: SessionState,
      around: Surroundings,
      parts: SessionParts,
      replays: boolean,
    ): Effect.Effect<AcpSession, Failure> =>
      Effect.gen(function* () {
        yield* release(sessionId)
        if (open.size >= sessionLimit) {
          const detail = `expected at most ${sessionLimit} open sessions, close one with session/close`
          return yield* new Busy({ what: "connection", detail, retryAfterMs: null })
        }
        const target = { conversationId: conversation_id, principal: parts.principal }
        const given = around.mcpServers
        if (given !== undefined && (given.length > 0 || replays)) {
          yield* sessions.addMcpServers({ ...target, servers: mcpServers(given, around.cwd), replace: true })
        }
        const canonical = yield* Effect.promise(() => realpath(cwd ?? around.cwd).catch(() => around.cwd))
        const directory = { given: around.cwd, canonical }
        const place = { sessionId, conversationId: conversation_id, directory, replays }
        const own = yield* Scope.fork(scope, ExecutionStrategy.sequential)
        const opened = Effect.tap(openSession(parts, place), onOpen)
        const session = yield* Effect.onExit(Scope.extend(opened, own), (exit) =>
          Exit.isSuccess(exit) ? Effect.void : Scope.close(own, exit),
        )
        open.set(sessionId, { session, scope: own })
        return session
      })

    const findNamed = (sessionId: string, principal: string) =>
      sessionId.length > 256 || sessionId === ""
        ? Effect.fail(new NotFound({ what: `session ${JSON.stringify(sessionId.slice(0, 60))}` }))
        : sessions.findNamed({ namespace, name: sessionId, principal })

    /** The conversation of a stored session, at work where the editor says. */
    const stored = (sessionId: string, cwd: string, principal: string) =>
      Effect.gen(function* () {
        const { conversation_id: conversationId } = yield* findNamed(sessionId, principal)
        const state = yield* sessions.state({ conversationId, principal })
        if (state.cwd !== null && samePath(state.cwd, cwd)) return state
        return yield* sessions.configure({ conversationId, principal, agent: { cwd } })
      })

    const find = (sessionId: string): Effect.Effect<AcpSession, NotFound> =>
      Effect.suspend(() => {
        const one = open.get(sessionId)
        if (one !== undefined) return Effect.succeed(one.session)
        const what = `session ${JSON.stringify(sessionId.slice(0, 60))}, open on this connection (session/load opens a stored one),`
        return Effect.fail(new NotFound({ what }))
      })

    return {
      create: (around, agent, parts) =>
        Effect.gen(function* () {
          yield* checkAround(around)
          const name = newId()
          const chosen = yield* remoteAgent({ ...agent, cwd: around.cwd }, rules, true)
          const { session } = yield* sessions.openNamed({
            namespace,
            name,
            agent: chosen,
            title: null,
            principal: parts.principal,
          })
          return yield* attach(name, session, around, parts, false)
        }).pipe(Effect.mapError(ofRequest)),
      open: (sessionId, around, parts, replays) =>
        Effect.gen(function* () {
          yield* checkAround(around)
          const state = yield* stored(sessionId, around.cwd, parts.principal)
          return yield* attach(sessionId, state, around, parts, replays)
        }).pipe(Effect.mapError(ofRequest)),
      fork: (sessionId, around, parts) =>
        Effect.gen(function* () {
          yield* checkAround(around)
          const { principal } = parts
          const { conversation_id: conversationId } = yield* findNamed(sessionId, principal)
          const name = newId()
          const state = yield* sessions.fork({
            conversationId,
            principal,
            entryId: null,
            agent: { cwd: around.cwd },
            title: null,
            requestId: name,
          })
          yield* sessions.setName({ namespace, name, conversationId: state.conversation_id, principal })
          return yield* attach(name, state, around, parts, false)
        }).pipe(Effect.mapError(ofRequest)),
      find,
      list: (principal, { cursor, cwd }) =>
        Effect.gen(function* () {
          const found: Array<SessionInfo> = []
          let before = cursor === null ? null : yield* decodeCursor(cursor)
          for (let seen = 0; seen < scanLimit; ) {
            const rows = yield* sessions.listNamed({ namespace, principal, before, limit: pageSize })
            for (const row of rows) {
              before = row.name
              const where = row.cwd ?? ownCwd
              if (cwd !== null && !samePath(where, cwd)) continue
              const updatedAt = new Date(row.updated_at).toISOString()
              found.push({ sessionId: row.name, cwd: where, title: row.title, updatedAt })
              if (found.length === pageSize) return { sessions: found, nextCursor: encodeCursor(row.name) }
            }
            if (rows.length < pageSize) return { sessions: found, nextCursor: null }
            seen += rows.length
          }
          return { sessions: found, nextCursor: before === null ? null : encodeCursor(before) }
        }),
      close: (sessionId) =>
        Effect.gen(function* () {
          const one = open.get(sessionId)
          if (one === undefined) return false
          yield* one.session.cancel(true)
          yield* release(sessionId)
          return true
        }),
      remove: (sessionId, principal) =>
        Effect.gen(function* () {
          const { conversation_id: conversationId } = yield* findNamed(sessionId, principal)
          const target = { conversationId, principal }
          yield* sessions.cancel(target)
          yield* release(sessionId)
          yield* sessions.remove(target).pipe(
            Effect.retry({ schedule: leaving, while: ({ _tag }) => _tag === "Busy" }),
            Effect.catchTag("NotFound", () => Effect.succeed({ removed: true })),
          )
          yield* sessions.setName({ namespace, name: sessionId, conversationId: null, principal })
        }),
    }
  })
