/**
 * What is said of a node, as pure functions: what waits, what is made of it, how changes and tables read.
 */
import { describe, expect, it } from "vitest"
import { checkCluster } from "../../src/cli/doctor-cluster.ts"
import { clusterChanges } from "../../src/cli/node-log.ts"
import { serviceSettings } from "../../src/cli/service-settings.ts"
import type { ClusterMember, ClusterStatus } from "../../src/domain/cluster.ts"
import { ConversationId, Seq, TaskId } from "../../src/domain/ids.ts"
import type { QueueView } from "../../src/domain/queue.ts"
import type { Task } from "../../src/domain/task.ts"
import type { TreeNode } from "../../src/domain/tree.ts"
import { clusterLines } from "../../src/protocols/terminal/cluster.ts"
import { judgeHealth, type Look } from "../../src/supervisors/judge-health.ts"
import { hasRoot, isBusy, machinesIn } from "../../src/supervisors/machines.ts"
import { oldestMs, unserved } from "../../src/supervisors/unserved.ts"

const now = 1_000_000

const task = (over: Partial<Task>): Task => ({
  id: TaskId.make(1),
  conversation: ConversationId.make(7),
  kind: "pi.generation",
  version: 1,
  input: null,
  status: "pending",
  checkpoint: null,
  owner: null,
  background: false,
  abortRequested: false,
  crashes: 0,
  parked: null,
  node: null,
  fence: 0,
  leaseUntil: null,
  wakeAt: null,
  waitingOn: null,
  outcome: null,
  requestId: null,
  inDoubt: false,
  createdAt: now - 5_000,
  startedAt: null,
  endedAt: null,
  seq: Seq.make(1),
  ...over,
})

const queue = (over: Partial<QueueView>): QueueView => ({
  queue: "q",
  concurrency: 1,
  paused: false,
  workers: ["w"],
  counts: { available: 1 },
  due_at: now - 3_000,
  ...over,
})

const treeNode = (name: string, over: Partial<TreeNode> = {}): TreeNode => ({
  name,
  path: `/user/${name}`,
  kind: "supervisor",
  state: "",
  mailbox: 0,
  restarts: 0,
  lastCrash: null,
  children: [],
  ...over,
})

describe("work that nobody is at", () => {
  const waiting = (
    tasks: ReadonlyArray<Task>,
    queues: ReadonlyArray<QueueView> = [],
    inMemory: ReadonlyArray<number> = [],
  ) => oldestMs(unserved(tasks, new Set(inMemory), queues, now), now)

  it("is an open task of a conversation that is not in memory, and a workflow that waits for its run", () => {
    expect(waiting([task({})])).toBe(5_000)
    expect(waiting([task({ status: "running" })])).toBe(5_000)
    expect(waiting([task({ conversation: null })])).toBe(5_000)
    expect(waiting([task({ conversation: null, status: "running" })])).toBeNull()
    expect(waiting([task({})], [], [7])).toBeNull()
  })

  it("is nothing that waits for a person, for a time or for other tasks", () => {
    expect(waiting([task({ parked: "restart_limit" })])).toBeNull()
    expect(waiting([task({ status: "waiting" })])).toBeNull()
    expect(waiting([task({ status: "sleeping", wakeAt: now + 1 })])).toBeNull()
    expect(waiting([task({ status: "sleeping", wakeAt: now - 10 })])).toBe(10)
  })

  it("is the earliest job of a queue that could be served and is not", () => {
    expect(waiting([], [queue({})])).toBe(3_000)
    expect(waiting([], [queue({ paused: true })])).toBeNull()
    expect(waiting([], [queue({ workers: [] })])).toBeNull()
    expect(waiting([], [queue({ counts: { executing: 1 } })])).toBeNull()
    expect(waiting([], [queue({ due_at: now + 1 }), queue({ due_at: null })])).toBeNull()
  })
})

describe("a tree", () => {
  it("shows the conversations in memory with their state, and whether the node's supervisor lives", () => {
    const machine = (state: string) => treeNode("machine", { kind: "machine", state })
    const tree = treeNode("root", {
      path: "/",
      children: [
        treeNode("node", {
          path: "/user/node",
          children: [
            treeNode("conversation-3", { children: [machine("streaming_llm")] }),
            treeNode("conversation-4", { children: [machine("idle")] }),
            treeNode("mcp", { children: [treeNode("link", { kind: "machine", state: "ready" })] }),
          ],
        }),
      ],
    })
    expect(machinesIn(tree)).toEqual([
      { conversation: 3, state: "streaming_llm" },
      { conversation: 4, state: "idle" },
    ])
    expect(machinesIn(tree).map(isBusy)).toEqual([true, false])
    expect(hasRoot(tree)).toBe(true)
    expect(hasRoot(treeNode("root", { path: "/" }))).toBe(false)
  })
})

describe("a node", () => {
  const look = (over: Partial<Look> = {}): Look => ({
    now,
    eventLoopLagMs: 1,
    answered: true,
    rooted: true,
    busy: 0,
    waiting: [],
    broken: new Set(),
    draining: false,
    ...over,
  })
  const waits = (ms: number, conversation: number | null = 7) => [
    { since: now - ms, conversation: conversation === null ? null : ConversationId.make(conversation) },
  ]
  const judged = (over: Partial<Look>) => {
    const { faults, healthy, ready } = judgeHealth(look(over))
    return [healthy, ready, faults]
  }

  it("is healthy and ready while its database answers and work is moving", () => {
    expect(judged({})).toEqual([true, true, []])
    expect(judged({ waiting: waits(59_000) })).toEqual([true, true, []])
    expect(judged({ waiting: waits(600_000), busy: 1 })).toEqual([true, true, []])
    expect(judged({ rooted: null })).toEqual([true, true, []])
  })

  it("is unhealthy, and says why, where work waits and nothing is at work", () => {
    expect(judged({ waiting: waits(61_000) })).toEqual([
      false,
      false,
      ["work has waited for 61 s and nothing is at work"],
    ])
    expect(judged({ waiting: waits(61_000, null) })[0]).toBe(false)
  })

  it("is unhealthy without its database, with a stuck event loop, and without its supervisor", () => {
    expect(judged({ answered: false })).toEqual([false, false, ["the database does not answer"]])
    expect(judged({ eventLoopLagMs: 1_000 })).toEqual([false, false, ["the event loop is 1000 ms late"]])
    expect(judged({ rooted: false })).toEqual([
      false,
      false,
      ["the node's supervisor is gone: it does nothing any more"],
    ])
  })

  it("that drains is healthy and not ready", () => {
    expect(judged({ draining: true })).toEqual([true, false, ["the node is draining"]])
  })

  it("is not judged by a conversation that cannot be started, but tells of it", () => {
    const found = judgeHealth(look({ waiting: waits(90_000), broken: new Set([7]) }))
    expect(found).toMatchObject({ healthy: true, ready: true, oldestUnservedMs: null })
    expect(found.faults).toEqual(["conversation 7 has open work and cannot be started; the log says why"])
  })
})

const member = (name: string, over: Partial<ClusterMember> = {}): ClusterMember => ({
  name,
  epoch: name.length,
  address: `${name}:45893`,
  self: false,
  state: "up",
  version: "1.0.0",
  startedAt: now - 120_000,
  shards: 128,
  machines: 3,
  busy: 1,
  ...over,
})

const status = (members: ReadonlyArray<ClusterMember>, over: Partial<ClusterStatus> = {}): ClusterStatus => ({
  node: "a",
  strategy: "static",
  members,
  shards: { total: 256, held: 256, unheld: 0 },
  oldestUnservedMs: null,
  draining: false,
  ...over,
})

describe("the log of a node", () => {
  const self = member("a", { self: true })

  it("says once that it joined, and with whom", () => {
    expect(clusterChanges(null, status([self, member("bb")]))).toEqual([
      "joined as a, epoch 1, strategy static",
      "members: a, bb; holds 128 of 256 shards",
    ])
    const early = status([member("bb")])
    expect(clusterChanges(null, early)).toEqual([])
    expect(clusterChanges(early, status([self, member("bb")]))).toEqual(
      clusterChanges(null, status([self, member("bb")])),
    )
    expect(clusterChanges(null, status([self], { strategy: "none" }))).toEqual(["joined as a, epoch 1, strategy none"])
  })

  it("says who came, drains, cannot be reached and went, and where shards moved to", () => {
    const before = status([self, member("bb")])
    expect(clusterChanges(before, before)).toEqual([])
    expect(clusterChanges(before, status([self, member("bb", { state: "draining" }), member("ccc")]))).toEqual([
      "member bb: draining",
      "member ccc: up",
      "members: a, bb (draining), ccc; holds 128 of 256 shards",
    ])
    expect(clusterChanges(before, status([self], { shards: { total: 256, held: 128, unheld: 128 } }))).toEqual([
      "member bb: gone",
      "members: a; holds 128 of 256 shards, 128 held by nobody",
    ])
    const moved = status([{ ...self, shards: 200 }, member("bb", { shards: 56 })])
    expect(clusterChanges(before, moved)).toEqual(["members: a, bb; holds 200 of 256 shards"])
  })
})

describe("the table of a cluster", () => {
  it("has a line for each member and one for what is not well", () => {
    const shown = status([member("a", { self: true }), member("bb", { machines: null, busy: null, address: "" })], {
      shards: { total: 256, held: 250, unheld: 6 },
      oldestUnservedMs: 2_500,
    })
    expect(clusterLines(shown, now)).toEqual([
      "NODE  STATE  SHARDS  MACHINES  BUSY  EPOCH  VERSION  STARTED    ADDRESS",
      "a *   up     128     3         1     1      1.0.0    2 min ago  a:45893",
      "bb    up     128     -         -     2      1.0.0    2 min ago  -",
      "",
      "strategy static; 250 of 256 shards are held, 6 by nobody; the oldest work has waited 2.5 s",
    ])
  })

  it("lets no name of a node write to the terminal", () => {
    const [, line = ""] = clusterLines(status([member("a\u001b[31m\nb")]), now)
    expect(line).not.toContain("\u001b")
    expect(line).toMatch(/^a b /)
  })
})

describe("what the environment asks of a node", () => {
  it("serves on port 4000 unless it says otherwise", () => {
    expect(serviceSettings({})).toMatchObject({ right: { gateway: true, port: 4000, host: undefined } })
    const env = {
      SUPER_PI_GATEWAY: "no",
      SUPER_PI_GATEWAY_PORT: "0",
      SUPER_PI_GATEWAY_BIND: "::1",
      SUPER_PI_DRAIN_SECONDS: "5",
    }
    expect(serviceSettings(env)).toMatchObject({
      right: { gateway: false, port: 0, host: "::1", cluster: { drainMs: 5_000 } },
    })
  })
})

describe("the doctor", () => {
  it("says how a node would take part in a cluster, and what keeps it from starting", () => {
    expect(checkCluster({}, "sqlite")).toMatchObject({
      status: "ok",
      detail: "strategy none on sqlite: a node is alone",
    })
    const env = {
      SUPER_PI_CLUSTER_STRATEGY: "epmd",
      SUPER_PI_CLUSTER_HOSTS: "a,b",
      SUPER_PI_CLUSTER_SECRET: "0123456789abcdef",
    }
    expect(checkCluster(env, "postgres")).toMatchObject({
      status: "ok",
      detail: "strategy static on postgres, without TLS between nodes",
    })
    expect(checkCluster(env, "sqlite")).toMatchObject({ status: "fail" })
    expect(checkCluster({ ...env, SUPER_PI_CLUSTER_SECRET: "short" }, "postgres").detail).toContain("at least 16")
  })
})
