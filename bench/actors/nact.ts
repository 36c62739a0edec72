/**
 * The same cases on nact 7.
 */
import { dispatch, query, type Ref, spawn, start, stop } from "nact"
import { elapsedSeconds } from "../row.ts"

export const open = () => {
  const system = start()
  return { system, close: async () => stop(system) }
}
export type Nact = ReturnType<typeof open>

/** nact warns of a query without a limit. */
const LIMIT_MS = 60_000

type Counted = { readonly _tag: "Add" } | { readonly _tag: "Get"; readonly reply: Ref<number> }
const add: Counted = { _tag: "Add" }
const get = (reply: Ref<number>): Counted => ({ _tag: "Get", reply })

const count = (total: number, message: Counted): number => {
  if (message._tag === "Add") return total + 1
  dispatch(message.reply, total)
  return total
}

const counter = ({ system }: Nact) => spawn(system, (total: number = 0, message: Counted) => count(total, message))

const seconds = (start: number): number => elapsedSeconds() - start

export const tell = async (nact: Nact): Promise<number> => {
  const n = 200_000
  const target = counter(nact)
  const start = elapsedSeconds()
  for (let i = 0; i < n; i++) dispatch(target, add)
  const total = await query(target, get, LIMIT_MS)
  const rate = n / seconds(start)
  if (total !== n) throw new Error(`nact tell: expected ${n} messages, got ${total}`)
  stop(target)
  return rate
}

export const askSequential = async (nact: Nact): Promise<number> => {
  const n = 100_000
  const target = counter(nact)
  const start = elapsedSeconds()
  for (let i = 0; i < n; i++) await query(target, get, LIMIT_MS)
  const rate = n / seconds(start)
  stop(target)
  return rate
}

// nact's anonymous names are random 31-bit numbers, which collide at these counts; so children are named.
const keep = (state: { readonly n: number } = { n: 0 }) => state

export const spawnMany = async ({ system }: Nact): Promise<number> => {
  const n = 50_000
  const parent = spawn(system, keep)
  const start = elapsedSeconds()
  for (let i = 0; i < n; i++) spawn(parent, keep, `actor-${i}`)
  const rate = n / seconds(start)
  stop(parent)
  return rate
}

export const bytesPerIdle = async ({ system }: Nact, gc: () => void): Promise<number> => {
  const n = 50_000
  const parent = spawn(system, keep)
  await new Promise((resolve) => setImmediate(resolve))
  gc()
  const before = process.memoryUsage().heapUsed
  for (let i = 0; i < n; i++) spawn(parent, keep, `actor-${i}`)
  await new Promise((resolve) => setImmediate(resolve))
  gc()
  const bytes = (process.memoryUsage().heapUsed - before) / n
  stop(parent)
  return bytes
}

type Ball = { readonly _tag: "Peer"; readonly peer: Ref<Ball> } | { readonly _tag: "Ball"; readonly left: number }

export const pingPong = async ({ system }: Nact): Promise<number> => {
  const pairs = 500
  const hits = 200
  let open = pairs
  let finish = () => {}
  const finished = new Promise<void>((resolve) => {
    finish = resolve
  })
  const player = (peer: Ref<Ball> | undefined, message: Ball): Ref<Ball> | undefined => {
    if (message._tag === "Peer") return message.peer
    if (message.left === 0) {
      if (--open === 0) finish()
    } else if (peer !== undefined) {
      dispatch(peer, { _tag: "Ball", left: message.left - 1 })
    }
    return peer
  }
  const parent = spawn(system, keep)
  const first: Array<Ref<Ball>> = []
  for (let i = 0; i < pairs; i++) {
    const a = spawn(parent, player)
    const b = spawn(parent, player)
    dispatch(a, { _tag: "Peer", peer: b })
    dispatch(b, { _tag: "Peer", peer: a })
    first.push(a)
  }
  const start = elapsedSeconds()
  for (const ref of first) dispatch(ref, { _tag: "Ball", left: hits })
  await finished
  const rate = (pairs * hits) / seconds(start)
  stop(parent)
  return rate
}

interface Work {
  readonly n: number
  readonly reply: Ref<number>
}

export const askInside = async (nact: Nact): Promise<number> => {
  const n = 30_000
  const backend = counter(nact)
  const front = spawn(nact.system, async (_state: undefined, work: Work) => {
    const total = await query(backend, get, LIMIT_MS)
    dispatch(work.reply, total + work.n)
  })
  const start = elapsedSeconds()
  for (let i = 0; i < n; i++) await query(front, (reply: Ref<number>): Work => ({ n: i, reply }), LIMIT_MS)
  const rate = n / seconds(start)
  stop(front)
  stop(backend)
  return rate
}

type Fragile = { readonly _tag: "Crash" } | { readonly _tag: "Ping"; readonly reply: Ref<number> }

let fragiles = 0

/** Crash, reset by its own policy (nact's nearest to a restart), answer: one after another. */
export const restarts = async ({ system }: Nact, failure: () => unknown): Promise<number> => {
  const n = 10_000
  const target = spawn(
    system,
    (state: number = 1, message: Fragile) => {
      if (message._tag === "Crash") throw failure()
      dispatch(message.reply, state)
      return state
    },
    `fragile-${++fragiles}`,
    { onCrash: (_message, _error, ctx) => ctx.reset },
  )
  const ping = (reply: Ref<number>): Fragile => ({ _tag: "Ping", reply })
  const start = elapsedSeconds()
  for (let i = 0; i < n; i++) {
    dispatch(target, { _tag: "Crash" })
    await query(target, ping, LIMIT_MS)
  }
  const rate = n / seconds(start)
  stop(target)
  return rate
}
