/**
 * Many idle conversations on three nodes: what they cost in memory, and how long it takes until all of them can be reached again when a node
 * leaves and when one joins. The figures are printed.
 */
import { readFileSync } from "node:fs"
import { afterAll, beforeAll, expect, it } from "vitest"
import { ConnectionLost, RpcFault } from "../../stress/rpc-client.ts"
import { buildProgram } from "../cli/program.ts"
import { isLong, say } from "./support/figures.ts"
import { describeLong } from "./support/long-form.ts"
import type { NodeProcess } from "./support/process.ts"
import type { RpcSocket } from "./support/rpc-socket.ts"
import { System } from "./support/system.ts"
import { limitMs, pause, untilTrue } from "./support/until.ts"

const conversations = isLong ? 10_000 : 200
/** How many are made at once. */
const atOnce = 24
/** How long they may take to leave memory, in ms; each rests for half a minute first. Only the long form waits for that. */
const leaveMs = 180_000

let system: System

beforeAll(async () => {
  await buildProgram()
  system = await System.start({ script: () => ({ rules: [{ match: "ping", steps: [{ text: "pong" }] }] }) })
}, 300_000)
afterAll(() => system?.end(), 60_000)

/** MiB that a process has in memory, by the system; null where it does not say. */
const residentOf = ({ pid }: NodeProcess): number | null => {
  try {
    const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? []
    return Math.round(Number(kib) / 1024)
  } catch {
    return null
  }
}

const memory = (): string => system.nodes.map((node) => `${node.name} ${residentOf(node) ?? "?"} MiB`).join(", ")

/** Conversations in memory, over all nodes; null while a node does not say. */
const machines = async (): Promise<number | null> => {
  const response = await fetch(`${system.node(0).url}/cluster`)
  const { members } = (await response.json()) as { members: ReadonlyArray<{ machines: number | null }> }
  return members.reduce<number | null>(
    (sum, member) => (sum === null || member.machines === null ? null : sum + member.machines),
    0,
  )
}

/** Asked again for as long as the answer is to come back. */
const stateOf = async (socket: RpcSocket, conversation: number): Promise<void> => {
  for (const deadline = Date.now() + limitMs; ; ) {
    try {
      const state = await socket.call<{ state: string }>("session.state", { conversationId: conversation })
      return expect(state.state).toBe("idle")
    } catch (error) {
      if (error instanceof ConnectionLost || !(error instanceof RpcFault) || Date.now() > deadline) throw error
      await pause(20)
    }
  }
}

const touchAll = async (): Promise<ReadonlyArray<number>> => {
  const sockets = await Promise.all(system.nodes.map((node) => system.connect(node)))
  const made: Array<number> = []
  const lane = async (first: number): Promise<void> => {
    for (let at = first; at < conversations; at += atOnce) {
      const socket = sockets[at % sockets.length] as RpcSocket
      const { conversation_id } = await socket.call<{ conversation_id: number }>("session.open", {
        agent: { cwd: system.workspace },
        requestId: `open-${at}`,
      })
      const call = { conversationId: conversation_id, content: "ping", requestId: "ping" }
      const { submission_id } = await socket.call<{ submission_id: number }>("session.submit", call)
      const known = { conversationId: conversation_id, submissionId: submission_id }
      const { text } = await socket.call<{ text: string | null }>("session.await", known)
      expect(text).toBe("pong")
      made.push(conversation_id)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, (_, first) => lane(first)))
  return made
}

describeLong(`${conversations} idle conversations on three nodes`, () => {
  it("stay reachable when a node leaves and when it joins again", async () => {
    const before = memory()
    const start = performance.now()
    const made = await touchAll()
    const rate = Math.round((conversations * 1_000) / (performance.now() - start))
    say(`${conversations} conversations, one turn each, ${rate}/s; before: ${before}; after: ${memory()}`)
    if (isLong) {
      await untilTrue("all conversations leave memory", async () => (await machines()) === 0, {
        every: 1_000,
        limit: leaveMs,
      })
      say(`after all of them left memory: ${memory()}`)
    }

    const node = system.node(2)
    const client = await system.connect(system.node(0))
    const moved = (await system.heldBy(node, made)).slice(0, 50)
    expect(moved.length).toBeGreaterThan(0)
    /** From now until a request to each of the moved ones was answered, and until all shards are held, in ms. */
    const moves = async (change: () => void): Promise<readonly [number, number]> => {
      const begun = performance.now()
      const since = () => Math.round(performance.now() - begun)
      change()
      const answered = Promise.all(moved.map((conversation) => stateOf(client, conversation))).then(since)
      await system.settled()
      const held = since()
      return [await answered, held]
    }
    const [leftAnswered, leftHeld] = await moves(() => {
      node.expectEnd()
      node.signal("SIGTERM")
    })
    expect(await node.ended).toEqual({ code: 0, signal: null })
    await system.settled()
    say(
      `a node left: ${moved.length} of its conversations answered after ${leftAnswered} ms, settled after ${leftHeld} ms`,
    )

    const [joinAnswered, joinHeld] = await moves(() => node.start())
    const back = await system.heldBy(node, made)
    expect(back.length).toBeGreaterThan(0)
    const begun = performance.now()
    await Promise.all(back.slice(0, 50).map((conversation) => stateOf(client, conversation)))
    const took = Math.round(performance.now() - begun)
    say(
      `a node joined: requests meanwhile answered within ${joinAnswered} ms, all shards held after ${joinHeld} ms, ` +
        `${Math.min(50, back.length)} of its conversations answered after ${took} ms more; now: ${memory()}`,
    )
    expect(system.accidents()).toEqual([])
  }, 1_800_000)
})
