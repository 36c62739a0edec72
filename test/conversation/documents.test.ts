/**
 * The built-in documents as the conversation writes them: choices with their history, and the run in progress, staged and flushed.
 */
import { Effect, Either } from "effect"
import { describe, expect, it } from "vitest"
import {
  type Decision,
  defaultPolicy,
  type Env,
  type MachineEvent,
} from "../../src/actors/conversation/machine/data.ts"
import { decide } from "../../src/actors/conversation/machine/decide.ts"
import { agentDocument } from "../../src/domain/builtin-documents.ts"
import { replay } from "../../src/domain/document-revision.ts"
import type { DocumentId } from "../../src/domain/ids.ts"
import { makeDocuments } from "../../src/storage/documents/documents.ts"
import type { StoreService } from "../../src/storage/store.ts"
import { Driver } from "./driver.ts"
import { open, withNode } from "./harness.ts"

const rules = [{ text: "answer" }]

describe("the choices of a conversation", () => {
  it("are remembered as they were after every commit, the later ones as what changed", () => {
    let store: StoreService | null = null
    const wrapStore = (real: StoreService) => {
      store = real
      return real
    }
    return Effect.runPromise(
      withNode({ rules, wrapStore }, (sessions) =>
        Effect.gen(function* () {
          if (store === null) return expect.unreachable()
          const long = "Answer in the words of the house, and name the file and the line of whatever you speak of."
          const conversationId = yield* open(sessions)
          const wanted = [{ instructions: long }, { effort: "low" }, { effort: "high" }, { mode: "plan" }] as const
          const seqs: Array<number> = []
          for (const agent of wanted) {
            yield* sessions.configure({ conversationId, agent })
            const [record] = (yield* store.documents(conversationId)).filter((row) => row.kind === agentDocument.kind)
            if (record !== undefined) seqs.push(record.seq)
          }
          const [record] = (yield* store.documents(conversationId)).filter((row) => row.kind === agentDocument.kind)
          if (record === undefined) return expect.unreachable()
          const revisions = yield* store.documentRevisions(record.id, record.seq)
          expect(revisions.map((one) => one.type)).toEqual(["base", "delta", "delta", "delta"])
          expect(Either.getOrThrow(replay(revisions)).value).toEqual(record.value)
          const documents = makeDocuments(store)
          for (const [at, seq] of seqs.entries()) {
            const then = yield* documents.documentAt(
              agentDocument,
              { conversation: conversationId },
              seq as typeof record.seq,
            )
            expect(then).toMatchObject(Object.assign({}, ...wanted.slice(0, at + 1)))
          }
        }),
      ),
    )
  })

  it("that newer code wrote keep the conversation from starting, by name, and stay as they are", () => {
    const commits: Array<unknown> = []
    const newer = (store: StoreService): StoreService => ({
      ...store,
      documents: (id) => Effect.map(store.documents(id), (rows) => rows.map((row) => ({ ...row, version: 2 }))),
      commit: (commit) => {
        commits.push(commit)
        return store.commit(commit)
      },
    })
    return Effect.runPromise(
      withNode({ rules, wrapStore: newer }, (sessions) =>
        Effect.gen(function* () {
          const failure = yield* Effect.flip(
            sessions.open({ conversationId: null, agent: {}, title: null, requestId: null }),
          )
          expect(failure._tag).toBe("ServiceFailure")
          expect(failure.message).toContain("document pi.agent has version 2, this program knows up to 1")
          const before = commits.length
          yield* Effect.flip(sessions.state({ conversationId: 1 as never }))
          expect(commits.length).toBe(before)
        }),
      ),
    )
  })
})

describe("the run in progress", () => {
  const env: Env = {
    now: 1_000,
    ids: {
      entry: () => 900 as never,
      task: () => 900 as never,
      submission: () => 900 as never,
      document: () => 900 as DocumentId,
      job: () => 900 as never,
      conversation: () => 900 as never,
    },
    node: "test",
    fence: 1,
    random: () => 0,
    policy: defaultPolicy,
  }

  /** A driver whose model has begun to answer, and what each further event decides. */
  const streaming = () => {
    const driver = new Driver()
    driver.submit("one")
    driver.finish(0)
    const job = driver.jobs[0]
    if (job?.type !== "model") throw new Error("no model is asked")
    const send = (event: MachineEvent): Extract<Decision, { readonly type: "go" }> => {
      const decision = decide(driver.data, event, env)
      if (decision.type !== "go") throw new Error("postponed")
      driver.data = decision.data
      return decision
    }
    const piece = (delta: string) => send({ type: "text", token: job.token, delta })
    return { driver, send, piece, token: job.token }
  }

  const timers = (decision: Extract<Decision, { readonly type: "go" }>) =>
    decision.actions.flatMap((action) => (action.type === "timer" ? [[action.timer, action.ms]] : []))

  const live = (decision: Extract<Decision, { readonly type: "go" }>) =>
    decision.commit?.documents?.find((write) => write.kind === "pi.live")?.value

  it("is staged in memory with each piece, and flushed at most a second after the first that was not", () => {
    const { driver, piece, send } = streaming()
    const first = piece("Hel")
    expect(driver.data.run?.partial.text).toBe("Hel")
    expect(first.commit).toBe(null)
    expect(timers(first)).toEqual([["flush", 1_000]])
    // later pieces do not put the flush off
    expect(timers(piece("lo"))).toEqual([])
    expect(driver.data.run?.partial.text).toBe("Hello")
    expect(live(send({ type: "timer", timer: "flush" }))).toMatchObject({ generation: { text: "Hello" } })
    // nothing is staged: nothing is written, and the next piece begins the next second
    expect(send({ type: "timer", timer: "flush" }).commit).toBe(null)
    expect(timers(piece("!"))).toEqual([["flush", 1_000]])
    expect(live(send({ type: "timer", timer: "flush" }))).toMatchObject({ generation: { text: "Hello!" } })
  })

  it("is emptied by the commit that ends the turn, with what was not flushed in the answer, and no flush comes after it", () => {
    const { piece, send, token } = streaming()
    piece("Hel")
    send({ type: "timer", timer: "flush" })
    piece("lo")
    const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, reasoning: 0 }
    const content = [{ type: "text", text: "Hello" }] as const
    const last = send({ type: "responded", token, finished: { content, stopReason: "stop", usage } })
    expect(last.commit?.entries?.[0]?.model).toMatchObject([{ content }])
    expect(live(last)).toMatchObject({ generation: null, tools: {} })
    expect(last.actions).toContainEqual({ type: "clearTimer", timer: "flush" })
  })
})
