/**
 * A task that does what its input says: effects (each a memo), a sleep, children, an end. For the tests of deaths and the properties.
 */
import { Effect, Schema } from "effect"
import { defineTask, Step, type TaskDefinition } from "../../../src/actors/task/index.ts"
import { TaskId } from "../../../src/domain/ids.ts"
import type { Life } from "./lives.ts"

export interface Plan {
  readonly effects: number
  readonly sleeps: boolean
  readonly children: ReadonlyArray<Plan>
  readonly policy: "allSettled" | "failFast"
  readonly background: boolean
  readonly end: "complete" | "fail" | "defect"
}

/** What happened in the world, over all lives. */
export interface World {
  /** Runs of each effect, by `task/key`. */
  readonly effects: Map<string, number>
  /** Idempotency keys that each effect was done with. */
  readonly keys: Map<string, Set<string>>
  /** Tasks whose abort handler ran, in order. */
  readonly undone: Array<number>
  readonly faults: Array<string>
}

export const newWorld = (): World => ({ effects: new Map(), keys: new Map(), undone: [], faults: [] })

const PlanSchema: Schema.Schema<Plan> = Schema.Struct({
  effects: Schema.Number,
  sleeps: Schema.Boolean,
  children: Schema.Array(Schema.suspend((): Schema.Schema<Plan> => PlanSchema)),
  policy: Schema.Literal("allSettled", "failFast"),
  background: Schema.Boolean,
  end: Schema.Literal("complete", "fail", "defect"),
})

/** Its effects, and how its children ended. */
const Result = Schema.Struct({ effects: Schema.Array(Schema.String), children: Schema.Array(Schema.String) })
type Result = typeof Result.Type

/** The definition for one life. `onUndo` looks at the database when an abort handler starts. */
export const planned = (life: Life, world: World, onUndo: (id: TaskId) => ReadonlyArray<string> = () => []) => {
  const definition: TaskDefinition<Plan, Result, string, never> = defineTask({
    kind: "test.plan",
    version: 1,
    input: PlanSchema,
    checkpoint: Schema.Union(
      Schema.Struct({ phase: Schema.Literal("work") }),
      Schema.Struct({ phase: Schema.Literal("delegate") }),
      Schema.Struct({ phase: Schema.Literal("end"), children: Schema.Array(TaskId) }),
    ),
    result: Result,
    error: Schema.String,
    initial: () => ({ phase: "work" as const }),
    phases: {
      work: ({ id, input }, runtime) =>
        Effect.gen(function* () {
          for (let at = 0; at < input.effects; at++) {
            const name = `${id}/${at}`
            const key = yield* runtime.idempotencyKey(`effect ${at}`)
            const perform = life.effect(() => {
              world.effects.set(name, (world.effects.get(name) ?? 0) + 1)
              world.keys.set(name, (world.keys.get(name) ?? new Set()).add(key))
            })
            const value = yield* runtime.memo(String(at), Effect.as(perform, `${name} ${key}`), Schema.String)
            if (value !== `${name} ${key}`) world.faults.push(`memo ${name}: ${value} under ${key}`)
          }
          return input.sleeps ? Step.sleep({ ms: 1 }, { phase: "delegate" }) : Step.next({ phase: "delegate" })
        }),
      delegate: ({ input }, runtime) =>
        Effect.gen(function* () {
          const children: Array<TaskId> = []
          for (const plan of input.children) {
            const child = yield* runtime.spawn(definition, plan, { background: plan.background })
            if (!plan.background) children.push(child)
          }
          return Step.wait({ on: children, policy: input.policy }, { phase: "end", children })
        }),
      end: ({ checkpoint, id, input }, runtime) =>
        Effect.gen(function* () {
          const outcomes = yield* runtime.outcomes(checkpoint.children)
          if (outcomes.includes(null)) world.faults.push(`task ${id} went on before its children had ended`)
          if (input.end === "defect") return yield* Effect.dieMessage("a bug")
          if (input.end === "fail") return yield* Effect.fail("no luck")
          const effects = Array.from({ length: input.effects }, (_, at) => `${id}/${at}`)
          return Step.complete({ effects, children: outcomes.map((outcome) => outcome?.status ?? "open") })
        }),
    },
    abort: ({ id }) =>
      life.effect(() => {
        world.faults.push(...onUndo(id))
        world.undone.push(id)
      }),
  })
  return definition
}
