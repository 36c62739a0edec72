/**
 * What a node says while it runs as a service: a line for each change of its cluster, and the lines of its gateway without those of probes.
 */
import type { ClusterMember, ClusterStatus } from "../domain/cluster.ts"
import type { GatewayLog } from "../protocols/http/log.ts"

const named = ({ name, state }: ClusterMember): string => (state === "up" ? name : `${name} (${state})`)

/** A count that says when it is complete. */
const shardsOf = ({ members, shards }: ClusterStatus): string => {
  const own = members.find(({ self }) => self)?.shards ?? 0
  return `holds ${own} of ${shards.total} shards${shards.unheld === 0 ? "" : `, ${shards.unheld} held by nobody`}`
}

/**
 * The lines that tell how a cluster came from `before` (null: it was not known) to `after`. Until the node itself is a member, which may be after
 * the first look, there is nothing to tell. Pure.
 */
export const clusterChanges = (before: ClusterStatus | null, after: ClusterStatus): ReadonlyArray<string> => {
  if (before === null || !before.members.some(({ self }) => self)) {
    const self = after.members.find((member) => member.self)
    const alone = after.strategy === "none"
    return [
      ...(self === undefined ? [] : [`joined as ${after.node}, epoch ${self.epoch}, strategy ${after.strategy}`]),
      ...(alone || self === undefined ? [] : [`members: ${after.members.map(named).join(", ")}; ${shardsOf(after)}`]),
    ]
  }
  const was = new Map(before.members.map((member) => [member.epoch, member]))
  const is = new Set(after.members.map(({ epoch }) => epoch))
  const lines = [
    ...after.members
      .filter(({ epoch, self, state }) => !self && was.get(epoch)?.state !== state)
      .map((member) => `member ${member.name}: ${member.state}`),
    ...before.members.filter(({ epoch, self }) => !self && !is.has(epoch)).map(({ name }) => `member ${name}: gone`),
  ]
  const moved = shardsOf(before) !== shardsOf(after)
  return lines.length === 0 && !moved
    ? []
    : [...lines, `members: ${after.members.map(named).join(", ")}; ${shardsOf(after)}`]
}

/** Paths that are asked every few seconds, for ever. */
const probes = new Set(["/health", "/ready", "/metrics"])

/** The log of a gateway that is probed: what probes ask is not told where they were answered. */
export const withoutProbes = (log: GatewayLog): GatewayLog => ({
  ...log,
  request: (request) => {
    if (!probes.has(request.path) || request.status === 401) log.request(request)
  },
})
