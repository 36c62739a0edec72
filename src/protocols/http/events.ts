/**
 * Server-sent events to one client. Owner of one response: frames go out together at the end of a turn of the event loop; what the socket
 * does not take waits, up to `waitingLimit`. A client that takes nothing for `stalledMs`, or lets more than that wait, is cut off, which
 * closes the response and so interrupts the handler. `tick` is called by the server's one timer for all streams.
 */
import type { ServerResponse } from "node:http"
import { makeRoom } from "../socket/room.ts"
import type { EventSink } from "./route.ts"

/** Bytes that may wait for one client before it counts as stalled: 4 MiB, behind one event of any size. */
const waitingLimit = 4 * 1024 * 1024
/** Bytes above which `room` waits. */
const roomLimit = 64 * 1024

const lineEnd = /\r\n|\r|\n/

/** One event as text. Pure. Ends of lines in names and ids are taken out, since they would begin another field. */
export const formatEvent = (data: string, event: string | undefined, id: string | undefined): string => {
  const name = event === undefined ? "" : `event: ${event.replace(/[\r\n]/g, "")}\n`
  const number = id === undefined ? "" : `id: ${id.replace(/[\r\n\0]/g, "")}\n`
  // Almost every event is one line of JSON.
  const lines =
    data.includes("\n") || data.includes("\r")
      ? data
          .split(lineEnd)
          .map((line) => `data: ${line}\n`)
          .join("")
      : `data: ${data}\n`
  return `${name}${number}${lines}\n`
}

export interface EventStream {
  readonly sink: EventSink
  /** Sends a heartbeat where one is due, and cuts a stalled client off. `now` in ms. */
  readonly tick: (now: number) => void
  /** Sends what waits and ends the response. */
  readonly end: () => void
}

export interface EventStreamOptions {
  readonly heartbeatMs: number
  readonly stalledMs: number
  /** In ms. */
  readonly now: () => number
  /** The client was cut off, for the log. */
  readonly onStalled: () => void
}

export const makeEventStream = (response: ServerResponse, options: EventStreamOptions): EventStream => {
  const { heartbeatMs, now, onStalled, stalledMs } = options
  let frames = ""
  let scheduled = false
  let closed = response.destroyed
  /** Writes that the socket has not taken yet, and when it last took one. */
  let writes = 0
  let progressAt = now()
  let sentAt = progressAt

  const waiting = () => frames.length + response.writableLength
  const { wait, wake } = makeRoom(() => closed || waiting() <= roomLimit)
  const taken = () => {
    writes--
    progressAt = now()
    if (waiting() <= roomLimit) wake()
  }
  const flush = () => {
    scheduled = false
    if (frames === "" || closed || response.writableEnded) return
    const text = frames
    frames = ""
    sentAt = now()
    if (writes++ === 0) progressAt = sentAt
    response.write(text, taken)
  }
  response.on("close", () => {
    closed = true
    frames = ""
    wake()
  })

  const cut = () => {
    if (closed) return
    closed = true
    onStalled()
    response.destroy()
  }

  return {
    sink: {
      send: (data, { event, id } = {}) => {
        if (closed || response.writableEnded) return
        if (waiting() > waitingLimit) return cut()
        frames += formatEvent(data, event, id)
        if (scheduled) return
        scheduled = true
        process.nextTick(flush)
      },
      room: wait,
    },
    tick: (at) => {
      if (closed || response.writableEnded) return
      if (writes > 0) {
        if (at - progressAt >= stalledMs) cut()
      } else if (at - sentAt >= heartbeatMs) {
        frames += ": keep-alive\n\n"
        flush()
      }
    },
    end: () => {
      flush()
      if (!closed && !response.writableEnded) response.end()
    },
  }
}
