/**
 * A watcher that checks the stream: numbers rise by one, what streams is what is committed, and it remembers every committed entry shown.
 */
import type { Event } from "../src/domain/event.ts"
import { textOf } from "../src/domain/message.ts"
import type { Observations } from "./observations.ts"

export class Watcher {
  readonly #conversation: number
  readonly #observations: Observations
  #last: number | null = null
  #text: string | null = null

  constructor(conversation: number, observations: Observations) {
    this.#conversation = conversation
    this.#observations = observations
  }

  /** One delivery. A gap is allowed only where the protocol says so; a snapshot starts over. */
  accept(events: ReadonlyArray<Event>, gap: boolean): void {
    if (gap) this.#last = null
    for (const event of events) this.#one(event)
  }

  #one(event: Event): void {
    const fault = (text: string) => this.#observations.fault(`watch ${this.#conversation}: ${text}`)
    this.#observations.event(event)
    if (event.conversation_id !== this.#conversation) fault(`got an event of conversation ${event.conversation_id}`)
    if (this.#last !== null && event.type !== "snapshot" && event.seq_no !== this.#last + 1) {
      fault(`${event.type} has seq_no ${event.seq_no} after ${this.#last}`)
    }
    this.#last = event.seq_no
    switch (event.type) {
      case "snapshot":
        this.#last = event.session.seq_no
        this.#text = event.session.partial?.text ?? (event.session.state === "streaming_llm" ? null : "")
        return
      case "stream_reset":
      case "turn_started":
        this.#text = ""
        return
      case "text_delta":
        if (this.#text !== null) this.#text += event.text
        return
      case "message_completed":
        this.#observations.entries.set(event.entry_id, { conversation: this.#conversation, content: event.content })
        if (event.role === "assistant") {
          const committed = textOf(event.content)
          if (this.#text !== null && this.#text !== committed) {
            fault(`streamed ${JSON.stringify(this.#text)} but committed ${JSON.stringify(committed)}`)
          }
          this.#text = ""
        }
        return
      default:
        return
    }
  }
}
