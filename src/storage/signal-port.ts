/**
 * Signals between the nodes of one database. Nothing depends on them: whoever waits for one looks by itself as well, only later. Without a
 * cluster there is none to tell.
 */
import { Context, type Effect, type Scope } from "effect"
import type { Signal } from "../domain/signal.ts"

export interface SignalsService {
  /** Tells the other nodes soon, or never. Does not wait. */
  readonly tell: (signals: ReadonlyArray<Signal>) => void
  /** What other nodes tell, until the scope closes. Null: some may have been lost. */
  readonly listen: (heard: (signal: Signal | null) => void) => Effect.Effect<void, never, Scope.Scope>
}

export class Signals extends Context.Tag("super-pi/Signals")<Signals, SignalsService>() {}
