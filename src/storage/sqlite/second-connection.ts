/**
 * The connection beside the writer's on which an owner reads what is not hot, through the stock SQL client. It is opened, and the client
 * loaded, by the first read that needs it.
 */
import { Effect, Exit, Scope } from "effect"
import type { StorageUnavailable } from "../errors.ts"
import type { Client } from "./client.ts"
import { closed, unavailable } from "./failures.ts"

export interface SecondConnection {
  /** Opens it where that was not done. One that failed to open is tried again by the next read. */
  readonly client: Effect.Effect<Client, StorageUnavailable>
  /** To be closed before the writer, so that the writer's connection is the last one and writes the log back into the file. */
  readonly close: Effect.Effect<void>
}

export const secondConnection = (location: string): Effect.Effect<SecondConnection> =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const turn = yield* Effect.makeSemaphore(1)
    let state: Client | "unopened" | "closed" = "unopened"

    const open = Effect.gen(function* () {
      const { openClient } = yield* Effect.promise(() => import("./client.ts"))
      const client = yield* Scope.extend(openClient(location, { readonly: true }), scope)
      if (state !== "closed") state = client
      return client
    }).pipe(
      Effect.uninterruptible,
      Effect.mapError((cause) => unavailable(location, cause)),
    )
    const use = (then: Effect.Effect<Client, StorageUnavailable>) =>
      Effect.suspend((): Effect.Effect<Client, StorageUnavailable> => {
        if (state === "closed") return closed(location)
        return state === "unopened" ? then : Effect.succeed(state)
      })
    return {
      client: use(turn.withPermits(1)(use(open))),
      close: Effect.suspend(() => {
        state = "closed"
        return Scope.close(scope, Exit.void)
      }),
    }
  })
