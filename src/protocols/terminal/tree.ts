/**
 * The supervision tree as text. Pure.
 */
import type { TreeNode } from "../../domain/tree.ts"
import { ago } from "./format.ts"
import { oneLine } from "./sanitize.ts"
import { painter } from "./style.ts"
import { truncate } from "./width.ts"

export interface TreeOptions {
  readonly color: boolean
  readonly columns: number | null
  /** Milliseconds since the epoch, for the age of crashes. */
  readonly now: number
}

/** One line per node: name, state, mailbox depth when not empty, restarts, last crash. */
export const renderTree = (root: TreeNode, options: TreeOptions): string => {
  const paint = painter(options.color)
  const lines: Array<string> = []
  const visit = (node: TreeNode, head: string, rest: string) => {
    const facts = [
      oneLine(node.state),
      node.mailbox > 0 ? `mailbox ${node.mailbox}` : "",
      node.restarts > 0 ? `restarts ${node.restarts}` : "",
      node.lastCrash === null
        ? ""
        : `last crash ${ago(node.lastCrash.at, options.now)}: ${oneLine(node.lastCrash.message)}`,
    ].filter((fact) => fact !== "")
    const name = oneLine(node.name)
    const plain = `${head}${name}  ${facts.join(" · ")}`.trimEnd()
    const cut = options.columns === null ? plain : truncate(plain, options.columns - 1)
    const tone = node.lastCrash !== null ? "warning" : "dim"
    const nameEnd = Math.min(cut.length, head.length + name.length)
    lines.push(cut.slice(0, nameEnd) + paint(tone, cut.slice(nameEnd)))
    node.children.forEach((child, index) => {
      const last = index === node.children.length - 1
      visit(child, `${rest}${last ? "└─ " : "├─ "}`, `${rest}${last ? "   " : "│  "}`)
    })
  }
  visit(root, "", "")
  return lines.join("\n")
}
