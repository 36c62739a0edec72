/**
 * A provider package's stream as our parts. One {@link ResponseFold} folds one response; it holds the content so far and is told
 * every stream part in order. Pure but for its own state.
 */
import type { LanguageModelV3FinishReason, LanguageModelV3StreamPart, LanguageModelV3Usage } from "@ai-sdk/provider"
import type { JsonObject } from "../../domain/json.ts"
import type { AssistantPart, StopReason } from "../../domain/message.ts"
import { parseArguments, unreadableArguments } from "../../domain/partial-json.ts"
import { noUsage, type Usage } from "../../domain/usage.ts"
import type { ModelPart } from "../model.ts"

interface Block {
  readonly type: "text" | "thinking"
  text: string
  /** The first half of a surrogate pair whose second half is due in the next delta. */
  half: string
  meta: JsonObject | undefined
}

interface Call {
  readonly type: "toolCall"
  readonly id: string
  name: string
  input: string
  done: boolean
  meta: JsonObject | undefined
}

/** What one stream part means: parts to pass on, a failure, or the end. */
export type Folded =
  | { readonly type: "parts"; readonly parts: ReadonlyArray<ModelPart> }
  | { readonly type: "error"; readonly error: unknown }
  | { readonly type: "truncated" }

const count = (value: number | undefined): number =>
  value === undefined || !Number.isFinite(value) || value < 0 ? 0 : Math.round(value)

/** Our counts: `input` includes what was read from and written to the cache, `output` includes reasoning. */
const usageOf = (usage: LanguageModelV3Usage | undefined): Usage => {
  if (usage === undefined) return noUsage
  const { inputTokens, outputTokens } = usage
  const parts = count(inputTokens?.noCache) + count(inputTokens?.cacheRead) + count(inputTokens?.cacheWrite)
  return {
    input: Math.max(count(inputTokens?.total), parts),
    output: Math.max(count(outputTokens?.total), count(outputTokens?.text) + count(outputTokens?.reasoning)),
    cacheRead: count(inputTokens?.cacheRead),
    cacheWrite: count(inputTokens?.cacheWrite),
    reasoning: count(outputTokens?.reasoning),
  }
}

/** Metadata of a block arrives in pieces; a later value of the same field wins. */
const merge = (meta: JsonObject | undefined, more: unknown): JsonObject | undefined => {
  if (typeof more !== "object" || more === null) return meta
  const out: Record<string, JsonObject> = { ...(meta as Record<string, JsonObject> | undefined) }
  for (const [provider, fields] of Object.entries(more as Record<string, JsonObject>)) {
    out[provider] = { ...out[provider], ...fields }
  }
  return out
}

const stopReasonOf = (reason: LanguageModelV3FinishReason, calls: boolean): StopReason | null => {
  switch (reason.unified) {
    case "length":
      return "length"
    case "content-filter":
      return "content_filter"
    case "error":
      return null
    case "other":
      // Without a raw reason the stream ended before the service said why.
      if (reason.raw === undefined) return null
      return calls ? "tool_calls" : "stop"
    default:
      return calls ? "tool_calls" : "stop"
  }
}

const none: Folded = { type: "parts", parts: [] }
const some = (part: ModelPart): Folded => ({ type: "parts", parts: [part] })

/** Folds the stream of one response. `taken` are call ids that the conversation already has. */
export class ResponseFold {
  readonly #blocks: Array<Block | Call> = []
  readonly #open = new Map<string, Block>()
  readonly #calls = new Map<string, Call>()
  readonly #taken: Set<string>

  constructor(taken: ReadonlySet<string>) {
    this.#taken = new Set(taken)
  }

  /** Takes the next stream part. */
  take(part: LanguageModelV3StreamPart): Folded {
    switch (part.type) {
      case "text-start":
        this.#start("text", part.id, part.providerMetadata)
        return none
      case "reasoning-start":
        this.#start("thinking", part.id, part.providerMetadata)
        return none
      case "text-delta":
        return this.#delta("text", part.id, part.delta, part.providerMetadata)
      case "reasoning-delta":
        return this.#delta("thinking", part.id, part.delta, part.providerMetadata)
      case "text-end":
        return this.#delta("text", part.id, "", part.providerMetadata)
      case "reasoning-end":
        return this.#delta("thinking", part.id, "", part.providerMetadata)
      case "tool-input-start": {
        if (part.providerExecuted === true) return none
        const call = this.#call(part.id, part.toolName)
        call.meta = merge(call.meta, part.providerMetadata)
        return some({ type: "toolCallDelta", id: call.id, name: call.name, delta: "" })
      }
      case "tool-input-delta": {
        const call = this.#calls.get(part.id)
        if (call === undefined || part.delta === "") return none
        call.input += part.delta
        return some({ type: "toolCallDelta", id: call.id, name: call.name, delta: part.delta })
      }
      case "tool-call": {
        if (part.providerExecuted === true) return none
        const call = this.#call(part.toolCallId, part.toolName)
        const streamed = call.input !== ""
        call.input = part.input
        call.done = true
        call.meta = merge(call.meta, part.providerMetadata)
        return streamed || part.input === ""
          ? none
          : some({ type: "toolCallDelta", id: call.id, name: call.name, delta: part.input })
      }
      case "error":
        return { type: "error", error: part.error }
      case "finish":
        return this.#finish(part.finishReason, part.usage)
      default:
        return none
    }
  }

  #start(type: Block["type"], id: string, meta: unknown): Block {
    const block: Block = { type, text: "", half: "", meta: merge(undefined, meta) }
    this.#blocks.push(block)
    this.#open.set(`${type}/${id}`, block)
    return block
  }

  #delta(type: Block["type"], id: string, delta: string, meta: unknown): Folded {
    const block = this.#open.get(`${type}/${id}`) ?? this.#start(type, id, undefined)
    block.meta = merge(block.meta, meta)
    if (delta === "") return none
    const joined = block.half + delta
    block.half = /[\ud800-\udbff]$/.test(joined) ? joined.slice(-1) : ""
    const whole = joined.slice(0, joined.length - block.half.length).replace(/\p{Cs}/gu, "\ufffd")
    if (whole === "") return none
    block.text += whole
    return some({ type, delta: whole })
  }

  /** The call of a provider's id, with an id of ours that no other call of the conversation has. */
  #call(id: string, name: string): Call {
    const known = this.#calls.get(id)
    if (known !== undefined) return known
    let unique = id === "" ? "call" : id
    for (let n = 2; this.#taken.has(unique); n++) unique = `${id === "" ? "call" : id}_${n}`
    this.#taken.add(unique)
    const call: Call = { type: "toolCall", id: unique, name, input: "", done: false, meta: undefined }
    this.#calls.set(id, call)
    this.#blocks.push(call)
    return call
  }

  #finish(reason: LanguageModelV3FinishReason, usage: LanguageModelV3Usage | undefined): Folded {
    const content = this.#content(reason.unified === "length")
    const stopReason = stopReasonOf(
      reason,
      content.some(({ type }) => type === "toolCall"),
    )
    if (stopReason === null) {
      return reason.raw === undefined
        ? { type: "truncated" }
        : { type: "error", error: `the service ended the response with ${reason.raw}` }
    }
    return some({ type: "finish", content, stopReason, usage: usageOf(usage) })
  }

  /** The finished parts in order. A call that was cut off at the length limit is left out, since half its arguments are missing. */
  #content(cutOff: boolean): ReadonlyArray<AssistantPart> {
    const content: Array<AssistantPart> = []
    for (const block of this.#blocks) {
      const meta = block.meta === undefined ? {} : { meta: block.meta }
      if (block.type !== "toolCall") {
        if (block.text !== "" || (block.type === "thinking" && block.meta !== undefined)) {
          content.push({ type: block.type, text: block.text, ...meta })
        }
        continue
      }
      const args = parseArguments(block.input)
      if (!block.done || (cutOff && unreadableArguments(args) !== null)) continue
      content.push({ type: "toolCall", id: block.id, name: block.name, arguments: args, ...meta })
    }
    return content
  }
}
