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

/**
 * The service over a lock table, wherever that is. Each call has an id of its own; `release` is run on every way out, also when `request`
 * was interrupted or failed.
 */
export const locksOver = (
  request: (id: number, paths: ReadonlyArray<string>) => Effect.Effect<void>,
  release: (id: number) => Effect.Effect<void>,
): FileLocksService => {
  let last = 0
  return {
    withLock: (paths, effect) =>
      Effect.suspend(() => {
        const id = ++last
        return Effect.ensuring(Effect.zipRight(request(id, paths), effect), release(id))
      }),
  }
}

const inProcess = (): FileLocksService => {
  const table = new LockTable()
  const waiting = new Map<number, () => void>()
  const acquire = (id: number, paths: ReadonlyArray<string>) =>
    Effect.async<void>((resume) => {
      if (table.request(id, paths)) resume(Effect.void)
      else waiting.set(id, () => resume(Effect.void))
    })
  // Releasing a request that waits withdraws it.
  const release = (id: number) =>
    Effect.sync(() => {
      waiting.delete(id)
      for (const granted of table.release(id)) {
        waiting.get(granted)?.()
        waiting.delete(granted)
      }
    })
  return locksOver(acquire, release)
}
