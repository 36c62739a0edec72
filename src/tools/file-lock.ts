/**
 * File locks: one holder per canonical path. A request takes all its paths at once or waits; it waits behind every earlier request that
 * shares a path with it, so it is fair and cannot deadlock. Held from the grant to the end of the effect, however that ends.
 */
import { Context, Effect, Layer } from "effect"
import { LockTable } from "./lock-table.ts"

/** What {@link FileLocks} does. */
export interface FileLocksService {
  /** Runs `effect` while holding every path of `paths` (canonical, in any order, repeats allowed). Interruptible while it waits. */
  readonly withLock: <A, E, R>(paths: ReadonlyArray<string>, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** Locks on files, within this process. */
export class FileLocks extends Context.Tag("super-pi/FileLocks")<FileLocks, FileLocksService>() {
  /** Locks without an actor: for embedding and tests. */
  static readonly layer: Layer.Layer<FileLocks> = Layer.sync(FileLocks, () => inProcess())
}

const inProcess = (): FileLocksService => {
  const table = new LockTable()
  const waiting = new Map<number, () => void>()
  let last = 0
  const acquire = (id: number, paths: ReadonlyArray<string>) =>
    Effect.async<void>((resume) => {
      if (table.request(id, paths)) resume(Effect.void)
      else waiting.set(id, () => resume(Effect.void))
    })
  // Covers every way out, also an interruption while waiting: releasing a request that waits withdraws it.
  const release = (id: number) =>
    Effect.sync(() => {
      waiting.delete(id)
      for (const granted of table.release(id)) {
        waiting.get(granted)?.()
        waiting.delete(granted)
      }
    })
  return {
    withLock: (paths, effect) =>
      Effect.suspend(() => {
        const id = ++last
        return Effect.ensuring(Effect.zipRight(acquire(id, paths), effect), release(id))
      }),
  }
}
