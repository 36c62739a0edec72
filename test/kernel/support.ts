/**
 * Small actors that the kernel's tests share.
 */
import { Deferred, Effect, Logger } from "effect"
import {
  type ActorRef,
  ActorSystem,
  ask,
  type Behavior,
  behavior,
  type ReplyTo,
} from "../../src/actors/kernel/index.ts"

export type CounterMessage =
  | { readonly _tag: "Add"; readonly n: number }
  | { readonly _tag: "Get"; readonly reply: ReplyTo<number, string> }
  | { readonly _tag: "Refuse"; readonly reply: ReplyTo<number, string> }
  | { readonly _tag: "Crash"; readonly error: unknown }
  | { readonly _tag: "CrashAsked"; readonly reply: ReplyTo<number, string> }
  | { readonly _tag: "Throw" }

/** Counts; crashes when told to. */
export const counter: Behavior<number, CounterMessage> = behavior({
  name: "counter",
  init: () => 0,
  receive: (total, message) => {
    switch (message._tag) {
      case "Add":
        return Effect.succeed(total + message.n)
      case "Get":
        message.reply.succeed(total)
        return Effect.succeed(total)
      case "Refuse":
        message.reply.fail("refused")
        return Effect.succeed(total)
      case "Crash":
        return Effect.fail(message.error)
      case "CrashAsked":
        return Effect.fail("crashed while asked")
      case "Throw":
        throw new Error("thrown")
    }
  },
})

export const add = (n = 1): CounterMessage => ({ _tag: "Add", n })
export const crash = (error: unknown = "boom"): CounterMessage => ({ _tag: "Crash", error })
export const getTotal = (ref: ActorRef<CounterMessage>) =>
  ask(ref, (reply: ReplyTo<number, string>): CounterMessage => ({ _tag: "Get", reply }))

export type GateMessage =
  | { readonly _tag: "Hold"; readonly entered: Deferred.Deferred<void>; readonly release: Deferred.Deferred<void> }
  | { readonly _tag: "Note"; readonly text: string }
  | { readonly _tag: "Read"; readonly reply: ReplyTo<ReadonlyArray<string>> }

/** Notes what it gets; `Hold` keeps its handler suspended until released. */
export const gate = (options: { readonly capacity?: number; readonly log?: Array<string> } = {}) =>
  behavior<ReadonlyArray<string>, GateMessage>({
    name: "gate",
    ...(options.capacity === undefined ? {} : { capacity: options.capacity }),
    init: () => [],
    receive: (notes, message) => {
      switch (message._tag) {
        case "Hold":
          return Deferred.succeed(message.entered, undefined).pipe(
            Effect.zipRight(Deferred.await(message.release)),
            Effect.as(notes),
            Effect.onInterrupt(() => Effect.sync(() => void options.log?.push("interrupted"))),
          )
        case "Note":
          return Effect.succeed([...notes, message.text])
        case "Read":
          message.reply.succeed(notes)
          return Effect.succeed(notes)
      }
    },
    onStop: (_notes, reason) => Effect.sync(() => void options.log?.push(`stopped ${reason._tag}`)),
  })

/** Makes the gate hold, and returns once its handler is suspended. */
export const hold = Effect.fn(function* (
  ref: ActorRef<GateMessage>,
  send: (message: GateMessage) => Effect.Effect<void>,
) {
  const entered = yield* Deferred.make<void>()
  const release = yield* Deferred.make<void>()
  yield* send({ _tag: "Hold", entered, release })
  yield* Deferred.await(entered)
  return { ref, release: Deferred.succeed(release, undefined) }
})

export const note = (text: string): GateMessage => ({ _tag: "Note", text })
export const notes = (ref: ActorRef<GateMessage>) =>
  ask(ref, (reply: ReplyTo<ReadonlyArray<string>>): GateMessage => ({ _tag: "Read", reply }))

/** For properties: their crashes are many, and none is news. */
export const silently = Effect.provide(Logger.remove(Logger.defaultLogger))

export const withSystem = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provide(effect, ActorSystem.layer())
