/**
 * How much later an event comes through a node that does not hold its conversation than through the one that does, by the clock of a client
 * that watches through both.
 */
import { isRecord } from "../../src/domain/json.ts"
import { percentile } from "../../test/cluster/support/figures.ts"
import { RpcSocket } from "../../test/cluster/support/rpc-socket.ts"
import type { Row } from "../row.ts"
import type { Nodes } from "./nodes.ts"

/** When each event came, by its `seq_no`. */
type Arrivals = Map<number, number>

const watchThrough = async (url: string, conversation: number) => {
  const socket = await RpcSocket.connect(url)
  const arrivals: Arrivals = new Map()
  let begun: () => void = () => {}
  const ready = new Promise<void>((done) => {
    begun = done
  })
  socket.onNotification = (method, params) => {
    const now = performance.now()
    if (method !== "session.event" || !isRecord(params) || !Array.isArray(params.events)) return
    for (const event of params.events) {
      if (isRecord(event) && typeof event.seq_no === "number" && event.type !== "snapshot") {
        arrivals.set(event.seq_no, now)
      }
    }
    begun()
    socket.call("session.ack", { watchId: params.watchId, delivery: params.delivery }).catch(() => {})
  }
  await socket.call("session.watch", { conversationId: conversation })
  await ready
  return { socket, arrivals }
}

/** Streams through the first node and through the holder at once. */
export const lateness = async (
  { holderOf, nodes }: Nodes,
  conversations: ReadonlyArray<number>,
  title: string,
): Promise<ReadonlyArray<Row>> => {
  const holder = await holderOf()
  const late: Array<number> = []
  await Promise.all(
    conversations.map(async (conversation) => {
      const near = await watchThrough(nodes[holder(conversation)]?.url ?? "", conversation)
      const far = await watchThrough(nodes[0]?.url ?? "", conversation)
      const call = { conversationId: conversation, content: "stream", requestId: `stream-${conversation}` }
      const { submission_id } = await far.socket.call<{ submission_id: number }>("session.submit", call)
      await far.socket.call("session.await", { conversationId: conversation, submissionId: submission_id })
      for (const [seq, at] of far.arrivals) {
        const here = near.arrivals.get(seq)
        if (here !== undefined) late.push(at - here)
      }
      near.socket.close()
      far.socket.close()
    }),
  )
  const row = (name: string, part: number): Row => ({
    name: `${title}, ${name} by which an event comes later through another node`,
    ours: percentile(late, part),
    peer: null,
    unit: "ms",
    ratio: null,
    target: "",
    met: true,
  })
  return [row("p50", 0.5), row("p99", 0.99)]
}
