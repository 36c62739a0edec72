/** A node that is about to join asks those that are there whether they would hear it. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Logger, LogLevel, Redacted, Scope } from "effect"
import { renderHostPort } from "../../../src/domain/host-port.ts"
import { checkMembers } from "../../../src/protocols/peers/check.ts"
import { node, options } from "./support.ts"

describe("a node that is about to join", () => {
  it.scopedLive("may, where the members take it or do not answer now", () =>
    Effect.gen(function* () {
      const two = yield* node(2)
      const life = yield* Scope.make()
      const gone = yield* Scope.extend(node(3), life)
      yield* Scope.close(life, Exit.void)
      yield* checkMembers([], options(1))
      yield* checkMembers([two.address, gone.address], options(1))
    }),
  )

  it.scopedLive("may not, where its secret is not that of a member", () =>
    Effect.gen(function* () {
      const two = yield* node(2)
      const three = yield* node(3, { secret: Redacted.make("another secret, long enough") })
      const fault = yield* Effect.flip(checkMembers([two.address, three.address], options(1)))
      expect(fault.message).toBe(
        `the member at ${renderHostPort(three.address)}: it does not accept our cluster secret; SUPER_PI_CLUSTER_SECRET must be the same on every node`,
      )
    }).pipe(Logger.withMinimumLogLevel(LogLevel.None)),
  )
})
