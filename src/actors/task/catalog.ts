/**
 * The definitions that are registered, each with the services that its phases need.
 */
import { Context, Effect, Either } from "effect"
import type { TaskRow } from "./board.ts"
import type { TaskCode, TaskDefinition } from "./define.ts"
import type { Prepared } from "./events.ts"

export class Catalog {
  private readonly known = new Map<string, TaskCode<never>>()

  /** The newest registration of a kind counts. */
  add<Input, A, E, R>(definition: TaskDefinition<Input, A, E, R>, services: Context.Context<R>): void {
    const { code } = definition
    const { undo } = code
    const within = (context: Context.Context<never>) => Context.merge(context, services)
    this.known.set(code.kind, {
      ...code,
      run: (task, runtime) => Effect.mapInputContext(code.run(task, runtime), within),
      undo: undo === null ? null : (task, runtime) => Effect.mapInputContext(undo(task, runtime), within),
    })
  }

  get(kind: string): TaskCode<never> | undefined {
    return this.known.get(kind)
  }

  /** Why the loaded code cannot run a task, or null. */
  blockedOf({ kind, version }: Pick<TaskRow, "kind" | "version">): string | null {
    const code = this.known.get(kind)
    if (code === undefined) return `no definition of ${kind} is registered`
    if (version > code.version)
      return `it was stored by version ${version} of ${kind}, the code is version ${code.version}`
    if (version < code.version && code.migrate === null) {
      return `it was stored by version ${version} of ${kind}, and version ${code.version} has no migrate`
    }
    return null
  }

  prepare(row: TaskRow): Prepared {
    const reason = this.blockedOf(row)
    const code = this.known.get(row.kind)
    if (reason !== null || code === undefined) return { type: "blocked", reason: reason ?? "" }
    const undo = code.undo !== null
    const { checkpoint, input, version } = row
    if (version === code.version || code.migrate === null) return { type: "run", row, undo }
    return Either.match(code.migrate({ version, input, checkpoint }), {
      onLeft: (why): Prepared => ({ type: "park", reason: `migration from version ${version}: ${why}` }),
      onRight: (migrated): Prepared => ({ type: "run", row: { ...row, ...migrated }, undo }),
    })
  }
}
