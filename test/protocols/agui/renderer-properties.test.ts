/**
 * Whatever the event stream brings, in whatever order, the rendered stream is one that the official verifier accepts.
 */

import fc from "fast-check"
import { applyPatch } from "fast-json-patch"
import { describe, expect, it } from "vitest"
import type { Event } from "../../../src/domain/event.ts"
import { SubmissionId } from "../../../src/domain/ids.ts"
import { seen } from "../../../src/protocols/agui/join.ts"
import { merge } from "../../../src/protocols/agui/merge.ts"
import type { AguiEvent } from "../../../src/protocols/agui/protocol.ts"
import { renderer } from "../../../src/protocols/agui/renderer.ts"
import { awaiting, pause } from "../../../src/protocols/agui/settle.ts"
import { stateOf } from "../../../src/protocols/agui/state.ts"
import { type Item, init, type Options, type View } from "../../../src/protocols/agui/view.ts"
import { streams } from "./events.ts"
import { accept } from "./official.ts"

interface Told {
  readonly view: View
  readonly events: ReadonlyArray<AguiEvent>
}

/** Renders as the transport does; `rests` says behind which events nothing waits. */
const tell = (
  events: ReadonlyArray<Event>,
  options: Options,
  rests: ReadonlyArray<boolean>,
  awaits: ReadonlyArray<SubmissionId> = [],
): Told => {
  const out: Array<AguiEvent> = []
  let view = init(options)
  const adopt = ([next, items]: readonly [View, ReadonlyArray<Item>]) => {
    view = next
    for (const item of items) {
      if (item.type !== "MESSAGES_DUE") {
        out.push(item)
        continue
      }
      view = seen(view, [], item.current)
      out.push({ type: "MESSAGES_SNAPSHOT", messages: [] })
    }
  }
  events.forEach((event, at) => {
    adopt(renderer.render(view, event))
    if (at === 0 && options.runId !== null && !view.over) {
      adopt(
        awaiting(
          view,
          awaits.map((id) => ({ id, known: false, done: false })),
        ),
      )
    }
    if (rests[at % Math.max(1, rests.length)] === true) adopt(pause(view))
  })
  adopt(renderer.flush(view))
  return { view, events: out }
}

const rests = fc.array(fc.boolean(), { maxLength: 7 })

describe("any stream of events", () => {
  it("renders as the events of a conversation", () =>
    fc.assert(
      fc.asyncProperty(streams, rests, async (events, quiet) => {
        await accept(tell(events, { threadId: "t", runId: null }, quiet).events, { threadId: "t" })
      }),
      { numRuns: 150 },
    ))

  it("renders as one run of a client, with inputs that it waits for and without", () =>
    fc.assert(
      fc.asyncProperty(
        streams,
        rests,
        fc.boolean(),
        fc.boolean(),
        fc.boolean(),
        async (events, quiet, waits, interrupts, has) => {
          const awaits = waits ? [SubmissionId.make(1), SubmissionId.make(2)] : []
          const told = tell(events, { threadId: "t", runId: "r", interrupts, hasMessages: has }, quiet, awaits)
          await accept(told.events, { threadId: "t", runId: "r" })
          expect(told.events.filter((event) => event.type === "RUN_STARTED")).toHaveLength(1)
        },
      ),
      { numRuns: 150 },
    ))

  it("says the same after merging, piece by piece", () =>
    fc.assert(
      fc.asyncProperty(streams, async (events) => {
        const told = tell(events, { threadId: "t", runId: null }, []).events
        const merged = merge(told)
        await accept(merged, { threadId: "t" })
        expect(texts(merged)).toEqual(texts(told))
        expect(merged.length).toBeLessThanOrEqual(told.length)
      }),
      { numRuns: 150 },
    ))

  it("carries the state document on by patches that the client's library applies", () =>
    fc.assert(
      fc.property(streams, (events) => {
        const told = tell(events, { threadId: "t", runId: null }, [])
        let document: unknown = null
        for (const event of told.events) {
          if (event.type === "STATE_SNAPSHOT") document = structuredClone(event.snapshot)
          if (event.type === "STATE_DELTA") {
            document = applyPatch(document, structuredClone(event.delta) as never, true).newDocument
          }
        }
        const { session } = told.view
        expect(document).toEqual(session === null ? null : stateOf(session))
      }),
      { numRuns: 200 },
    ))
})

/** What a client has of every message, whatever pieces it came in. */
const texts = (events: ReadonlyArray<AguiEvent>): ReadonlyArray<string> => {
  const all = new Map<string, string>()
  let epoch = 0
  for (const event of events) {
    if (event.type === "MESSAGES_SNAPSHOT") epoch++
    if (event.type !== "TEXT_MESSAGE_CONTENT" && event.type !== "TOOL_CALL_ARGS") continue
    const key = `${epoch} ${event.type === "TOOL_CALL_ARGS" ? event.toolCallId : event.messageId}`
    all.set(key, (all.get(key) ?? "") + event.delta)
  }
  return [...all].map(([key, text]) => `${key}: ${text}`)
}
