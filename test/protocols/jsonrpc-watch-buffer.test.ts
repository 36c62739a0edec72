/** What a watch sends when: the pure rules of back-pressure. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  acknowledge,
  byteLimit,
  canResume,
  type Delivery,
  deliveryLimit,
  emptyBuffer,
  eventLimit,
  inFlight,
  inFlightLimit,
  offer,
  resume,
  take,
  type WatchBuffer,
} from "../../src/protocols/jsonrpc/watch-buffer.ts"

const flush = (buffer: WatchBuffer): readonly [ReadonlyArray<Delivery>, WatchBuffer] => {
  const out: Array<Delivery> = []
  let current = buffer
  for (let next = take(current); next !== null; next = take(current)) {
    out.push(next[0])
    current = next[1]
  }
  return [out, current]
}

describe("a watch", () => {
  it("has at most two deliveries unacknowledged, and sends what waited together", () => {
    const [first, one] = flush(offer(emptyBuffer, "1"))
    const [second, two] = flush(offer(one, "2"))
    const [third, three] = flush(offer(offer(two, "3"), "4"))
    expect([first, second, third].map((deliveries) => deliveries.length)).toEqual([1, 1, 0])
    const [after] = flush(acknowledge(three, 1))
    expect(after).toEqual([{ delivery: 3, gap: false, events: ["3", "4"] }])
  })

  it("drops what waits when more comes than fits, takes nothing until it resumes, and marks the gap once", () => {
    let buffer = offer(offer(emptyBuffer, "a"), "b")
    buffer = flush({ ...buffer, sent: 1 })[1]
    for (let i = 0; i <= eventLimit; i++) buffer = offer(buffer, "x")
    expect(buffer).toMatchObject({ lost: true, waiting: [], bytes: 0 })
    expect(offer(buffer, "y")).toBe(buffer)
    expect(canResume(buffer)).toBe(false)
    buffer = acknowledge(buffer, 2)
    expect(canResume(buffer)).toBe(true)
    buffer = offer(offer(resume(buffer), "snapshot"), "z")
    const [sent, rest] = flush(buffer)
    expect(sent).toEqual([{ delivery: 3, gap: true, events: ["snapshot", "z"] }])
    expect(rest.gap).toBe(false)
  })

  it("takes one event larger than the byte limit alone", () => {
    const large = "x".repeat(byteLimit + 1)
    const buffer = offer({ ...emptyBuffer, sent: inFlightLimit }, large)
    expect(buffer.waiting.length).toBe(1)
    expect(offer(buffer, "y").lost).toBe(true)
  })

  it("ignores acknowledgements of deliveries that were never sent, or again", () => {
    const buffer: WatchBuffer = { ...emptyBuffer, sent: 2, acknowledged: 1 }
    for (const delivery of [-1, 0, 1, 3, 1e9]) expect(acknowledge(buffer, delivery)).toBe(buffer)
    expect(acknowledge(buffer, 2).acknowledged).toBe(2)
  })

  it("loses no event and keeps their order between gaps, within its bounds, whatever comes when", () => {
    const step = fc.oneof(
      fc.record({ type: fc.constant("offer" as const), times: fc.integer({ min: 1, max: 700 }) }),
      fc.record({ type: fc.constant("ack" as const), of: fc.integer({ min: -2, max: 40 }) }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let buffer = emptyBuffer
        let next = 0
        let expected = 0
        const deliver = () => {
          const [sent, rest] = flush(buffer)
          buffer = rest
          for (const delivery of sent) {
            expect(delivery.events.length).toBeLessThanOrEqual(deliveryLimit)
            if (delivery.gap) expected = Number(delivery.events[0])
            for (const event of delivery.events) expect(Number(event)).toBe(expected++)
          }
        }
        for (const step of steps) {
          if (step.type === "ack") buffer = acknowledge(buffer, step.of)
          else for (let i = 0; i < step.times; i++) buffer = offer(buffer, String(next++))
          // What comes first after a resume is a snapshot, in the place of what was dropped.
          if (canResume(buffer)) buffer = offer(resume(buffer), String(next++))
          deliver()
          expect(inFlight(buffer)).toBeLessThanOrEqual(inFlightLimit)
          expect(buffer.waiting.length).toBeLessThanOrEqual(eventLimit)
          expect(buffer.bytes).toBe(buffer.waiting.join("").length)
        }
        for (let i = 0; i < 40 && !buffer.lost; i++) {
          buffer = acknowledge(buffer, buffer.sent)
          deliver()
        }
        if (!buffer.lost) expect(expected).toBe(next)
      }),
    )
  })
})
