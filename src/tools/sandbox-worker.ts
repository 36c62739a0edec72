/**
 * Program of a sandbox thread: takes one job at a time from its port and posts what came of it. Its own entry of the build; it imports
 * nothing heavy, so that a thread starts in milliseconds.
 */
import { parentPort, workerData } from "node:worker_threads"
import { type JobInput, type JobName, jobs } from "./jobs.ts"
import { type JobAnswer, type JobRequest, writeStatus } from "./sandbox-wire.ts"

const status = new Uint8Array(workerData as SharedArrayBuffer)
const context = { at: (what: string) => writeStatus(status, what) }

const perform = <J extends JobName>(job: J, input: JobInput<J>): unknown => {
  // The record and its key agree by type, which a union of functions cannot express.
  const run = jobs[job] as (input: JobInput<J>, job: typeof context) => unknown
  return run(input, context)
}

parentPort?.on("message", ({ id, job, input }: JobRequest) => {
  context.at("")
  let answer: JobAnswer
  try {
    answer = { id, ok: true, value: perform(job, input) }
  } catch (error) {
    answer = { id, ok: false, reason: error instanceof Error ? error.message : String(error) }
  }
  parentPort?.postMessage(answer)
})
