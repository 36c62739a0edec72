/**
 * Lives of a node that dies on purpose: at a commit, before or after it reaches the database, or around an outside effect. A dead life reaches
 * neither the database nor the world any more.
 */
import { Deferred, Effect, FiberId, type Layer } from "effect"
import type { ActorSystem } from "../../../src/actors/kernel/index.ts"
import { Tasks, type TasksService } from "../../../src/actors/task/index.ts"
import type { Failure } from "../../../src/domain/failure.ts"
import { Fenced } from "../../../src/storage/errors.ts"
import type { MemoryDatabase } from "../../../src/storage/memory/store.ts"
import type { StoreService } from "../../../src/storage/store.ts"
import { nodeOn } from "./harness.ts"

export interface DeathPoint {
  readonly at: "commit" | "effect"
  /** Counted from 1 in each life. */
  readonly n: number
  readonly when: "before" | "after"
}

/** One life as the code under test sees it. */
export class Life {
  readonly counts = { commit: 0, effect: 0 }
  dead = false
  private readonly point: DeathPoint | null
  private readonly died = Deferred.unsafeMake<void>(FiberId.none)

  constructor(point: DeathPoint | null) {
    this.point = point
  }

  /** An effect on the world; dies around it, or is never done where the life is over. */
  effect(perform: () => void): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.dead) return Effect.never
      const n = ++this.counts.effect
      if (this.isAt("effect", n, "before")) return Effect.zipRight(this.die, Effect.never)
      perform()
      return this.isAt("effect", n, "after") ? Effect.zipRight(this.die, Effect.never) : Effect.void
    })
  }

  wrap(store: StoreService): StoreService {
    const over = new Fenced({ what: "memory", held: 0, current: 1 })
    return {
      ...store,
      mint: (kind, count) => Effect.suspend(() => (this.dead ? over : store.mint(kind, count))),
      commit: (commit) =>
        Effect.suspend(() => {
          if (this.dead) return over
          const n = ++this.counts.commit
          if (this.isAt("commit", n, "before")) return Effect.zipRight(this.die, over)
          return this.isAt("commit", n, "after")
            ? store.commit(commit).pipe(Effect.zipRight(this.die), Effect.zipRight(over))
            : store.commit(commit)
        }),
    }
  }

  /** Runs until `use` is done or the life is over (null). */
  run<A, E>(
    database: MemoryDatabase,
    use: (tasks: TasksService) => Effect.Effect<A, E>,
  ): Effect.Effect<A | null, E | Failure> {
    const node: Layer.Layer<Tasks | ActorSystem, Failure> = nodeOn(database, (store) => this.wrap(store))
    const over = Effect.as(Deferred.await(this.died), null)
    const used = Effect.flatMap(Tasks, use).pipe(
      // What fails because the life is over is its end, not a failure.
      Effect.catchAllCause((cause) => (this.dead ? over : Effect.failCause(cause))),
    )
    return Effect.race(used, over).pipe(
      Effect.provide(node),
      Effect.catchAllCause((cause) => (this.dead ? Effect.succeed(null) : Effect.failCause(cause))),
    )
  }

  private isAt(at: DeathPoint["at"], n: number, when: DeathPoint["when"]): boolean {
    const { point } = this
    return point !== null && point.at === at && point.n === n && point.when === when
  }

  private readonly die = Effect.suspend(() => {
    this.dead = true
    return Deferred.succeed(this.died, undefined)
  })
}
