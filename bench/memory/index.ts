/**
 * What is left of conversations that were touched once: the memory of a node after ten thousand of them have left it again, beside the same
 * node before.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { Effect, ManagedRuntime, Schedule } from "effect"
import { Sessions, type SessionsService } from "../../src/actors/sessions.ts"
import { text } from "../../src/domain/message.ts"
import type { TreeNode } from "../../src/domain/tree.ts"
import type { Row } from "../row.ts"
import { productLayer } from "../turn/product.ts"
import { promptText } from "../turn/turn.ts"

/** Conversations, each for one turn. */
const CONVERSATIONS = Number(process.env.BENCH_CONVERSATIONS ?? 10_000)
/** How many talk at once. */
const AT_ONCE = 50
/** Beforehand, so that code is compiled and caches have their size. */
const WARM = 300

/** One conversation: opened, asked once, left. */
const touch = (sessions: SessionsService) =>
  Effect.gen(function* () {
    const state = yield* sessions.open({ conversationId: null, agent: {}, title: null, requestId: null })
    const conversationId = state.conversation_id
    const receipt = yield* sessions.submit({ conversationId, content: [text(promptText(1))], requestId: null })
    const settled = yield* sessions.awaitSubmission({ conversationId, submissionId: receipt.submission_id })
    if (settled.status !== "done") yield* Effect.dieMessage(`the turn ended ${settled.status}`)
  })

const inMemory = (node: TreeNode): number =>
  (node.name === "machine" ? 1 : 0) + node.children.reduce((sum, child) => sum + inMemory(child), 0)

/** Waits until no conversation is in memory. */
const allGone = (sessions: SessionsService) =>
  Effect.filterOrFail(
    Effect.map(sessions.tree, inMemory),
    (count) => count === 0,
    () => "some are still there",
  ).pipe(Effect.retry(Schedule.spaced("100 millis")))

/** Bytes of the heap that are in use, and of buffers outside of it, after a full collection. */
const used = Effect.sync(() => {
  for (let round = 0; round < 4; round++) globalThis.gc?.()
  const { external, heapUsed, rss } = process.memoryUsage()
  return { heap: heapUsed + external, rss }
})

export const rows = async (): Promise<ReadonlyArray<Row>> => {
  const directory = mkdtempSync(path.join(tmpdir(), "super-pi-memory-"))
  const runtime = ManagedRuntime.make(productLayer(path.join(directory, "bench.db"), 200))
  const program = Effect.gen(function* () {
    const sessions = yield* Sessions
    const many = (count: number) =>
      Effect.forEach(Array.from({ length: count }), () => touch(sessions), {
        concurrency: AT_ONCE,
        discard: true,
      }).pipe(Effect.zipRight(allGone(sessions)))
    yield* many(WARM)
    const idle = yield* used
    yield* many(CONVERSATIONS)
    return { idle, after: yield* used }
  })
  try {
    const { after, idle } = await runtime.runPromise(program)
    const mebibyte = 1024 * 1024
    const row = (name: string, key: "heap" | "rss", target: string, met: boolean): Row => ({
      ...{ name: `${name}, ${CONVERSATIONS.toLocaleString("en-US")} conversations touched once`, unit: "MiB" },
      ...{ ours: after[key] / mebibyte, peer: idle[key] / mebibyte, ratio: idle[key] / after[key], target, met },
    })
    return [
      row("in use behind", "heap", "≤ 1.2 × the idle node", after.heap <= 1.2 * idle.heap),
      row("resident behind", "rss", "", true),
    ]
  } finally {
    await runtime.dispose()
    rmSync(directory, { recursive: true, force: true })
  }
}
