/**
 * The lock table: who holds which paths and who waits, in order of arrival. No I/O and no time: the same calls give the same grants.
 *
 * 1. A path has at most one holder. 2. A request is granted all its paths at once. 3. A request is granted only when no holder and no
 * earlier waiting request has one of its paths. 4. Releasing a request that waits withdraws it.
 */

/** Ids of requests that a release has granted, in order of arrival. */
export type Grants = ReadonlyArray<number>

export class LockTable {
  /** Held paths by holder. */
  readonly #held = new Map<number, ReadonlySet<string>>()
  /** Waiting requests in order of arrival. */
  readonly #queue = new Map<number, ReadonlySet<string>>()
  readonly #busy = new Map<string, number>()

  /** Asks for `paths` in the name of `id`. True when granted now; otherwise a later {@link release} names `id`. */
  request(id: number, paths: Iterable<string>): boolean {
    if (this.#held.has(id) || this.#queue.has(id)) throw new TypeError(`lock request ${id}: expected a fresh id`)
    const wanted = new Set(paths)
    for (const earlier of this.#queue.values()) {
      if (!disjoint(earlier, wanted)) return this.#wait(id, wanted)
    }
    if (!this.#free(wanted)) return this.#wait(id, wanted)
    this.#grant(id, wanted)
    return true
  }

  /** Gives back what `id` holds, or withdraws its request. Unknown ids change nothing, so that a release may be repeated. */
  release(id: number): Grants {
    const paths = this.#held.get(id)
    if (paths === undefined) {
      if (!this.#queue.delete(id)) return []
    } else {
      this.#held.delete(id)
      for (const path of paths) this.#busy.delete(path)
    }
    const granted: Array<number> = []
    const claimed = new Set<string>()
    for (const [waiter, wanted] of this.#queue) {
      if (disjoint(claimed, wanted) && this.#free(wanted)) {
        this.#queue.delete(waiter)
        this.#grant(waiter, wanted)
        granted.push(waiter)
      } else for (const path of wanted) claimed.add(path)
    }
    return granted
  }

  /** The holder of a path, or undefined. */
  holderOf(path: string): number | undefined {
    return this.#busy.get(path)
  }

  /** Requests that hold and that wait. */
  get size(): { readonly held: number; readonly waiting: number } {
    return { held: this.#held.size, waiting: this.#queue.size }
  }

  #wait(id: number, wanted: ReadonlySet<string>): false {
    this.#queue.set(id, wanted)
    return false
  }

  #free(wanted: ReadonlySet<string>): boolean {
    for (const path of wanted) if (this.#busy.has(path)) return false
    return true
  }

  #grant(id: number, wanted: ReadonlySet<string>): void {
    this.#held.set(id, wanted)
    for (const path of wanted) this.#busy.set(path, id)
  }
}

const disjoint = (left: ReadonlySet<string>, right: ReadonlySet<string>): boolean => {
  for (const path of right) if (left.has(path)) return false
  return true
}
