/**
 * Signals between nodes by NOTIFY and LISTEN, on one connection per node:
 *
 *   connecting → listening → (the connection is lost) → connecting, with pauses; whoever listens is told that something may have been missed
 *
 * They are sent outside of commits: a transaction that notifies waits for every other one that does. What is told while a statement is under
 * way goes with the next one, each signal once; what cannot be sent is dropped.
 */
import { Effect, type Scope } from "effect"
import type { Client } from "pg"
import { decodeSignal, encodeSignal, type Signal } from "../../domain/signal.ts"
import type { SignalsService } from "../signal-port.ts"
import { openClient } from "./client.ts"
import type { PostgresSettings } from "./settings.ts"

/** The channel of LISTEN. */
const channel = "super_pi"
/** Signals that wait for the connection; beyond them the newest are dropped. */
const queued = 1_000
/** Between two attempts to connect, in ms: doubled up to the second figure. */
const reconnectMs = [100, 5_000] as const
/** A connection that says nothing is asked this often whether it is still there, and answers within the same time, in ms. */
const askMs = 15_000

class Signals implements SignalsService {
  private readonly ears = new Set<(signal: Signal | null) => void>()
  private readonly waiting = new Set<string>()
  private client: Client | null = null
  private sending = false

  readonly tell = (signals: ReadonlyArray<Signal>): void => {
    for (const signal of signals) if (this.waiting.size < queued) this.waiting.add(encodeSignal(signal))
    void this.send()
  }

  readonly listen = (heard: (signal: Signal | null) => void): Effect.Effect<void, never, Scope.Scope> =>
    Effect.asVoid(
      Effect.acquireRelease(
        Effect.sync(() => this.ears.add(heard)),
        () => Effect.sync(() => this.ears.delete(heard)),
      ),
    )

  /** One life of the connection: gives once it has ended. */
  async live(client: Client, own: number | null): Promise<void> {
    const ended = new Promise<void>((resolve) => client.once("end", () => resolve()))
    client.on("notification", ({ payload = "", processId }) => {
      if (processId === own) return
      const signal = decodeSignal(payload)
      if (signal !== null) this.pass(signal)
    })
    await client.query(`LISTEN ${channel}`)
    this.client = client
    // What was told between two lives is gone.
    this.pass(null)
    void this.send()
    const asking = setInterval(() => {
      const late = setTimeout(() => client.end().catch(() => undefined), askMs)
      client.query("SELECT 1").then(
        () => clearTimeout(late),
        () => clearTimeout(late),
      )
    }, askMs)
    await ended
    clearInterval(asking)
    this.client = null
  }

  private pass(signal: Signal | null): void {
    for (const heard of this.ears) heard(signal)
  }

  private async send(): Promise<void> {
    if (this.sending) return
    this.sending = true
    try {
      while (this.client !== null && this.waiting.size > 0) {
        const told = [...this.waiting]
        this.waiting.clear()
        await this.client.query("SELECT pg_notify($1, told) FROM unnest($2::text[]) AS told", [channel, told])
      }
    } catch {
      // the connection is lost, and its end follows: whoever waits for these looks by itself
    } finally {
      this.sending = false
    }
  }
}

/** The signals of this node, until the scope closes. Does not wait for the connection, and never fails. */
export const postgresSignals = (settings: PostgresSettings): Effect.Effect<SignalsService, never, Scope.Scope> =>
  Effect.gen(function* () {
    const signals = new Signals()
    const life = Effect.scoped(
      Effect.flatMap(openClient(settings, { applicationName: "super-pi signals" }), (client) =>
        Effect.promise(async () => {
          const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid")
          await signals.live(client, rows[0]?.pid ?? null)
        }),
      ),
    )
    const from = (pauseMs: number): Effect.Effect<never> =>
      Effect.flatMap(Effect.exit(life), (exit) => {
        const next = exit._tag === "Success" ? reconnectMs[0] : Math.min(pauseMs * 2, reconnectMs[1])
        return Effect.zipRight(
          Effect.sleep(pauseMs),
          Effect.suspend(() => from(next)),
        )
      })
    yield* Effect.forkScoped(from(reconnectMs[0]))
    return signals
  })
