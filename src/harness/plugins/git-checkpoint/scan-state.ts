/**
 * What scans of workspaces remember, for the few workspaces that were looked at last. Scans of one workspace come one after another.
 */
import type { ScanMemory } from "./scan.ts"

/** Workspaces that are remembered. */
const remembered = 8

export class ScanState {
  private readonly memories = new Map<string, { readonly memory: ScanMemory; busy: Promise<unknown> }>()

  with<A>(root: string, use: (memory: ScanMemory) => Promise<A>): Promise<A> {
    const known = this.memories.get(root) ?? { memory: new Map(), busy: Promise.resolve() }
    this.memories.delete(root)
    this.memories.set(root, known)
    for (const old of [...this.memories.keys()].slice(0, -remembered)) this.memories.delete(old)
    const result = known.busy.then(() => use(known.memory))
    known.busy = result.catch(() => undefined)
    return result
  }
}
