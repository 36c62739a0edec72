/**
 * An Effect application with Super-Pi inside: a shop whose assistant reserves goods with the shop's own service. The application is stopped in the
 * middle of a reservation and started again; the conversation goes on where it was, and nothing is reserved twice.
 *
 * The scripted model needs no key. Run it from the project after `npm run build`, with Node.js 22.18 or newer: `node examples/embed.ts DATABASE`
 */
import { Console, Context, Effect, Layer, Schema, Stream } from "effect"
import { defineTool, type Event, type ModelsOption, SuperPi } from "super-pi"

/** The shop's own service. It outlives the assistant, as a warehouse would. */
class Warehouse extends Context.Tag("Warehouse")<
  Warehouse,
  {
    /** Books goods under a key, once per key. The answer to the first booking is lost on its way. */
    readonly reserve: (key: string, goods: string, count: number) => Effect.Effect<string>
    readonly booking: (key: string) => Effect.Effect<string | null>
  }
>() {
  static readonly live = Layer.sync(Warehouse, () => {
    const bookings = new Map<string, string>()
    return {
      reserve: (key, goods, count) =>
        Effect.suspend(() => {
          const known = bookings.get(key)
          if (known !== undefined) return Effect.succeed(known)
          bookings.set(key, `booking ${bookings.size + 1}: ${count} × ${goods}`)
          return Effect.never
        }),
      booking: (key) => Effect.sync(() => bookings.get(key) ?? null),
    }
  })
}

const said = (text: string) => ({ output: [{ type: "text" as const, text }] })

/** A tool that uses the shop's service. It cannot be repeated blindly, but can find out what became of a call. */
const reserve = defineTool({
  name: "reserve",
  description: "Reserves goods in the warehouse",
  parameters: Schema.Struct({
    goods: Schema.NonEmptyString,
    count: Schema.Int.pipe(Schema.positive()).annotations({ description: "how many" }),
  }),
  effects: ["net_write"],
  execute: ({ count, goods }, { emit, idempotencyKey }) =>
    Effect.gen(function* () {
      const warehouse = yield* Warehouse
      yield* emit("asking the warehouse\n")
      return said(yield* warehouse.reserve(idempotencyKey, goods, count))
    }),
  reconcile: (_, { idempotencyKey }) =>
    Effect.gen(function* () {
      const booking = yield* (yield* Warehouse).booking(idempotencyKey)
      return booking === null ? { happened: false } : { happened: true, result: said(booking) }
    }),
})

/** What the model says: a call of the tool, then an answer. */
const models = {
  env: {},
  script: {
    rules: [
      {
        match: "chairs",
        steps: [
          { text: "I reserve them.", tools: [{ name: "reserve", args: { goods: "chair", count: 4 } }] },
          { text: "Four chairs are reserved." },
        ],
      },
      { match: "Thank you", steps: [{ text: "You are welcome." }] },
    ],
  },
} satisfies ModelsOption

/** The layer needs what its tools need: the `Warehouse`. */
const superPi = (path: string) =>
  SuperPi.layer({
    storage: { path },
    models,
    defaults: { model: "script/shop" },
    tools: [reserve],
    builtinTools: false,
    program: "the shop",
  })

const show = (event: Event): Effect.Effect<void> => {
  switch (event.type) {
    case "tool_started":
      return Console.log(`  calls ${event.name} ${JSON.stringify(event.arguments)}`)
    case "tool_output":
      return Console.log(`  ${event.delta.trimEnd()}`)
    case "tool_completed":
      return Console.log(`  ${event.output.map((part) => (part.type === "text" ? part.text : "")).join("")}`)
    case "turn_completed":
      return Console.log(`  says: ${event.text}`)
    default:
      return Effect.void
  }
}

/** The same request ids give the same conversation and the same input, in every life of the application. */
const order = Effect.flatMap(SuperPi, (pi) => pi.open({ title: "an order", requestId: "order-17" }))
const prompt = ["Please reserve 4 chairs.", { requestId: "order-17-1" }] as const

const firstLife = Effect.gen(function* () {
  yield* Console.log("first life")
  const conversation = yield* order
  const called = conversation.run(...prompt).pipe(
    Stream.tap(show),
    Stream.takeUntil((event) => event.type === "tool_output"),
  )
  yield* Stream.runDrain(called)
  yield* Console.log("  the application stops")
})

const secondLife = Effect.gen(function* () {
  yield* Console.log("second life")
  const conversation = yield* order
  const { text } = yield* conversation.ask(...prompt)
  yield* Console.log(`  the answer to the same input: ${text}`)
  const entries = yield* conversation.transcript
  const results = entries.flatMap((entry) => entry.model).filter((message) => message.role === "tool")
  for (const result of results) yield* Console.log(`  the result of the one call: ${JSON.stringify(result.content)}`)
  yield* conversation.run("Thank you!").pipe(Stream.runForEach(show))
})

const path = process.argv[2] ?? "shop.db"
const application = Effect.gen(function* () {
  yield* firstLife.pipe(Effect.provide(superPi(path)))
  yield* secondLife.pipe(Effect.provide(superPi(path)))
})

await Effect.runPromise(Effect.provide(application, Warehouse.live))
