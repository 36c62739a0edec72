/** Forks, writes, resets and the queue over JSON-RPC, against a fake node: what is passed on, and what is refused before. */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { SessionsService } from "../../src/actors/sessions.ts"
import { serveUnix } from "../../src/protocols/jsonrpc/serve.ts"
import { makeFakeSessions } from "./fake-sessions.ts"
import { connect } from "./line-client.ts"
import { protocolService } from "./service.ts"

const scratch = mkdtempSync(join(tmpdir(), "sp-rpc-forks-"))
let sockets = 0

type Method = "write" | "reset" | "withdraw" | "fork" | "submission" | "submissions" | "submit"

/** A client, and what reached the sessions. */
const setup = Effect.gen(function* () {
  const fake = yield* makeFakeSessions({})
  const heard: Array<{ readonly method: Method; readonly payload: unknown }> = []
  const listening = <M extends Method>(method: M): SessionsService[M] => {
    const answer: (payload: never) => unknown = fake.sessions[method]
    const heardOf = (payload: never) => {
      heard.push({ method, payload })
      return answer(payload)
    }
    return heardOf as SessionsService[M]
  }
  const path = join(scratch, `s${++sockets}`)
  const sessions: SessionsService = {
    ...fake.sessions,
    write: listening("write"),
    reset: listening("reset"),
    withdraw: listening("withdraw"),
    fork: listening("fork"),
    submission: listening("submission"),
    submissions: listening("submissions"),
    submit: listening("submit"),
  }
  yield* serveUnix(path, protocolService(sessions))
  const client = yield* Effect.acquireRelease(
    Effect.promise(() => connect(path)),
    (open) => Effect.sync(() => open.destroy()),
  )
  const request = (method: string, params: unknown) => Effect.promise(() => client.request(method, params))
  yield* request("session.open", {})
  return { heard, request }
})

describe("session.write, session.reset, session.fork", () => {
  it.scopedLive("pass on what is given, and the rest as it is by default", () =>
    Effect.gen(function* () {
      const { heard, request } = yield* setup
      const conversationId = 1
      const edits = [{ type: "omit", entry: 5 }]
      expect(
        (yield* request("session.write", { conversationId, kind: "app.note", data: { a: 1 } })).result,
      ).toMatchObject({
        conversation_id: 1,
        status: "done",
      })
      yield* request("session.write", { conversationId, head: "self", edits, requestId: "r" })
      yield* request("session.reset", { conversationId })
      yield* request("session.reset", { conversationId, handoff: "go on" })
      expect((yield* request("session.fork", { conversationId, entryId: 7 })).result).toMatchObject({ state: "idle" })
      yield* request("session.submit", { conversationId, content: "x", entry: { kind: "app.said", data: null } })
      const as = { conversationId, principal: "local" }
      expect(heard).toEqual([
        {
          method: "write",
          payload: { ...as, kind: "app.note", data: { a: 1 }, model: [], head: null, edits: [], requestId: null },
        },
        { method: "write", payload: { ...as, kind: null, data: null, model: [], head: "self", edits, requestId: "r" } },
        { method: "reset", payload: { ...as, handoff: null, requestId: null } },
        { method: "reset", payload: { ...as, handoff: "go on", requestId: null } },
        { method: "fork", payload: { ...as, entryId: 7, agent: {}, title: null, requestId: null } },
        {
          method: "submit",
          payload: {
            ...as,
            content: [{ type: "text", text: "x" }],
            whenBusy: "followUp",
            entry: { kind: "app.said", data: null },
            requestId: null,
          },
        },
      ])
    }),
  )

  it.scopedLive.each([
    ["session.write", { kind: "app.x", edits: [{ type: "omit" }] }, "edits.0.entry"],
    [
      "session.write",
      { kind: "app.x", edits: [{ type: "replace", entry: 3, model: [{ role: "user" }] }] },
      "edits.0.model.0.content",
    ],
    ["session.write", { kind: "app.x", head: "start" }, "head"],
    ["session.write", { kind: 7 }, "kind"],
    ["session.write", { kind: "app.x", text: "no such field" }, "text"],
    ["session.reset", { handoff: 7 }, "handoff"],
    ["session.fork", { entryId: "newest" }, "entryId"],
    ["session.withdraw", {}, "submissionId"],
    ["session.submission", { submissionId: -1 }, "submissionId"],
  ] as const)("%s %j is refused and names the field", ([method, params, path]) =>
    Effect.gen(function* () {
      const { heard, request } = yield* setup
      const { error } = yield* request(method, { conversationId: 1, ...params })
      expect(error?.code).toBe(-32602)
      expect(error?.data).toMatchObject({ path })
      expect(heard).toEqual([])
    }),
  )
})

describe("the queue over JSON-RPC", () => {
  it.scopedLive("is listed, looked up and withdrawn", () =>
    Effect.gen(function* () {
      const { request } = yield* setup
      const conversationId = 1
      const { result } = yield* request("session.write", { conversationId, kind: "app.note", requestId: "w" })
      const submissionId = (result as { readonly submission_id: number }).submission_id
      expect((yield* request("session.submission", { conversationId, requestId: "w" })).result).toMatchObject({
        submission_id: submissionId,
        request_id: "w",
      })
      expect((yield* request("session.submissions", { conversationId })).result).toEqual([])
      const refused = yield* request("session.withdraw", { conversationId, submissionId })
      expect(refused.error).toMatchObject({ code: -32003, data: { rule: "submission_status" } })
      expect((yield* request("session.withdraw", { conversationId, submissionId: 99 })).error?.code).toBe(-32004)
    }),
  )
})
