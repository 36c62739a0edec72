/**
 * Reads a command's output: hands chunks on one at a time, and knows when the output is over although the pipe stays open.
 * `reading → ending (a mark is awaited) → over`, or `reading → over` at the end of the pipe.
 */
import type { Readable } from "node:stream"

export class Intake {
  readonly #stream: Readable
  readonly #onOutput: (chunk: Buffer) => Promise<void> | undefined
  #over = false
  #mark: Buffer | undefined
  /** Bytes that may be the start of the mark. */
  #kept: Buffer = Buffer.alloc(0)
  /** When something came last. */
  #last = Date.now()
  #busy: Promise<void> = Promise.resolve()
  #wake: (() => void) | undefined

  /** Starts reading; while a promise that `onOutput` returns is pending, no more is read. */
  constructor(stream: Readable, onOutput: (chunk: Buffer) => Promise<void> | undefined) {
    this.#stream = stream
    this.#onOutput = onOutput
    stream.on("data", (chunk: Buffer) => this.#take(chunk))
    stream.once("close", () => this.#finish())
    stream.once("end", () => this.#finish())
    stream.on("error", () => this.#finish())
  }

  /** From now on the output ends with these bytes, which are not part of it. */
  endAt(mark: Buffer): void {
    this.#mark = mark
    this.#last = Date.now()
  }

  /** Settles when the output is over and all of it was handed on; in any case after this much quiet, or this much time. */
  async finished(quietMs: number, limitMs: number): Promise<void> {
    const deadline = Date.now() + limitMs
    while (!this.#over) {
      await this.#busy
      const left = Math.min(deadline, this.#last + quietMs) - Date.now()
      if (left <= 0) break
      await this.#change(left)
    }
    this.#finish()
    this.close()
    await this.#busy
  }

  /** Stops reading. */
  close(): void {
    this.#stream.destroy()
  }

  /** Settles when the output is over, at the latest after a while. */
  #change(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
      if (this.#over) this.#wake()
    })
  }

  #take(chunk: Buffer): void {
    if (this.#over) return
    this.#last = Date.now()
    const mark = this.#mark
    if (mark === undefined) {
      this.#handOn(chunk)
      return
    }
    const bytes = this.#kept.length === 0 ? chunk : Buffer.concat([this.#kept, chunk])
    const at = bytes.indexOf(mark)
    const end = at < 0 ? Math.max(0, bytes.length - mark.length + 1) : at
    this.#kept = at < 0 ? bytes.subarray(end) : Buffer.alloc(0)
    if (end > 0) this.#handOn(bytes.subarray(0, end))
    if (at >= 0) this.#finish()
  }

  #finish(): void {
    if (this.#over) return
    this.#over = true
    if (this.#kept.length > 0) this.#handOn(this.#kept)
    this.#wake?.()
  }

  #handOn(chunk: Buffer): void {
    const pending = this.#onOutput(chunk)
    if (pending === undefined) return
    this.#stream.pause()
    this.#busy = Promise.all([this.#busy, pending]).then(() => {
      this.#last = Date.now()
      this.#stream.resume()
    })
  }
}
