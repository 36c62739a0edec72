/**
 * What a node knows of itself when its metrics are read: jobs of its queues, its actors, their mailboxes and restarts, and its cluster.
 */
import { Counter, Gauge, type Registry } from "prom-client"
import type { ClusterStatus } from "../domain/cluster.ts"
import type { QueueView } from "../domain/queue.ts"
import type { TreeNode } from "../domain/tree.ts"
import type { NodeProbe } from "./observer.ts"

export interface NodeFacts {
  readonly queues: ReadonlyArray<QueueView>
  readonly tree: TreeNode
  /** Null where nobody says. */
  readonly cluster: ClusterStatus | null
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

/** What a node says of its cluster. A value that is not known is not told. */
const clusterGauges = (registry: Registry) => {
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers: [registry] })
  const members = new Gauge({
    name: "super_pi_cluster_members",
    help: "Members of the cluster by state, as this node sees them.",
    labelNames: ["state"],
    registers: [registry],
  })
  const shards = gauge("super_pi_cluster_shards_held", "Shards that this node holds.")
  const unheld = gauge("super_pi_cluster_shards_unheld", "Shards that nobody holds.")
  const machines = gauge("super_pi_machines", "Conversations in the memory of this node.")
  const busy = gauge("super_pi_machines_busy", "Those of them that are at work.")
  const oldest = gauge("super_pi_oldest_unserved_seconds", "For how long the oldest work has waited for somebody.")
  const draining = gauge("super_pi_node_draining", "1 where this node drains.")
  return (status: ClusterStatus | null): void => {
    for (const one of [shards, unheld, machines, busy, oldest, draining]) one.remove()
    members.reset()
    if (status === null) return
    const self = status.members.find((member) => member.self)
    for (const state of ["up", "draining", "unreachable"] as const)
      members.set({ state }, status.members.filter((member) => member.state === state).length)
    if (self !== undefined) shards.set(self.shards)
    unheld.set(status.shards.unheld)
    if (typeof self?.machines === "number") machines.set(self.machines)
    if (typeof self?.busy === "number") busy.set(self.busy)
    oldest.set((status.oldestUnservedMs ?? 0) / 1_000)
    draining.set(status.draining ? 1 : 0)
  }
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
  const cluster = clusterGauges(registry)
  const up = new Gauge({ name: "super_pi_node_up", help: "1 where the node answered when it was asked.", registers })
  return {
    /** `facts` null: the node did not answer. */
    update: (facts: NodeFacts | null, probe: NodeProbe | null): void => {
      up.set(facts === null ? 0 : 1)
      cluster(facts?.cluster ?? null)
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
