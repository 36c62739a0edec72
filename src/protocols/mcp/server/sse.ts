/**
 * Server-sent events as the official package writes them, read back: the gateway owns the sockets, and writes them itself.
 */
export interface Frame {
  readonly data: string
  readonly event: string | undefined
  readonly id: string | undefined
}

const frameOf = (block: string): Frame | null => {
  const data: Array<string> = []
  let event: string | undefined
  let id: string | undefined
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":")
    // Comments begin with a colon: they only keep connections open, which the gateway does by itself.
    if (colon <= 0) continue
    const value = line.slice(colon + 1).replace(/^ /, "")
    const name = line.slice(0, colon)
    if (name === "data") data.push(value)
    else if (name === "event") event = value
    else if (name === "id") id = value
  }
  return data.length === 0 ? null : { data: data.join("\n"), event, id }
}

/** The frames of a body, one at a time. */
export interface FrameReader {
  /** The next one, or null at the end. Rejects where the body breaks. */
  readonly next: () => Promise<Frame | null>
  /** Nobody wants the rest. */
  readonly cancel: () => Promise<void>
}

export const frameReader = (body: ReadableStream<Uint8Array>): FrameReader => {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ""
  const buffered = (): Frame | null => {
    while (true) {
      const end = text.indexOf("\n\n")
      if (end < 0) return null
      const frame = frameOf(text.slice(0, end))
      text = text.slice(end + 2)
      if (frame !== null) return frame
    }
  }
  return {
    next: async () => {
      while (true) {
        const frame = buffered()
        if (frame !== null) return frame
        const { done, value } = await reader.read()
        if (done) return null
        text += decoder.decode(value, { stream: true })
      }
    },
    cancel: () => reader.cancel().catch(() => {}),
  }
}
