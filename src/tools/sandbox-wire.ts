/**
 * What passes between the node and a sandbox thread: requests and answers as messages, and the current status in shared memory, which
 * can still be read when the thread no longer answers.
 */
import type { JobInput, JobName } from "./jobs.ts"

export interface JobRequest {
  readonly id: number
  readonly job: JobName
  readonly input: JobInput<JobName>
}

export type JobAnswer =
  | { readonly id: number; readonly ok: true; readonly value: unknown }
  | { readonly id: number; readonly ok: false; readonly reason: string }

/** Bytes of shared memory for the status. */
export const statusBytes = 1024

/** Writes the status: up to 1,022 bytes of UTF-8 after a two-byte length. */
export const writeStatus = (status: Uint8Array, what: string): void => {
  const { written } = encoder.encodeInto(what.length > statusBytes ? what.slice(-statusBytes / 4) : what, scratch)
  status.set(scratch.subarray(0, written), 2)
  status[0] = written >> 8
  status[1] = written & 255
}

/** Reads it back; null when there is none. A thread that was ended while writing leaves at worst a mixed text. */
export const readStatus = (status: Uint8Array): string | null => {
  const length = ((status[0] ?? 0) << 8) | (status[1] ?? 0)
  // Text decoders do not read shared memory: copy first.
  return length === 0 ? null : new TextDecoder().decode(Uint8Array.from(status.subarray(2, 2 + length)))
}

const encoder = new TextEncoder()
const scratch = new Uint8Array(statusBytes - 2)
