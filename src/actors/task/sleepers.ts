/**
 * The times of sleeping tasks: a binary heap by wake time. Entries of tasks that no longer sleep stay until their time and are skipped then.
 */
import type { TaskId } from "../../domain/ids.ts"

interface Sleeper {
  readonly id: TaskId
  /** Milliseconds since the epoch. */
  readonly at: number
}

export class Sleepers {
  private readonly heap: Array<Sleeper> = []

  /** The earliest time, or null. */
  get next(): number | null {
    return this.heap[0]?.at ?? null
  }

  add(sleeper: Sleeper): void {
    const { heap } = this
    let at = heap.push(sleeper) - 1
    while (at > 0) {
      const up = (at - 1) >> 1
      if (!this.before(at, up)) break
      this.swap(at, up)
      at = up
    }
  }

  /** Takes out all that are due at `now`, the earliest first. */
  due(now: number): ReadonlyArray<TaskId> {
    const ids: Array<TaskId> = []
    for (let first = this.heap[0]; first !== undefined && first.at <= now; first = this.heap[0]) {
      ids.push(first.id)
      this.removeFirst()
    }
    return ids
  }

  private removeFirst(): void {
    const { heap } = this
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return
    heap[0] = last
    let at = 0
    for (;;) {
      const left = at * 2 + 1
      let least = at
      if (left < heap.length && this.before(left, least)) least = left
      if (left + 1 < heap.length && this.before(left + 1, least)) least = left + 1
      if (least === at) return
      this.swap(at, least)
      at = least
    }
  }

  private before(a: number, b: number): boolean {
    const [one, other] = [this.heap[a], this.heap[b]]
    return one !== undefined && other !== undefined && one.at < other.at
  }

  private swap(a: number, b: number): void {
    const { heap } = this
    const [one, other] = [heap[a], heap[b]]
    if (one === undefined || other === undefined) return
    heap[a] = other
    heap[b] = one
  }
}
