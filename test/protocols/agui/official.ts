/**
 * The official client's own checks over a list of events, and those that it does not make: whole streams, the ids of runs and threads, types
 * that the protocol has, integer times, nothing that its schemas do not describe.
 */
import { enforceEvents, transformChunks, verifyEvents } from "@ag-ui/client"
import type { BaseEvent } from "@ag-ui/core"
import { EventType } from "@ag-ui/core"
import { EventSchemas } from "@ag-ui/core/schemas"
import { from, lastValueFrom, toArray } from "rxjs"
import { vi } from "vitest"
import type { AguiEvent } from "../../../src/protocols/agui/protocol.ts"

const types: ReadonlySet<string> = new Set(Object.values(EventType))

/** Fails with the first thing that the official packages, or the rules beside them, do not accept. */
export const accept = async (
  events: ReadonlyArray<AguiEvent>,
  expected: { readonly threadId: string; readonly runId?: string; readonly whole?: boolean },
): Promise<void> => {
  strict(events, expected)
  const warn = vi.spyOn(console, "warn").mockImplementation((message) => {
    throw new Error(String(message))
  })
  try {
    // What goes over the wire.
    const wire = events.map((event) => JSON.parse(JSON.stringify(event)) as BaseEvent)
    for (const event of wire) EventSchemas.parse(event)
    const source = from(wire).pipe(enforceEvents(), transformChunks(), verifyEvents(), toArray())
    const passed = await lastValueFrom(source)
    if (passed.length !== wire.length) throw new Error(`${wire.length - passed.length} events were dropped`)
  } finally {
    warn.mockRestore()
  }
}

const fault = (at: number, event: AguiEvent | undefined, what: string): Error =>
  new Error(`event ${at} (${JSON.stringify(event)?.slice(0, 200)}): ${what}`)

const strict = (
  events: ReadonlyArray<AguiEvent>,
  { runId, threadId, whole = true }: { threadId: string; runId?: string; whole?: boolean },
): void => {
  let open: string | null = null
  const runs = new Set<string>()
  events.forEach((event, at) => {
    if (!types.has(event.type)) throw fault(at, event, "not a type of the protocol")
    const { timestamp } = event
    if (timestamp !== undefined && !Number.isSafeInteger(timestamp)) throw fault(at, event, "timestamp is no integer")
    if (event.type === "RUN_STARTED") {
      if (open !== null) throw fault(at, event, "a run is open")
      if (event.threadId !== threadId) throw fault(at, event, "another thread")
      if (runId !== undefined && event.runId !== runId) throw fault(at, event, "another run")
      if (runs.has(event.runId)) throw fault(at, event, "the run was there before")
      runs.add(event.runId)
      open = event.runId
      return
    }
    if (open === null) throw fault(at, event, "outside of a run")
    if (event.type === "RUN_FINISHED") {
      if (event.runId !== open || event.threadId !== threadId) throw fault(at, event, "the end of another run")
      open = null
    }
    if (event.type === "RUN_ERROR") open = null
    if ("delta" in event && event.delta.length === 0) throw fault(at, event, "an empty delta")
  })
  if (whole && (open !== null || events.length === 0)) throw new Error("the stream was cut off")
}
