/**
 * The task engine through its service: phases, steps, children, waits, aborts, as an application sees them.
 */
import { Effect, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { defineTask, Step } from "../../../src/actors/task/index.ts"
import { memoryDatabase } from "../../../src/storage/memory/store.ts"
import { live, run } from "./harness.ts"

const count = defineTask({
  kind: "test.count",
  version: 1,
  input: Schema.Struct({ to: Schema.Number }),
  checkpoint: Schema.Union(Schema.Struct({ phase: Schema.Literal("count"), at: Schema.Number })),
  result: Schema.Number,
  initial: () => ({ phase: "count" as const, at: 0 }),
  phases: {
    count: (task) =>
      Effect.succeed(
        task.checkpoint.at >= task.input.to
          ? Step.complete(task.checkpoint.at)
          : Step.next({ phase: "count" as const, at: task.checkpoint.at + 1 }),
      ),
  },
})

describe("a task", () => {
  it("runs its phases to the end and gives its typed result", () =>
    run(
      live(memoryDatabase(), (tasks) =>
        Effect.gen(function* () {
          yield* tasks.register(count)
          const id = yield* tasks.start(count, { to: 3 })
          expect(yield* tasks.outcome(count, id)).toEqual({ status: "completed", result: 3 })
          expect((yield* tasks.state(id)).task).toMatchObject({ status: "terminal", node: null, crashes: 0 })
        }),
      ),
    ))
})
