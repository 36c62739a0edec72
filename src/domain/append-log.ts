/**
 * A persistent list that grows at its end in constant time. Versions share one buffer: appending to the newest version writes behind it,
 * appending to an older one copies first, so that no version ever sees another's elements.
 */

/** What a list adds up to, element by element, with what is known of it already. */
export class Scan<A, S> {
  readonly initial: S
  readonly step: (before: S, item: A, index: number) => S
  /** The states behind each element, by the buffer that holds the elements. */
  readonly known = new WeakMap<ReadonlyArray<A>, Array<S>>()

  constructor(initial: S, step: (before: S, item: A, index: number) => S) {
    this.initial = initial
    this.step = step
  }
}

export class AppendLog<A> {
  private readonly buffer: Array<A>
  readonly length: number

  private constructor(buffer: Array<A>, length: number) {
    this.buffer = buffer
    this.length = length
  }

  /** Copies `items`. */
  static from<A>(items: ReadonlyArray<A>): AppendLog<A> {
    return new AppendLog([...items], items.length)
  }

  /** This list with `items` behind it; this one stays as it is. */
  append(items: ReadonlyArray<A>): AppendLog<A> {
    if (items.length === 0) return this
    const newest = this.buffer.length === this.length
    const buffer = newest ? this.buffer : this.buffer.slice(0, this.length)
    for (const item of items) buffer.push(item)
    return new AppendLog(buffer, buffer.length)
  }

  /** The state of `scan` behind the last element. Remembered with the elements, so that a log that grows costs only what was added. */
  scan<S>(scan: Scan<A, S>): S {
    if (this.length === 0) return scan.initial
    let states = scan.known.get(this.buffer)
    if (states === undefined) {
      states = []
      scan.known.set(this.buffer, states)
    }
    for (let at = states.length; at < this.length; at++) {
      states.push(scan.step(at === 0 ? scan.initial : (states[at - 1] as S), this.buffer[at] as A, at))
    }
    return states[this.length - 1] as S
  }

  /** The element at `index`, counted from 0. */
  at(index: number): A | undefined {
    return index < this.length ? this.buffer[index] : undefined
  }

  /** Elements from `start` on, as an array of their own. */
  slice(start = 0): ReadonlyArray<A> {
    return this.buffer.slice(start, this.length)
  }

  /** The elements at the end for which `keep` holds, in order; looks no further back. */
  takeLastWhile(keep: (item: A) => boolean): ReadonlyArray<A> {
    let start = this.length
    while (start > 0 && keep(this.buffer[start - 1] as A)) start--
    return this.buffer.slice(start, this.length)
  }

  /** Whether this list starts with the whole of `other`, told in constant time: a copy with the same elements counts as another list. */
  extends(other: AppendLog<A>): boolean {
    return this.buffer === other.buffer && this.length >= other.length
  }
}
