/**
 * The mailbox of an actor, as the part of the actor that the messages wait in. An idle actor has no queue object: the first message
 * sits in a field, an array comes with the second and goes when it is empty.
 */

/** No message. */
export const EMPTY: unique symbol = Symbol("empty")

const COMPACT_AT = 1_024

export class Mailbox {
  private first: unknown = EMPTY
  private rest: Array<unknown> | null = null
  private head = 0

  get depth(): number {
    return (this.first === EMPTY ? 0 : 1) + (this.rest === null ? 0 : this.rest.length - this.head)
  }

  get hasMail(): boolean {
    return this.first !== EMPTY || this.rest !== null
  }

  /** False, and nothing done, when `capacity` messages wait already. */
  protected put(item: unknown, capacity: number): boolean {
    if (this.rest !== null) {
      if (this.rest.length - this.head + (this.first === EMPTY ? 0 : 1) >= capacity) return false
      this.rest.push(item)
    } else if (this.first === EMPTY) {
      this.first = item
    } else {
      if (capacity <= 1) return false
      this.rest = [item]
    }
    return true
  }

  /** The oldest message, or EMPTY. */
  protected next(): unknown {
    const { first } = this
    if (first !== EMPTY) {
      this.first = EMPTY
      return first
    }
    const { rest } = this
    if (rest === null) return EMPTY
    const item = rest[this.head]
    rest[this.head++] = undefined
    if (this.head === rest.length) {
      this.rest = null
      this.head = 0
    } else if (this.head > COMPACT_AT && this.head * 2 > rest.length) {
      this.rest = rest.slice(this.head)
      this.head = 0
    }
    return item
  }

  /** Puts messages in front of those that wait, in the given order, whatever the capacity. */
  protected putFirst(items: ReadonlyArray<unknown>): void {
    if (items.length === 0) return
    const waiting = this.takeAll()
    this.rest = items.concat(waiting)
  }

  /** Takes everything out, oldest first. */
  takeAll(): Array<unknown> {
    const all: Array<unknown> = this.first === EMPTY ? [] : [this.first]
    if (this.rest !== null) for (let i = this.head; i < this.rest.length; i++) all.push(this.rest[i])
    this.first = EMPTY
    this.rest = null
    this.head = 0
    return all
  }
}
