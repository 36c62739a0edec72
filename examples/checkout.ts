/**
 * A workflow beside conversations: a checkout with four payments. Shows children and `failFast`, a declined card, a cancelled checkout whose
 * payments are undone bottom-up, and a process that is killed while the payments run: the next one goes on, and nobody is charged twice.
 *
 * Run it with Node 22.6 or newer: npm run build && node --experimental-strip-types examples/checkout.ts
 */
import { spawn } from "node:child_process"
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Context, Effect, Layer, Schema, Stream, SubscriptionRef } from "effect"
import {
  Actors,
  applyGraphEvent,
  defineTask,
  SqliteStore,
  Step,
  type TaskGraph,
  TaskId,
  Tasks,
  tasksLayer,
} from "super-pi"

// ---- the outside world: a bank that keeps its books in a file ------------------------------------------------------------------

class Declined extends Schema.TaggedError<Declined>()("Declined", { card: Schema.String }) {}

/** One line of the books. `key` is the idempotency key: a charge that is asked for again under its key is not booked again. */
interface Booking {
  readonly type: "charged" | "repeated" | "refunded" | "released"
  readonly card: string
  readonly key: string
}

class Bank extends Context.Tag("Bank")<
  Bank,
  {
    readonly charge: (card: string, key: string) => Effect.Effect<void, Declined>
    /** Gives back what was charged under `key`, once; nothing where nothing was. */
    readonly refund: (card: string, key: string) => Effect.Effect<void>
    readonly note: (booking: Booking) => Effect.Effect<void>
    /** Done once `count` charges are in the books. */
    readonly charges: (count: number) => Effect.Effect<void>
  }
>() {}

const readBooks = (file: string): ReadonlyArray<Booking> =>
  existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line))
    : []

/** Cards whose name starts with `slow` get no answer while `hangs`; their charge may be booked all the same. An `empty` one is declined last. */
const bankAt = (file: string, hangs: boolean) =>
  Layer.effect(
    Bank,
    Effect.gen(function* () {
      const charged = () => readBooks(file).filter(({ type }) => type === "charged").length
      const count = yield* SubscriptionRef.make(charged())
      const note = (booking: Booking) =>
        Effect.suspend(() => {
          appendFileSync(file, `${JSON.stringify(booking)}\n`)
          return SubscriptionRef.set(count, charged())
        })
      const booked = (type: Booking["type"], key: string) =>
        readBooks(file).some((booking) => booking.type === type && booking.key === key)
      const charges = (least: number) =>
        count.changes.pipe(
          Stream.takeUntil((now) => now >= least),
          Stream.runDrain,
        )
      return {
        note,
        charges,
        charge: (card, key) =>
          Effect.gen(function* () {
            if (card === "empty") {
              yield* charges(3)
              return yield* new Declined({ card })
            }
            if (card === "slow and not booked" && hangs) return yield* Effect.never
            yield* note({ type: booked("charged", key) ? "repeated" : "charged", card, key })
            if (card.startsWith("slow") && hangs) return yield* Effect.never
          }),
        refund: (card, key) =>
          Effect.suspend(() =>
            booked("charged", key) && !booked("refunded", key) ? note({ type: "refunded", card, key }) : Effect.void,
          ),
      }
    }),
  )

// ---- the workflow --------------------------------------------------------------------------------------------------------------

const Payment = defineTask({
  kind: "shop.payment",
  version: 1,
  input: Schema.Struct({ card: Schema.String }),
  checkpoint: Schema.Union(Schema.Struct({ phase: Schema.Literal("charge") })),
  result: Schema.Struct({ card: Schema.String, key: Schema.String }),
  error: Declined,
  initial: () => ({ phase: "charge" as const }),
  phases: {
    charge: ({ input: { card } }, runtime) =>
      Effect.gen(function* () {
        const bank = yield* Bank
        const key = yield* runtime.idempotencyKey("charge")
        yield* runtime.memo("charge", bank.charge(card, key), Schema.Void)
        return Step.complete({ card, key })
      }),
  },
  // Aborted half-way, nobody knows whether the charge was booked; the bank does.
  abort: ({ input: { card } }, runtime) =>
    Effect.gen(function* () {
      const bank = yield* Bank
      yield* bank.refund(card, yield* runtime.idempotencyKey("charge"))
    }),
})

const Checkout = defineTask({
  kind: "shop.checkout",
  version: 1,
  input: Schema.Struct({ order: Schema.String, cards: Schema.Array(Schema.String) }),
  checkpoint: Schema.Union(
    Schema.Struct({ phase: Schema.Literal("pay") }),
    Schema.Struct({ phase: Schema.Literal("decide"), payments: Schema.Array(TaskId) }),
  ),
  result: Schema.Struct({ paid: Schema.Number }),
  error: Schema.String,
  initial: () => ({ phase: "pay" as const }),
  phases: {
    pay: ({ input }, runtime) =>
      Effect.gen(function* () {
        // The children start with the commit of this step, and with the ids that it remembers.
        const payments = yield* Effect.forEach(input.cards, (card) => runtime.spawn(Payment, { card }))
        return Step.wait({ on: payments, policy: "failFast" }, { phase: "decide", payments })
      }),
    decide: ({ checkpoint }, runtime) =>
      Effect.gen(function* () {
        const bank = yield* Bank
        const outcomes = yield* runtime.outcomesOf(Payment, checkpoint.payments)
        const paid = outcomes.flatMap((outcome) => (outcome.status === "completed" ? [outcome.result] : []))
        if (paid.length === outcomes.length) return Step.complete({ paid: paid.length })
        // Payments that were aborted have undone themselves; those that were through before are given back here.
        yield* Effect.forEach(paid, ({ card, key }) => bank.refund(card, key))
        const declined = outcomes.flatMap((outcome) => (outcome.status === "failed" ? [outcome.error.card] : []))
        return Step.fail(`declined: ${declined.join(", ")}`)
      }),
  },
  // Runs when every payment has ended: those that were under way have been refunded by then.
  abort: ({ checkpoint, input }, runtime) =>
    Effect.gen(function* () {
      const bank = yield* Bank
      const payments = checkpoint.phase === "decide" ? checkpoint.payments : []
      for (const outcome of yield* runtime.outcomesOf(Payment, payments)) {
        if (outcome.status === "completed") yield* bank.refund(outcome.result.card, outcome.result.key)
      }
      yield* bank.note({ type: "released", card: input.order, key: input.order })
    }),
})

// ---- the program ---------------------------------------------------------------------------------------------------------------

/** One life of a program with the workflow in it, on the database in `directory`. */
const shop = <A, E>(directory: string, hangs: boolean, use: Effect.Effect<A, E, Tasks | Bank>) => {
  const engine = tasksLayer().pipe(
    Layer.provide(SqliteStore.layer({ path: join(directory, "shop.db") })),
    Layer.provide(Actors.ActorSystem.layer()),
  )
  return Effect.gen(function* () {
    const tasks = yield* Tasks
    yield* tasks.register(Payment)
    yield* tasks.register(Checkout)
    return yield* use
  }).pipe(Effect.provide(Layer.merge(engine, bankAt(join(directory, "bank.jsonl"), hangs))))
}

const start = (order: string, cards: ReadonlyArray<string>) =>
  Effect.flatMap(Tasks, (tasks) => tasks.start(Checkout, { order, cards }, { requestId: order }))

const finish = (id: TaskId) => Effect.flatMap(Tasks, (tasks) => tasks.outcome(Checkout, id))

/** Done once `count` payments are open and `charges` charges booked. */
const underWay = (count: number, charges: number) =>
  Effect.gen(function* () {
    const tasks = yield* Tasks
    yield* Effect.flatMap(Bank, (bank) => bank.charges(charges))
    yield* tasks.graph.pipe(
      Stream.scan(new Map() as TaskGraph, applyGraphEvent),
      Stream.takeUntil((graph) => [...graph.values()].filter((node) => node.kind === Payment.kind).length === count),
      Stream.runDrain,
    )
  })

const print = (line: string) => Effect.sync(() => console.log(line))

const books = (directory: string, types: ReadonlyArray<Booking["type"]>) =>
  readBooks(join(directory, "bank.jsonl"))
    .filter(({ type }) => types.includes(type))
    .map(({ card, type }) => `${card} ${type}`)
    .sort()

const allPaid = (directory: string) =>
  Effect.gen(function* () {
    const outcome = yield* finish(yield* start("order 1", ["visa", "amex", "giro", "cash"]))
    yield* print(`all paid: ${JSON.stringify(outcome)}`)
    yield* print(`  the bank: ${books(directory, ["charged"]).join(", ")}`)
  })

const oneDeclined = (directory: string) =>
  Effect.gen(function* () {
    const outcome = yield* finish(yield* start("order 2", ["slow visa", "slow amex", "slow giro", "empty"]))
    yield* print(`one declined: ${JSON.stringify(outcome)}`)
    yield* print(`  the bank: ${books(directory, ["refunded"]).join(", ")}`)
  })

const cancelled = (directory: string) =>
  Effect.gen(function* () {
    const tasks = yield* Tasks
    const id = yield* start("order 3", ["visa", "slow amex", "slow giro", "slow cash"])
    yield* underWay(3, 4)
    yield* tasks.abort(id, { reason: "the customer changed their mind" })
    const outcome = yield* finish(id)
    yield* print(`cancelled: ${JSON.stringify(outcome)}`)
    yield* print(`  the bank: ${books(directory, ["refunded"]).join(", ")}`)
    yield* print(`  after all refunds: ${readBooks(join(directory, "bank.jsonl")).at(-1)?.type}`)
  })

/** The order that is paid when the process dies: two payments are through, one is booked but unanswered, one is not booked. */
const fatal = { order: "order 4", cards: ["visa", "amex", "slow giro", "slow and not booked"] }

/** What the killed process does: it never gets beyond its payments. */
const untilKilled = (directory: string) =>
  shop(
    directory,
    true,
    Effect.gen(function* () {
      yield* start(fatal.order, fatal.cards)
      yield* underWay(2, 3)
      yield* print("paying")
      yield* Effect.never
    }),
  )

const killed = (directory: string) =>
  Effect.async<void>((resume) => {
    const child = spawn(process.execPath, [...process.execArgv, fileURLToPath(import.meta.url), directory], {
      stdio: ["ignore", "pipe", "inherit"],
    })
    child.stdout.once("data", () => child.kill("SIGKILL"))
    child.once("close", () => resume(Effect.void))
  })

const resumed = (directory: string) =>
  Effect.gen(function* () {
    // The same request gives the same checkout: nothing is started twice.
    const outcome = yield* finish(yield* start(fatal.order, fatal.cards))
    const charged = books(directory, ["charged"])
    yield* print(`killed and resumed: ${JSON.stringify(outcome)}`)
    yield* print(`  the bank: ${charged.join(", ")}`)
    yield* print(
      `  charged twice: ${charged.filter((line, at) => charged.indexOf(line) !== at).join(", ") || "nobody"}`,
    )
  })

const withDirectory = <A, E>(use: (directory: string) => Effect.Effect<A, E>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "super-pi-checkout-"))),
    use,
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true })),
  )

const main = Effect.gen(function* () {
  yield* withDirectory((directory) => shop(directory, true, allPaid(directory)))
  yield* withDirectory((directory) => shop(directory, true, oneDeclined(directory)))
  yield* withDirectory((directory) => shop(directory, true, cancelled(directory)))
  yield* withDirectory((directory) => Effect.zipRight(killed(directory), shop(directory, false, resumed(directory))))
})

const [, , directory] = process.argv
await Effect.runPromise(directory === undefined ? main : untilKilled(directory))
