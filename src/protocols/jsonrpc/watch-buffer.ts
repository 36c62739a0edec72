/**
 * What one watch still has to send: a pure state machine. Rules:
 * 1. At most `inFlightLimit` deliveries are unacknowledged.
 * 2. Events wait in order, at most `eventLimit` of them and `byteLimit` of their text (one larger event may wait alone).
 * 3. An event that does not fit drops all that wait, and the buffer is `lost`: it takes nothing more until `resume`.
 * 4. The first delivery after a `resume` is marked as behind a gap.
 * 5. An acknowledgement covers its delivery and all before it; one of a delivery that was never sent, or an old one, changes nothing.
 */

export const inFlightLimit = 2
export const eventLimit = 1024
export const byteLimit = 4 * 1024 * 1024
/** Events in one delivery. */
export const deliveryLimit = 64

export interface WatchBuffer {
  /** Events as JSON text, oldest first. */
  readonly waiting: ReadonlyArray<string>
  readonly bytes: number
  /** Deliveries sent and acknowledged so far. */
  readonly sent: number
  readonly acknowledged: number
  readonly lost: boolean
  readonly gap: boolean
}

export interface Delivery {
  readonly delivery: number
  readonly gap: boolean
  readonly events: ReadonlyArray<string>
}

export const emptyBuffer: WatchBuffer = { waiting: [], bytes: 0, sent: 0, acknowledged: 0, lost: false, gap: false }

export const inFlight = (buffer: WatchBuffer): number => buffer.sent - buffer.acknowledged

/** Rules 2 and 3. */
export const offer = (buffer: WatchBuffer, event: string): WatchBuffer => {
  if (buffer.lost) return buffer
  const bytes = buffer.bytes + event.length
  const fits = buffer.waiting.length === 0 || (buffer.waiting.length < eventLimit && bytes <= byteLimit)
  return fits
    ? { ...buffer, waiting: [...buffer.waiting, event], bytes }
    : { ...buffer, waiting: [], bytes: 0, lost: true }
}

/** The next delivery, if rule 1 allows one and something waits. */
export const take = (buffer: WatchBuffer): readonly [Delivery, WatchBuffer] | null => {
  if (buffer.waiting.length === 0 || inFlight(buffer) >= inFlightLimit) return null
  const events = buffer.waiting.slice(0, deliveryLimit)
  const waiting = buffer.waiting.slice(deliveryLimit)
  const sent = buffer.sent + 1
  const bytes = waiting.reduce((sum, event) => sum + event.length, 0)
  return [
    { delivery: sent, gap: buffer.gap, events },
    { ...buffer, waiting, bytes, sent, gap: false },
  ]
}

/** Rule 5. */
export const acknowledge = (buffer: WatchBuffer, delivery: number): WatchBuffer =>
  delivery > buffer.acknowledged && delivery <= buffer.sent ? { ...buffer, acknowledged: delivery } : buffer

/** Whether a lost buffer may start over: a delivery could go out at once. */
export const canResume = (buffer: WatchBuffer): boolean => buffer.lost && inFlight(buffer) < inFlightLimit

/** Rule 4: from here on events are taken again, the first of them a fresh snapshot. */
export const resume = (buffer: WatchBuffer): WatchBuffer => ({ ...buffer, lost: false, gap: true })
