/**
 * The task engine on several nodes in the test's process, over one database.
 */
import { Context, Effect, Exit, Layer, Logger, Schema, Scope } from "effect"
import { ActorSystem } from "../../../src/actors/kernel/index.ts"
import { defineTask, Step, Tasks, type TasksService } from "../../../src/actors/task/index.ts"
import { ClusterStore } from "../../../src/storage/cluster-port.ts"
import { Signals } from "../../../src/storage/signal-port.ts"
import { Store } from "../../../src/storage/store.ts"
import { Placement } from "../../../src/supervisors/cluster/placement.ts"
import { tasksLayer } from "../../../src/supervisors/tasks.ts"
import type { ClusterNode } from "../../support/memory-cluster.ts"

export interface TaskNode extends ClusterNode {
  readonly tasks: TasksService
  /** A clean stop. */
  readonly close: Effect.Effect<void>
}

/** The engine of a node, until the scope closes. */
export const engineOn = (node: ClusterNode): Effect.Effect<TaskNode, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const close = Scope.close(scope, Exit.void)
    yield* Effect.addFinalizer(() => close)
    const services = Layer.mergeAll(
      Layer.succeed(Store, node.store),
      Layer.succeed(ClusterStore, node.places),
      Layer.succeed(Placement, node.placement),
      Layer.succeed(Signals, node.signals),
      ActorSystem.layer(),
    )
    const context = yield* Layer.buildWithScope(Layer.provide(tasksLayer({ node: node.name }), services), scope)
    return { ...node, tasks: Context.get(context, Tasks), close }
  })

/** What the phases of {@link line} did, and what they wait for. */
export class World {
  readonly did: Array<string> = []
  private readonly gates = new Map<string, () => void>()
  private readonly opened = new Set<string>()
  private watchers: Array<() => void> = []

  note(what: string): void {
    this.did.push(what)
    for (const look of this.watchers.splice(0)) look()
  }

  /** A phase of a task ran on a node. */
  done(node: string, task: string, phase: string): Effect.Effect<void> {
    return Effect.sync(() => this.note(`${node} ${task} ${phase}`))
  }

  /** Until somebody opens it. */
  gate(name: string): Effect.Effect<void> {
    return Effect.async<void>((resume) => {
      if (this.opened.has(name)) resume(Effect.void)
      else this.gates.set(name, () => resume(Effect.void))
    })
  }

  open(name: string): void {
    this.opened.add(name)
    this.gates.get(name)?.()
  }

  /** Until something was done. */
  until(what: string): Effect.Effect<void> {
    return Effect.async<void>((resume) => {
      const look = () => {
        if (this.did.includes(what)) resume(Effect.void)
        else this.watchers.push(look)
      }
      look()
    })
  }
}

/** A task of three phases on node `name`; each notes where it runs, and the second waits at a gate. */
export const line = (world: World, node: string) =>
  defineTask({
    kind: "test.line",
    version: 1,
    input: Schema.Struct({ name: Schema.String }),
    checkpoint: Schema.Union(
      Schema.Struct({ phase: Schema.Literal("first") }),
      Schema.Struct({ phase: Schema.Literal("second") }),
      Schema.Struct({ phase: Schema.Literal("third") }),
    ),
    result: Schema.String,
    initial: () => ({ phase: "first" as const }),
    phases: {
      first: ({ input }) => Effect.as(world.done(node, input.name, "first"), Step.next({ phase: "second" as const })),
      second: ({ input }) =>
        Effect.gen(function* () {
          yield* world.done(node, input.name, "second")
          yield* world.gate(`${node} ${input.name}`)
          return Step.next({ phase: "third" as const })
        }),
      third: ({ input }) => Effect.as(world.done(node, input.name, "third"), Step.complete(`${input.name} on ${node}`)),
    },
  })

export const quiet = Effect.provide(Logger.remove(Logger.defaultLogger))

/** Lets everything that is ready run. */
export const settle: Effect.Effect<void> = Effect.repeatN(
  Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve))),
  10,
)
