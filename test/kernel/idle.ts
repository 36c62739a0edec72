/**
 * Run by memory.test.ts in a process of its own with --expose-gc: bytes per actor that has handled a message and is idle, bytes per
 * actor that are left after all have stopped, and what keeps the process alive while they are idle.
 */
import { Effect } from "effect"
import { type ActorRef, ActorSystem, behavior, spawn, stop, tell } from "../../src/actors/kernel/index.ts"

const n = 10_000
const { gc } = globalThis
if (gc === undefined) throw new Error("expected --expose-gc")

const used = () => {
  gc()
  gc()
  return process.memoryUsage().heapUsed
}
const settled = Effect.async<void>((resume) => void setImmediate(() => resume(Effect.void)))

const quiet = behavior<number, "tick">({ init: () => 0, receive: (n) => Effect.succeed(n + 1) })

/** Spawns, uses and keeps them; the array of refs is made before the measurement. */
const round = (refs: Array<ActorRef<"tick">>) =>
  Effect.gen(function* () {
    const parent = yield* spawn(quiet)
    const before = used()
    for (let i = 0; i < n; i++) refs[i] = yield* spawn(quiet, { parent })
    for (const ref of refs) {
      yield* tell(ref, "tick")
      yield* tell(ref, "tick")
    }
    yield* settled
    const idle = used()
    const resources = process.getActiveResourcesInfo()
    yield* stop(parent)
    refs.fill(parent)
    yield* settled
    return { perActor: (idle - before) / n, left: (used() - before) / n, resources }
  })

const main = Effect.gen(function* () {
  const refs = new Array<ActorRef<"tick">>(n)
  yield* round(refs) // compiles, and grows what is kept for reuse
  return yield* round(refs)
})
console.log(JSON.stringify(await Effect.runPromise(Effect.provide(main, ActorSystem.layer()))))
