/**
 * The check of a derived history before every request: whatever was stored, what is sent is valid for the service, so a damaged
 * transcript never bricks a conversation. Never throws; a valid history comes back as it is (the same reference).
 *
 * A history is a prelude and groups: an assistant message and what follows it up to the next one. Within a group
 *  1. the results of the message's calls come first, in call order; a call without one gets an error result;
 *  2. results of no call of the message are dropped;
 *  3. what else there is keeps its order.
 * A group that another one follows is settled and never looked at again, so a growing history costs only its new part.
 *
 * What is changed is either damage that was repaired, or a sound history adjusted to what the service demands ({@link ValidityRules}): two
 * prompts in a row after a turn that was cancelled are as they should be, and only joined for services that want turns to alternate.
 */
import { type CleanAssistant, cleanAssistant, cleanMessage } from "./clean-message.ts"
import { missingResult } from "./context.ts"
import { isRecord } from "./json.ts"
import type { Message, UserMessage } from "./message.ts"
import { type Note, sameItems } from "./well-formed.ts"

/** What a service demands beyond well-formed messages. */
export interface ValidityRules {
  /** User and assistant messages take turns: neighbours are joined. System messages count as user messages where they are sent as such. */
  readonly alternate: boolean
  /** The first message that is no system message is a user message. */
  readonly userFirst: boolean
  /** The last message is no assistant message. */
  readonly userLast: boolean
  readonly toolName: RegExp
}

const toolName = /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/

/** Rules of services: `strict` fits every one. */
export const validityRules = {
  strict: { alternate: true, userFirst: true, userLast: true, toolName },
  lenient: { alternate: false, userFirst: false, userLast: false, toolName },
} as const satisfies Record<string, ValidityRules>

/** A checked history. `messages` is the input itself when nothing was repaired or adjusted. */
export interface Repaired {
  readonly messages: ReadonlyArray<Message>
  /** Damage: one line per kind of repair and message, for example `message 4: lone surrogate replaced`. */
  readonly repairs: ReadonlyArray<string>
  /** No damage: one line per message that was joined, or added, because the service demands it. */
  readonly adjustments: ReadonlyArray<string>
}

const user = (text: string): UserMessage => ({ role: "user", content: [{ type: "text", text }] })

/** An open group as it is sent. */
interface Arranged {
  readonly messages: ReadonlyArray<Message>
  readonly repairs: ReadonlyArray<string>
  readonly adjustments: ReadonlyArray<string>
}

/** `settled` itself where nothing is added: a long history is not copied for every request. */
const withLines = (settled: ReadonlyArray<string>, added: ReadonlyArray<string>): ReadonlyArray<string> =>
  added.length === 0 ? settled : [...settled, ...added]

/**
 * The check of a growing history: {@link HistoryCheck.append} takes what is new and costs only that much. Feeding a history in pieces
 * gives the same messages as checking it at once.
 */
export class HistoryCheck {
  readonly #rules: ValidityRules
  /** The settled messages, and behind them the open group as it was last arranged. */
  readonly #out: Array<Message> = []
  #settled = 0
  readonly #repairs: Array<string> = []
  readonly #adjustments: Array<string> = []
  readonly #ids = new Set<string>()
  #open: CleanAssistant | null = null
  #rest: Array<{ readonly message: Message; readonly index: number }> = []
  #taken = 0
  #hasUser = false

  constructor(rules: ValidityRules) {
    this.#rules = rules
  }

  /** How many messages were taken so far. */
  get length(): number {
    return this.#taken
  }

  /**
   * Takes the messages that follow those taken before. The returned list is a view: it holds until the next call.
   * @param messages Typed as messages, but anything that storage may hold is survived.
   */
  append(messages: ReadonlyArray<Message>): Repaired {
    for (const message of messages) this.#take(message)
    const open = this.#arrange()
    this.#out.length = this.#settled
    for (const message of open.messages) this.#out.push(message)
    const last = this.#rules.userLast && !this.#follows("user") && !this.#follows("tool")
    if (last) this.#out.push(user(this.#out.some(({ role }) => role !== "system") ? "(continue)" : "(start)"))
    const adjusted = last ? [...open.adjustments, "end: user message added"] : open.adjustments
    return {
      messages: this.#out,
      repairs: withLines(this.#repairs, open.repairs),
      adjustments: withLines(this.#adjustments, adjusted),
    }
  }

  #take(message: unknown): void {
    const index = this.#taken++
    const note: Note = (what) => void this.#repairs.push(`message ${index}: ${what}`)
    if (!isRecord(message) || message.role !== "assistant") {
      const cleaned = cleanMessage(message, this.#rules.toolName, note)
      if (cleaned !== null) this.#rest.push({ message: cleaned, index })
      return
    }
    const assistant = cleanAssistant(message, this.#rules.toolName, this.#ids, note)
    if (assistant === null) return
    this.#settle()
    if (this.#rules.userFirst && !this.#hasUser) {
      this.#out.push(user("(What was said before is left out.)"))
      this.#adjustments.push(`message ${index}: user message put before the first answer`)
      this.#hasUser = true
    } else if (this.#rules.alternate && this.#follows("assistant")) {
      this.#out.push(user("(continue)"))
      this.#adjustments.push(`message ${index}: user message put between two answers`)
    }
    this.#settled = this.#out.length
    this.#open = assistant
  }

  /** Closes the open group: what it looks like now is final. */
  #settle(): void {
    const open = this.#arrange()
    this.#out.length = this.#settled
    for (const message of open.messages) this.#out.push(message)
    this.#repairs.push(...open.repairs)
    this.#adjustments.push(...open.adjustments)
    this.#hasUser ||= open.messages.some(({ role }) => role === "user")
    this.#settled = this.#out.length
    this.#open = null
    this.#rest = []
  }

  /** Puts the open group in order: the answer, its results in call order, the rest. */
  #arrange(): Arranged {
    const repairs: Array<string> = []
    const results = this.#rest.filter(({ message }) => message.role === "tool")
    const answered: Array<Message> = []
    for (const { stored, call } of this.#open?.calls ?? []) {
      const at = results.findIndex(({ message }) => message.role === "tool" && message.callId === stored)
      const [found] = at === -1 ? [] : results.splice(at, 1)
      if (found?.message.role === "tool") {
        const same = found.message.callId === call.id && found.message.toolName === call.name
        answered.push(same ? found.message : { ...found.message, callId: call.id, toolName: call.name })
        if (!same) repairs.push(`message ${found.index}: result made to fit its call`)
      } else {
        answered.push(missingResult(call.id, call.name))
        repairs.push(`call ${call.id}: missing result added`)
      }
    }
    for (const { index } of results) repairs.push(`message ${index}: result without a call dropped`)
    const others = this.#rest.filter(({ message }) => message.role !== "tool")
    if (repairs.length === 0) {
      const ordered = [...answered, ...others.map(({ message }) => message)]
      const stored = this.#rest.map(({ message }) => message)
      if (!sameItems(ordered, stored)) repairs.push("results moved behind their calls")
    }
    const messages: Array<Message> = this.#open === null ? answered : [this.#open.message, ...answered]
    const adjustments: Array<string> = []
    for (const { message, index } of others) {
      const previous = messages.at(-1)
      if (this.#rules.alternate && message.role === "user" && previous?.role === "user") {
        messages[messages.length - 1] = { role: "user", content: [...previous.content, ...message.content] }
        adjustments.push(`message ${index}: joined with the user message before it`)
      } else messages.push(message)
    }
    return { messages, repairs, adjustments }
  }

  /** Whether the newest message that is no system message has this role. */
  #follows(role: Message["role"]): boolean {
    for (let i = this.#out.length - 1; i >= 0; i--) {
      const message = this.#out[i]
      if (message !== undefined && message.role !== "system") return message.role === role
    }
    return false
  }
}

/** Checks a whole history. */
export const repair = (messages: ReadonlyArray<Message>, rules: ValidityRules): Repaired => {
  const checked = new HistoryCheck(rules).append(messages)
  const { repairs, adjustments } = checked
  return repairs.length === 0 && adjustments.length === 0 ? { messages, repairs, adjustments } : checked
}
