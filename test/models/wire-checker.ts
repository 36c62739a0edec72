/**
 * Slow and obvious checks of request bodies against what the services document, one per format. Each returns what is wrong.
 */
import type { WireKind } from "./wire-formats.ts"

type Item = Record<string, unknown>
type Check = (body: Item) => ReadonlyArray<string>

const list = (value: unknown): ReadonlyArray<Item> => (Array.isArray(value) ? (value as ReadonlyArray<Item>) : [])
const filled = (value: unknown): boolean => typeof value === "string" && value.trim() !== ""

/** Ids of calls must fit, be new, and be answered one by one right behind. */
class Calls {
  readonly faults: Array<string> = []
  readonly #seen = new Set<unknown>()
  #open: Array<unknown> = []
  readonly #longest: number

  constructor(longest: number) {
    this.#longest = longest
  }

  call(id: unknown, name: unknown): void {
    if (typeof id !== "string" || !/^[a-zA-Z0-9_-]+$/.test(id) || id.length > this.#longest)
      this.faults.push(`id ${id}`)
    if (this.#seen.has(id)) this.faults.push(`id ${id} twice`)
    if (typeof name !== "string" || !/^[a-zA-Z0-9_-]{1,64}$/.test(name)) this.faults.push(`name ${name}`)
    this.#seen.add(id)
    this.#open.push(id)
  }

  result(id: unknown): void {
    if (!this.#open.includes(id)) this.faults.push(`result of ${id} without a call before it`)
    this.#open = this.#open.filter((open) => open !== id)
  }

  /** Something that is neither a call nor a result. */
  other(): void {
    if (this.#open.length > 0) this.faults.push(`no result of ${this.#open.join()}`)
    this.#open = []
  }
}

const chat: Check = (body) => {
  const messages = list(body.messages)
  const calls = new Calls(40)
  for (const message of messages) {
    if (message.role === "tool") {
      calls.result(message.tool_call_id)
      if (!filled(message.content)) calls.faults.push("empty result")
      continue
    }
    calls.other()
    const made = list(message.tool_calls)
    const content = message.content
    const empty = Array.isArray(content)
      ? content.length === 0 || list(content).some((part) => part.type === "text" && !filled(part.text))
      : !filled(content)
    if (empty && made.length === 0) calls.faults.push(`empty ${message.role} message`)
    for (const call of made) {
      const fn = call.function as Item
      calls.call(call.id, fn.name)
      const args: unknown = JSON.parse(String(fn.arguments))
      if (typeof args !== "object" || args === null || Array.isArray(args)) calls.faults.push("arguments")
    }
  }
  calls.other()
  const spoken = messages.filter(({ role }) => role !== "system")
  if (spoken[0]?.role !== "user") calls.faults.push("first is no user message")
  if (spoken.at(-1)?.role === "assistant") calls.faults.push("last is an answer")
  spoken.forEach(({ role }, i) => {
    if (role !== "tool" && role === spoken[i - 1]?.role) calls.faults.push(`two ${role} messages in a row`)
  })
  if (messages.slice(1).some(({ role }) => role === "system")) calls.faults.push("system message in the middle")
  return calls.faults
}

const responses: Check = (body) => {
  const items = list(body.input)
  const calls = new Calls(64)
  for (const [i, item] of items.entries()) {
    const next = items[i + 1]
    if (item.type === "function_call") calls.call(item.call_id, item.name)
    else if (item.type === "function_call_output") {
      if (!filled(item.output) && list(item.output).length === 0) calls.faults.push("empty output")
      calls.result(item.call_id)
    } else if (item.type === "reasoning") {
      if (typeof item.encrypted_content !== "string") calls.faults.push("reasoning without its content")
      if (next === undefined || next.role === "user") calls.faults.push("reasoning without what follows it")
    } else if (item.type === "item_reference") calls.faults.push("reference to something that is not kept")
    else {
      if (item.role !== "assistant") calls.other()
      const { content } = item
      const parts = list(content)
      if (!filled(content) && !parts.every((part) => part.type === "input_image" || filled(part.text))) {
        calls.faults.push("empty message")
      }
    }
  }
  calls.other()
  if (body.store !== false) calls.faults.push("store")
  return calls.faults
}

const anthropic: Check = (body) => {
  const messages = list(body.messages)
  const calls = new Calls(64)
  messages.forEach((message, i) => {
    const content = list(message.content)
    if (content.length === 0) calls.faults.push("empty message")
    if (message.role === messages[i - 1]?.role) calls.faults.push("no alternation")
    if (message.role !== "user" && message.role !== "assistant") calls.faults.push(`role ${message.role}`)
    const results = content.filter(({ type }) => type === "tool_result")
    if (content.slice(0, results.length).some(({ type }) => type !== "tool_result")) {
      calls.faults.push("results are not first")
    }
    for (const result of results) calls.result(result.tool_use_id)
    calls.other()
    for (const block of content) {
      if (block.type === "text" && !filled(block.text)) calls.faults.push("empty text")
      if (block.type === "thinking" && typeof block.signature !== "string") calls.faults.push("unsigned thinking")
      if (block.type === "tool_use") calls.call(block.id, block.name)
    }
    if (content.at(-1)?.type === "thinking") calls.faults.push("ends with thinking")
  })
  calls.other()
  if (messages[0]?.role !== "user") calls.faults.push("first is no user message")
  if (messages.at(-1)?.role !== "user") calls.faults.push("last is no user message")
  const marks = JSON.stringify(body).split('"cache_control"').length - 1
  if (marks > 4) calls.faults.push(`${marks} cache breakpoints`)
  return calls.faults
}

const gemini: Check = (body) => {
  const contents = list(body.contents)
  const faults: Array<string> = []
  contents.forEach(({ role, parts }, i) => {
    const all = list(parts)
    if (all.length === 0) faults.push("no parts")
    for (const part of all) {
      if (part.text !== undefined && !filled(part.text)) faults.push("empty text")
      const named = (part.functionCall ?? part.functionResponse) as Item | undefined
      if (named !== undefined && !/^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/.test(String(named.name)))
        faults.push(`name ${named.name}`)
    }
    const called = all.flatMap((part) => (part.functionCall === undefined ? [] : [(part.functionCall as Item).name]))
    const next = list(contents[i + 1]?.parts)
    const answered = next.flatMap((p) => (p.functionResponse === undefined ? [] : [(p.functionResponse as Item).name]))
    if (JSON.stringify(called) !== JSON.stringify(called.length === 0 ? [] : answered))
      faults.push("calls and results differ")
    const responded = all.some((part) => part.functionResponse !== undefined)
    if (responded && contents[i - 1]?.role !== "model") faults.push("result without a call")
    if (role === "model" && contents[i - 1]?.role !== "user") faults.push("model turn without a user turn before it")
  })
  if (contents[0]?.role !== "user") faults.push("first is no user turn")
  if (contents.at(-1)?.role !== "user") faults.push("last is no user turn")
  return faults
}

const byKind: Readonly<Record<WireKind, Check>> = { chat, responses, anthropic, gemini }

/** What a service would refuse in this request body. */
export const wireFaults = (kind: WireKind, body: Item): ReadonlyArray<string> => {
  const surrogates = /\p{Cs}/u.test(JSON.stringify(body).replace(/\\u(d[89a-f][0-9a-f]{2})/gi, "\ud800"))
  return surrogates ? ["lone surrogate", ...byKind[kind](body)] : byKind[kind](body)
}
