/**
 * One conversation of the load: submits its jobs, repeats what a kill may have swallowed, and mixes in what clients do (watch, cancel, repeat a
 * request, ask for the state, leave).
 */
import type { Receipt, Settled } from "../src/actors/contract.ts"
import type { Event, SessionState } from "../src/domain/event.ts"
import type { Observations } from "./observations.ts"
import type { Job } from "./plan.ts"
import type { Random } from "./random.ts"
import { ConnectionLost, type RpcClient, RpcFault } from "./rpc-client.ts"
import { Watcher } from "./watcher.ts"

/** The code of a refusal because the conversation is busy. */
const busy = -32002

/** How often a calm conversation is looked at, in milliseconds. */
const unparkPoll = 500

interface Delivery {
  readonly watchId: string
  readonly delivery: number
  readonly gap: boolean
  readonly events: ReadonlyArray<Event>
}

export interface Surroundings {
  /** A connection to the present life of the node; waits while there is none. */
  readonly connect: () => Promise<RpcClient>
  readonly workspace: string
  readonly observations: Observations
  readonly random: Random
  /** Whether new work may still start. */
  readonly going: () => boolean
  /** Resolves once the last kill is over. */
  readonly calm: Promise<void>
}

export class LoadedConversation {
  readonly #index: number
  readonly #jobs: ReadonlyArray<Job>
  readonly #around: Surroundings
  #client: Promise<RpcClient> | null = null
  #id = 0

  constructor(index: number, jobs: ReadonlyArray<Job>, around: Surroundings) {
    this.#index = index
    this.#jobs = jobs
    this.#around = around
  }

  get id(): number {
    return this.#id
  }

  /** Submits until the time is over, then waits for every answer. */
  async run(): Promise<void> {
    await this.#open()
    let ended = false
    const unparking = this.#unpark(() => ended)
    try {
      await this.#submitAll()
    } finally {
      ended = true
      await unparking
      await this.#leave()
    }
  }

  async #submitAll(): Promise<void> {
    const { random, going } = this.#around
    const waiting: Array<Promise<void>> = []
    for (const job of this.#jobs) {
      if (!going()) break
      const admitted = await this.#submit(job)
      if (!admitted) continue
      const settled = this.#await(job)
      waiting.push(settled)
      await this.#aside()
      if (random.chance(0.7)) await settled
    }
    await Promise.all(waiting)
  }

  /** A run that the kills hit too often in a row is parked; when they are over, it is run again as a person would. */
  async #unpark(ended: () => boolean): Promise<void> {
    const { calm, observations } = this.#around
    await calm
    while (!ended()) {
      const state = await this.#call<SessionState>("session.state", { conversationId: this.#id })
      if (state.parked !== null) {
        observations.retries++
        await this.#call("session.retry", { conversationId: this.#id })
      }
      await new Promise((resolve) => setTimeout(resolve, unparkPoll))
    }
  }

  async #leave(): Promise<void> {
    const client = await this.#client
    this.#client = null
    await client?.close()
  }

  /** Calls on a live connection and repeats the call on the next one when the connection is lost: every call here may be repeated. */
  async #call<A>(method: string, params: unknown): Promise<A> {
    for (;;) {
      this.#client ??= this.#connect()
      const connection = this.#client
      try {
        const client = await connection
        this.#around.observations.calls++
        return await client.call<A>(method, params)
      } catch (error) {
        if (!(error instanceof ConnectionLost)) throw error
        if (this.#client === connection) this.#client = null
      }
    }
  }

  async #connect(): Promise<RpcClient> {
    const client = await this.#around.connect()
    if (this.#id > 0 && this.#around.random.chance(0.7)) this.#watch(client)
    return client
  }

  #watch(client: RpcClient): void {
    const watcher = new Watcher(this.#id, this.#around.observations)
    client.onNotification = ({ method, params }) => {
      if (method !== "session.event") return
      const { watchId, delivery, gap, events } = params as Delivery
      watcher.accept(events, gap)
      client.notify("session.ack", { watchId, delivery })
    }
    client.call("session.watch", { conversationId: this.#id }).catch((error) => {
      if (!(error instanceof ConnectionLost)) this.#around.observations.fault(`session.watch: ${error.message}`)
    })
  }

  async #open(): Promise<void> {
    const agent = { model: "script/stress", mode: "auto", cwd: this.#around.workspace }
    const params = { conversationId: null, agent, title: null, requestId: `open-${this.#index}` }
    this.#id = (await this.#call<SessionState>("session.open", params)).conversation_id
    const client = await this.#client
    if (client != null) this.#watch(client)
  }

  /** Whether it was admitted; a refusal as busy is an answer too. */
  async #submit(job: Job): Promise<boolean> {
    const { observations, random } = this.#around
    const whenBusy = random.pick(["followUp", "followUp", "followUp", "steer", "reject"])
    const params = { conversationId: this.#id, content: job.prompt, whenBusy, requestId: job.key }
    const send = async () =>
      observations.acknowledge(job, whenBusy, await this.#call<Receipt>("session.submit", params))
    try {
      await (random.chance(0.15) ? Promise.all([send(), send()]) : send())
      return true
    } catch (error) {
      if (!(error instanceof RpcFault)) throw error
      if (error.code === busy && whenBusy === "reject") observations.refused.add(job.key)
      else observations.fault(`session.submit ${job.key}: ${error.message}`)
      return observations.acknowledged.has(job.key)
    }
  }

  async #await(job: Job): Promise<void> {
    const { observations } = this.#around
    const acknowledged = observations.acknowledged.get(job.key)
    if (acknowledged === undefined) return
    const params = { conversationId: this.#id, submissionId: acknowledged.submission }
    try {
      let settled = await this.#call<Settled>("session.await", params)
      // Held up by a parked run: it goes on once that is run again.
      while (settled.status !== "done" && settled.status !== "unanswered") {
        await new Promise((resolve) => setTimeout(resolve, unparkPoll))
        settled = await this.#call<Settled>("session.await", params)
      }
      observations.settle(job, settled)
    } catch (error) {
      observations.fault(`session.await ${job.key}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  /** What a client may do beside. */
  async #aside(): Promise<void> {
    const { observations, random } = this.#around
    try {
      switch (random.int(16)) {
        case 0:
          observations.cancelled.add(this.#id)
          await this.#call("session.cancel", { conversationId: this.#id })
          return
        case 1:
          await this.#call("session.state", { conversationId: this.#id })
          return
        case 2:
          await this.#call("session.list", {})
          return
        case 3:
          await this.#call("session.transcript", { conversationId: this.#id })
          return
        case 4:
          await this.#leave()
          return
        default:
          return
      }
    } catch (error) {
      observations.fault(`beside: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
}
