/**
 * The ActorSystem service and its layer: the tree of actors of one process or test.
 */
import { Clock, Context, DefaultServices, Effect, Layer } from "effect"
import { type AnyFiber, fiberRefsOf } from "./effect-internals.ts"
import { Kernel } from "./kernel.ts"
import type { ActorSystemService } from "./system-service.ts"
import { clockTimers, liveTimers } from "./timers.ts"

export interface ActorSystemOptions {
  /** Shown in logs; default `super-pi`. */
  readonly name?: string
}

export class ActorSystem extends Context.Tag("super-pi/ActorSystem")<ActorSystem, ActorSystemService>() {
  /**
   * A system whose guardian stops every actor when the layer is released. It keeps the time of the Clock that is current when the
   * layer is built.
   */
  static layer(options: ActorSystemOptions = {}): Layer.Layer<ActorSystem> {
    return Layer.scoped(
      ActorSystem,
      Effect.acquireRelease(makeKernel(options), (kernel) => kernel.close()),
    )
  }
}

const makeKernel = ({ name = "super-pi" }: ActorSystemOptions): Effect.Effect<Kernel> =>
  Effect.withFiberRuntime<Kernel>((fiber) =>
    Effect.map(Clock.clockWith(Effect.succeed), (clock) => {
      const live = Context.unsafeGet(DefaultServices.liveServices, Clock.Clock)
      return new Kernel(name, fiberRefsOf(fiber as AnyFiber), (kernel) =>
        clock === live ? liveTimers : clockTimers(clock, (effect) => interruptible(kernel, effect)),
      )
    }),
  )

const interruptible = (kernel: Kernel, effect: Effect.Effect<void>) => {
  const fiber = kernel.fork(effect, kernel.env)
  return () => fiber.unsafeInterruptAsFork(fiber.id())
}
