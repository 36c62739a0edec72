/**
 * The file that takes a command's output when there is too much of it: created when it is first needed, of bounded size. A full disk ends
 * the file, not the command.
 */
import type { FileHandle } from "node:fs/promises"
import { createSpill } from "./spill.ts"
import { reasonOf } from "./workspace.ts"

export class OutputFile {
  /** Where it is, once something was written. */
  path: string | undefined
  /** Why it is not complete, once that is so. */
  incomplete: string | undefined
  /** Bytes in it. */
  bytes = 0
  readonly #maxBytes: number
  #handle: FileHandle | undefined

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Whether it is being written to. */
  get started(): boolean {
    return this.path !== undefined || this.incomplete !== undefined
  }

  /** Appends; never fails. One call at a time. */
  async append(chunks: ReadonlyArray<Buffer>): Promise<void> {
    if (this.incomplete !== undefined) return
    try {
      if (this.#handle === undefined) {
        const { path, handle } = await createSpill()
        this.path = path
        this.#handle = handle
      }
      for (const chunk of chunks) {
        const room = this.#maxBytes - this.bytes
        const piece = chunk.length > room ? chunk.subarray(0, room) : chunk
        await this.#handle.writeFile(piece)
        this.bytes += piece.length
        if (piece.length < chunk.length) {
          this.incomplete = "the limit of its size is reached"
          return
        }
      }
    } catch (error) {
      this.incomplete = reasonOf(error)
    }
  }

  async close(): Promise<void> {
    await this.#handle?.close().catch(() => undefined)
    this.#handle = undefined
  }
}
