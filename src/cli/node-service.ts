/**
 * `super-pi node`, and `node dist/node.js`: a node as a service, a member of a cluster where the environment says so.
 *
 *   configuration read (faults: one line each, exit 2) → opening → serving → draining (SIGTERM: no new turns, running ones end or move) →
 *   gateway closed → left, exit 0; a second signal ends it at once
 */
import { Clock, Effect, Runtime, Schedule } from "effect"
import type { ClusterService } from "../actors/cluster.ts"
import type { ClusterStatus } from "../domain/cluster.ts"
import type { Invocation } from "./arguments.ts"
import { ExitCode } from "./exit.ts"
import { gatewayLog } from "./gateway-log.ts"
import { clusterChanges, withoutProbes } from "./node-log.ts"
import * as option from "./options.ts"
import { runCommand } from "./runtime.ts"
import { openCounted, serveNode } from "./serve-gateway.ts"
import { readService, type Service } from "./service.ts"

/** Between two looks at the cluster, for the log. */
const lookEvery = "2 seconds"
/** For answers that were just written to reach their clients once nothing runs any more, in ms. */
const lastWordMs = 1_000
/** For leaving behind the drain, also while the database is away, in ms. */
const leaveMs = 20_000
/** A drain that does not come to an end is not waited for longer than this beyond its deadline, in ms. */
const patienceMs = 5_000

/** Logs how the cluster changes, until it is interrupted. */
const follow = ({ status }: ClusterService): Effect.Effect<void> =>
  Effect.suspend(() => {
    let was: ClusterStatus | null = null
    const look = Effect.flatMap(status, (is) => {
      const lines = clusterChanges(was, is)
      was = is
      return Effect.as(
        Effect.forEach(lines, (line) => Effect.logInfo(line)),
        is,
      )
    })
    return Effect.flatMap(look, ({ strategy }) =>
      strategy === "none" ? Effect.void : Effect.asVoid(Effect.repeat(look, Schedule.spaced(lookEvery))),
    )
  })

/** Takes no new turns and waits for those that run, within the deadline that it returns to whoever asks for what is left of it. */
const drained = ({ drain }: ClusterService, drainMs: number, begin: (deadline: number) => void) =>
  Effect.gen(function* () {
    begin((yield* Clock.currentTimeMillis) + drainMs)
    yield* Effect.logInfo(`draining: no new turns; running ones have ${Math.ceil(drainMs / 1000)} s`)
    const ended = yield* Effect.timeoutOption(Effect.interruptible(drain), drainMs + patienceMs)
    if (ended._tag === "None") yield* Effect.logWarning("the drain did not come to its end; leaving without it")
  })

const run = ({ gateway, options, settings }: Service, verbose: boolean) =>
  Effect.gen(function* () {
    yield* Effect.addFinalizer(() => Effect.logInfo("left"))
    const opened = yield* openCounted(options)
    const { cluster } = opened.node
    const { drainMs } = settings.cluster
    let deadline = 0
    if (settings.gateway) {
      const write = Runtime.runSync(yield* Effect.runtime<never>())
      const clock = yield* Effect.clock
      const served = yield* serveNode(opened, options, {
        port: settings.port,
        host: settings.host,
        settings: gateway,
        log: withoutProbes(gatewayLog((line) => write(Effect.logInfo(line)), verbose)),
        drainMs: () => Math.max(lastWordMs, deadline - clock.unsafeCurrentTimeMillis()),
      })
      yield* Effect.logInfo(`serving on ${served.url} (${served.tokens ? "with a token" : "without a token"})`)
    }
    // Added last, so that it is what a signal runs first.
    yield* Effect.addFinalizer(() =>
      drained(cluster, drainMs, (at) => {
        deadline = at
      }),
    )
    yield* Effect.forkScoped(follow(cluster))
    return yield* Effect.never
  })

export const main = async (invocation: Invocation): Promise<number> => {
  const service = await readService(invocation)
  const command = () => run(service, invocation.get(option.verbose) === true)
  return runCommand(command, ExitCode.ok, service.options.env, service.settings.cluster.drainMs + leaveMs)
}
