/**
 * Names of live actors, unique in one system.
 */
import { Effect, Option } from "effect"
import { type Cell, cellOf } from "./cell.ts"
import { NameTaken } from "./errors.ts"
import type { ActorRef } from "./ref.ts"
import type { Registry } from "./system-service.ts"

export class NameRegistry implements Registry {
  private readonly cells = new Map<string, Cell>()

  /** A dead actor is not registered: its name would never be freed. */
  readonly register = (name: string, ref: ActorRef<never>): Effect.Effect<void, NameTaken> =>
    Effect.suspend(() => {
      const cell = cellOf(ref)
      const holder = this.cells.get(name)
      if (holder !== undefined && holder !== cell) return Effect.fail(new NameTaken({ name, holder: holder.path }))
      if (!cell.alive) return Effect.void
      this.cells.set(name, cell)
      cell.extras.registered ??= new Set()
      cell.extras.registered.add(name)
      return Effect.void
    })

  readonly unregister = (name: string): Effect.Effect<void> =>
    Effect.sync(() => {
      const cell = this.cells.get(name)
      if (cell !== undefined) this.release(name, cell)
      cell?.hasExtras?.registered?.delete(name)
    })

  readonly whereis = <M>(name: string): Effect.Effect<Option.Option<ActorRef<M>>> =>
    Effect.sync(() => {
      const cell = this.cells.get(name)
      return cell?.alive ? Option.some<ActorRef<M>>(cell) : Option.none()
    })

  readonly names: Effect.Effect<ReadonlyArray<string>> = Effect.sync(() => [...this.cells.keys()])

  /** Frees a name that `cell` holds. */
  release(name: string, cell: Cell): void {
    if (this.cells.get(name) === cell) this.cells.delete(name)
  }
}
