/** A client that loses its connection again and again, and comes back with the number of the last event it has: no gap, no double. */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import { Sessions } from "../../src/actors/sessions.ts"
import { SuperPi } from "../../src/index.ts"
import { serveUnix } from "../../src/protocols/jsonrpc/serve.ts"
import { connect } from "./line-client.ts"
import { protocolService } from "./service.ts"

const scratch = mkdtempSync(join(tmpdir(), "sp-rpc-resume-"))
let sockets = 0

describe("a watch that is resumed", () => {
  it.scopedLive("gives every event once and in order, wherever its connections break", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const path = join(scratch, `s${++sockets}`)
      yield* serveUnix(path, protocolService(sessions))
      const round = async (breaks: ReadonlyArray<number>) => {
        const driver = await connect(path)
        const opened = await driver.request("session.open", {})
        const conversationId = Number(opened.result?.conversation_id)
        const seen: Array<number> = []
        let snapshots = 0
        let completed = false
        let working: Promise<unknown> | null = null
        for (let life = 0; !completed; life++) {
          const watcher = await connect(path)
          const after = seen.at(-1) ?? null
          watcher.send(
            `${JSON.stringify({ jsonrpc: "2.0", id: 0, method: "session.watch", params: { conversationId, after } })}\n`,
          )
          let heard = 0
          const limit = breaks[life] ?? Number.POSITIVE_INFINITY
          while (heard < limit && !completed) {
            const line = await watcher.next()
            if (line === null) throw new Error("the connection ended")
            const { params } = line
            if (params === undefined) continue
            for (const event of params.events) {
              heard++
              if (event.type === "snapshot") {
                snapshots++
                seen.push(event.seq_no)
              } else seen.push(event.seq_no)
              if (event.type === "turn_completed") completed = true
              if (heard >= limit || completed) break
            }
            const ack = { watchId: params.watchId, delivery: params.delivery }
            watcher.send(`${JSON.stringify({ jsonrpc: "2.0", method: "session.ack", params: ack })}\n`)
            working ??= driver.request("session.submit", { conversationId, content: "one two three four five six" })
          }
          watcher.destroy()
        }
        await working
        driver.destroy()
        return { seen, snapshots }
      }
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 8 }), async (breaks) => {
            const { seen, snapshots } = await round(breaks)
            expect(snapshots).toBe(1)
            // A snapshot carries the number of the last event that is in it.
            expect(seen).toEqual(seen.map((_, index) => (seen[0] ?? 0) + index))
          }),
          { numRuns: 25 },
        ),
      )
    }).pipe(
      Effect.provide(SuperPi.layer({ storage: "memory", models: { env: {} }, defaults: { model: "mock/echo" } })),
    ),
  )
})
