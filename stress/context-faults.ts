/**
 * Whether a derived context could be sent to every provider: an own reading of what services demand, beside the program's repair. A
 * context that needs a repair was stored damaged.
 */
import type { Message } from "../src/domain/message.ts"
import { toolCallsOf } from "../src/domain/message.ts"
import { repair, validityRules } from "../src/domain/validity.ts"

const next: Message = { role: "user", content: [{ type: "text", text: "and now?" }] }

const loneSurrogate = /\p{Surrogate}/u

const isEmpty = (message: Message): boolean =>
  message.role === "system"
    ? message.sections.length + message.addTools.length + message.removeTools.length === 0
    : message.content.length === 0

/** Every call is followed by its results in call order, and no result stands elsewhere. */
const pairing = (messages: ReadonlyArray<Message>): ReadonlyArray<string> => {
  const faults: Array<string> = []
  let due: Array<string> = []
  messages.forEach((message, at) => {
    if (message.role === "tool") {
      const expected = due.shift()
      if (message.callId !== expected)
        faults.push(`message ${at}: result of ${message.callId}, expected ${expected ?? "none"}`)
      return
    }
    if (due.length > 0) faults.push(`message ${at}: calls ${due.join(", ")} have no result before it`)
    due = message.role === "assistant" ? toolCallsOf(message).map(({ id }) => id) : []
  })
  return due.length > 0 ? [...faults, `calls ${due.join(", ")} have no result at the end`] : faults
}

/** One line per fault; empty for a context that is fit to send. */
export const contextFaults = (messages: ReadonlyArray<Message>): ReadonlyArray<string> => {
  const asked = [...messages, next]
  const strict = repair(asked, validityRules.strict).messages
  return [
    ...repair(asked, validityRules.lenient).repairs,
    ...(repair(strict, validityRules.strict).repairs.length > 0 ? ["the strict repair does not hold still"] : []),
    ...pairing(messages),
    ...pairing(strict).map((fault) => `strict: ${fault}`),
    ...strict.flatMap((message, at) => (isEmpty(message) ? [`message ${at}: empty`] : [])),
    ...(loneSurrogate.test(JSON.stringify(strict)) ? ["a lone surrogate"] : []),
    ...(strict.find(({ role }) => role !== "system")?.role === "assistant" ? ["an answer comes first"] : []),
  ]
}
