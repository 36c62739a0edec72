/**
 * What a node does, read off its supervision tree: the conversations in its memory, and whether it does anything. Pure.
 */
import type { TreeNode } from "../domain/tree.ts"

/** A conversation's machine: its number and the state that it is in. */
export interface MachineView {
  readonly conversation: number
  readonly state: string
}

/** States in which nothing happens that a stop would cut off: a backoff is a durable job. */
const resting: ReadonlySet<string> = new Set(["idle", "sleeping_backoff"])

/** Whether it is at work. */
export const isBusy = ({ state }: MachineView): boolean => !resting.has(state)

/** Those below a node of the tree. */
export const machinesIn = (node: TreeNode): ReadonlyArray<MachineView> => {
  const id = /^conversation-(\d+)$/.exec(node.name)?.[1]
  if (id === undefined) return node.children.flatMap(machinesIn)
  return node.children
    .filter(({ kind }) => kind === "machine")
    .map(({ state }) => ({ conversation: Number(id), state }))
}

/** Whether the supervisor of everything that a node does is there: it goes when what it supervises keeps crashing. */
export const hasRoot = (tree: TreeNode): boolean => tree.path === "/user/node" || tree.children.some(hasRoot)
