/**
 * What a node knows of itself when its metrics are read: jobs of its queues, its actors, their mailboxes and restarts.
 */
import { Counter, Gauge, type Registry } from "prom-client"
import type { QueueView } from "../domain/queue.ts"
import type { TreeNode } from "../domain/tree.ts"
import type { NodeProbe } from "./observer.ts"

export interface NodeFacts {
  readonly queues: ReadonlyArray<QueueView>
  readonly tree: TreeNode
}

interface Sums {
  readonly actors: Record<TreeNode["kind"], number>
  mailbox: number
  restarts: number
}

const sum = (node: TreeNode, into: Sums): Sums => {
  into.actors[node.kind] += 1
  into.mailbox += node.mailbox
  into.restarts += node.restarts
  for (const child of node.children) sum(child, into)
  return into
}

export const nodeGauges = (registry: Registry) => {
  const registers = [registry]
  const jobs = new Gauge({
    name: "super_pi_queue_jobs",
    help: "Jobs of durable queues by state.",
    labelNames: ["queue", "state"],
    registers,
  })
  const paused = new Gauge({
    name: "super_pi_queue_paused",
    help: "1 where a queue is paused.",
    labelNames: ["queue"],
    registers,
  })
  const actors = new Gauge({
    name: "super_pi_actors",
    help: "Living actors by kind.",
    labelNames: ["kind"],
    registers,
  })
  const mailbox = new Gauge({ name: "super_pi_mailbox_messages", help: "Messages that wait in mailboxes.", registers })
  const restarts = new Gauge({
    name: "super_pi_actor_restarts",
    help: "Restarts of the actors that live now.",
    registers,
  })
  const deadLetters = new Counter({
    name: "super_pi_dead_letters_total",
    help: "Messages to actors that were gone.",
    registers,
  })
  const up = new Gauge({ name: "super_pi_node_up", help: "1 where the node answered when it was asked.", registers })
  return {
    /** `facts` null: the node did not answer. */
    update: (facts: NodeFacts | null, probe: NodeProbe | null): void => {
      up.set(facts === null ? 0 : 1)
      for (const gauge of [jobs, paused, actors, mailbox, restarts]) gauge.reset()
      deadLetters.reset()
      deadLetters.inc(probe?.deadLetters() ?? 0)
      if (facts === null) return
      for (const { counts, paused: isPaused, queue } of facts.queues) {
        paused.set({ queue }, isPaused ? 1 : 0)
        for (const [state, count] of Object.entries(counts)) if (count !== undefined) jobs.set({ queue, state }, count)
      }
      const sums = sum(facts.tree, { actors: { supervisor: 0, actor: 0, machine: 0 }, mailbox: 0, restarts: 0 })
      for (const [kind, count] of Object.entries(sums.actors)) actors.set({ kind }, count)
      mailbox.set(sums.mailbox)
      restarts.set(sums.restarts)
    },
  }
}
