/**
 * The check of effects in doubt.
 */
import { Effect } from "effect"
import { type Check, ok, warn } from "./check.ts"
import { readEffects } from "./effects.ts"
import { openReader } from "./node.ts"
import type { Paths } from "./paths.ts"

/** At most this many are counted. */
const counted = 100

/** Nothing where the database cannot be read: its own check says why. */
export const checkEffects = (paths: Paths): Effect.Effect<ReadonlyArray<Check>> =>
  Effect.scoped(
    Effect.gen(function* () {
      const store = yield* openReader({ ...paths, databaseNamed: false })
      if (store === null) return []
      const found = (yield* readEffects(store, paths, { running: false, limit: counted })).length
      if (found === 0) return [ok("effects", "none is in doubt")]
      const many =
        found === counted ? `${counted} or more effects are` : found === 1 ? "1 effect is" : `${found} effects are`
      return [warn("effects", `${many} in doubt`, "super-pi effects lists them and says how to settle one")]
    }),
  ).pipe(Effect.orElseSucceed((): ReadonlyArray<Check> => []))
