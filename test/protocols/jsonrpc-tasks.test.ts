/** The tasks of an application over JSON-RPC, also from a process that is attached: listed, followed by asking again with the tag, shown. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Deferred, Effect, Schema } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import { Sessions } from "../../src/actors/sessions.ts"
import { defineTask, Step, Tasks } from "../../src/actors/task/index.ts"
import { SuperPi } from "../../src/index.ts"
import { attach } from "../../src/protocols/attach/attach.ts"
import { serveAttach } from "../../src/protocols/attach/serve.ts"
import { serveUnix } from "../../src/protocols/jsonrpc/serve.ts"
import { connect } from "./line-client.ts"
import { protocolService } from "./service.ts"

const scratch = mkdtempSync(join(tmpdir(), "sp-rpc-tasks-"))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

interface Listed {
  readonly tag: string
  readonly tasks: ReadonlyArray<{ readonly id: number; readonly kind: string; readonly status: string }>
}

describe("the tasks of an application", () => {
  it(
    "are followed by asking again: an answer comes once something changed",
    () =>
      Effect.runPromise(
        Effect.scoped(
          Effect.gen(function* () {
            const release = yield* Deferred.make<void>()
            const Parcel = defineTask({
              kind: "shop.parcel",
              version: 1,
              input: Schema.Struct({ to: Schema.String }),
              checkpoint: Schema.Struct({ phase: Schema.Literal("send") }),
              result: Schema.String,
              error: Schema.String,
              initial: () => ({ phase: "send" as const }),
              phases: { send: () => Effect.as(Deferred.await(release), Step.complete("sent")) },
            })
            yield* Effect.gen(function* () {
              const sessions = yield* Sessions
              const path = join(scratch, "rpc")
              yield* serveUnix(path, protocolService(sessions))
              const client = yield* Effect.promise(() => connect(path))
              yield* Effect.addFinalizer(() => Effect.sync(() => client.destroy()))
              const list = (params: object) =>
                Effect.promise(async () => {
                  const { error, result } = await client.request("task.list", params)
                  if (error !== undefined) throw new Error(error.message)
                  return result as unknown as Listed
                })
              const none = yield* list({})
              expect(none.tasks).toEqual([])

              const waiting = yield* Effect.fork(list({ unless: none.tag }))
              const tasks = yield* Tasks
              const id = yield* tasks.start(Parcel, { to: "Ada" })
              const begun = yield* waiting
              expect(begun.tasks).toMatchObject([{ id, kind: "shop.parcel" }])
              expect(begun.tag).not.toBe(none.tag)
              // What is asked with an old tag is answered at once.
              expect((yield* list({ unless: none.tag })).tasks).toMatchObject([{ id }])
              const shown = yield* Effect.promise(() => client.request("task.show", { taskId: id }))
              expect(shown.result).toMatchObject({ task: { id, input: { to: "Ada" }, requestId: null }, owned: [] })

              const socket = join(scratch, "attach")
              const self = { program: "super-pi" as const, version: "1", pid: process.pid, instance: "owner" }
              yield* serveAttach({ path: socket, sessions, self })
              const attached = yield* attach({ socket, self: { ...self, instance: "client" } })
              const known = yield* attached.sessions.tasks({ unless: null })
              expect(known.tasks).toMatchObject([{ id, kind: "shop.parcel", status: "running" }])
              const ending = yield* Effect.fork(attached.sessions.tasks({ unless: known.tag }))
              yield* Deferred.succeed(release, undefined)
              expect((yield* ending).tasks).toEqual([])
              const { task } = yield* attached.sessions.task({ taskId: id })
              expect(task).toMatchObject({ status: "terminal", outcome: { status: "completed", result: "sent" } })
              const missing = yield* Effect.promise(() => client.request("task.show", { taskId: 999 }))
              expect(missing.error).toMatchObject({ code: -32004 })
            }).pipe(Effect.provide(SuperPi.layer({ storage: "memory", models: { env: {} }, tasks: [Parcel] })))
          }),
        ),
      ),
    60_000,
  )
})
