/**
 * Locks on the files of a shared workspace, across the nodes that mount it. Each path has one holder among all nodes of a database. Guarantees:
 * 1. A call gets all its paths or waits, interruptibly; nothing is held while it waits, so that calls never wait for each other in a circle.
 * 2. The locks go with the call, with the process, and with the connection that holds them.
 * 3. `sure` is asked right before a write: it fails where the locks were lost. A connection that breaks while the write itself is under way is
 *    told by the result of the call, not undone.
 */
import { Data, type Effect } from "effect"

/** The locks of a call cannot be had, or are not its own any more. */
export class PathLockLost extends Data.TaggedError("PathLockLost")<{ readonly reason: string }> {
  override get message() {
    return this.reason
  }
}

export interface PathLocksService {
  /**
   * Runs `use` while holding every one of `paths` (canonical). `sure` asks whoever keeps the locks whether they are still held, and rejects
   * with {@link PathLockLost} where they are not. Where they are lost, `use` is interrupted, and the call fails so.
   */
  readonly withLock: <A, E, R>(
    paths: ReadonlyArray<string>,
    use: (sure: () => Promise<void>) => Effect.Effect<A, E, R>,
  ) => Effect.Effect<A, E | PathLockLost, R>
}
