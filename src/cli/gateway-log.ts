/**
 * The log of `super-pi gateway` on stderr: one line for each request, session, tool and answer; with `--verbose` also text and thinking as
 * they stream. Text of models and tools loses its control characters.
 */
import type { Event } from "../domain/event.ts"
import type { GatewayLog } from "../protocols/http/log.ts"

/** Characters of a line's text. */
const shownText = 200

const oneLine = (text: string): string => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  const clean = text.slice(0, shownText * 2).replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ")
  return clean.length <= shownText ? clean : `${clean.slice(0, shownText)}…`
}

const eventLine = (event: Event, verbose: boolean): string | null => {
  switch (event.type) {
    case "turn_started":
      return event.model === "" ? "turn started" : `turn started, ${oneLine(event.model)}`
    case "turn_completed":
      return `turn completed (${event.stop_reason}), ${event.text.length} characters`
    case "turn_error":
      return `turn failed: ${event.code}: ${oneLine(event.message)}`
    case "turn_cancelled":
      return "turn cancelled"
    case "tool_started":
      return `tool ${oneLine(event.name)} started`
    case "tool_blocked":
      return `tool ${oneLine(event.name)} blocked: ${oneLine(event.reason)}`
    case "tool_completed":
      return `tool ${oneLine(event.name)} ${event.is_error ? "failed" : "completed"} in ${event.duration_ms} ms`
    case "text_delta":
      return verbose ? `text: ${oneLine(event.text)}` : null
    case "thinking_delta":
      return verbose ? `thinking: ${oneLine(event.text)}` : null
    case "toolcall_delta":
      return verbose ? `call of ${oneLine(event.name)}: ${oneLine(event.delta)}` : null
    default:
      return null
  }
}

/** `write` gets lines without their end. */
export const gatewayLog = (write: (line: string) => void, verbose: boolean): GatewayLog => {
  const asWho = (principal: string) => (principal === "" || principal === "local" ? "" : ` as ${oneLine(principal)}`)
  return {
    request: ({ requestId, principal, method, path, status, durationMs }) =>
      write(`${oneLine(method)} ${oneLine(path)} ${status} ${durationMs} ms${asWho(principal)} (${requestId})`),
    session: ({ protocol, principal, name, conversationId, created }) =>
      write(
        `${protocol}: session ${oneLine(name)}${asWho(principal)} is conversation ${conversationId}${created ? ", new" : ""}`,
      ),
    event: (protocol, event) => {
      const line = eventLine(event, verbose)
      if (line !== null) write(`${protocol}: conversation ${event.conversation_id}: ${line}`)
    },
    notice: (line) => write(`notice: ${oneLine(line)}`),
  }
}
