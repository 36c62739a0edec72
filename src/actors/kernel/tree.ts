/**
 * A snapshot of the live tree: what `:sys.get_state` and `observer` show in OTP.
 */
import type { TreeNode } from "../../domain/tree.ts"
import type { Cell } from "./cell.ts"
import { IDLE, QUEUED, RUNNING, statusNames } from "./status.ts"
import { describeCause } from "./stop-reason.ts"

/** Children in order of start. Deep trees are walked without recursion limits in mind: a tree is as deep as its supervisors. */
export const snapshot = (cell: Cell): TreeNode => {
  const extras = cell.hasExtras
  const crash = extras?.lastCrash ?? null
  const children: Array<TreeNode> = []
  for (let child = cell.child; child !== null; child = child.older) children.push(snapshot(child))
  return {
    name: cell.name,
    path: cell.path,
    kind: cell.behavior.kind,
    state: describe(cell),
    mailbox: cell.depth,
    restarts: extras?.restarts ?? 0,
    lastCrash: crash === null ? null : { message: describeCause(crash.cause), at: Math.trunc(crash.at) },
    children: children.reverse(),
  }
}

const describe = (cell: Cell): string => {
  const { status } = cell
  const working = status === IDLE || status === QUEUED || status === RUNNING
  if (!working || cell.behavior.describe === undefined) return statusNames[status]
  try {
    return cell.behavior.describe(cell.state)
  } catch {
    return statusNames[status] // a description must not break the view
  }
}
