/**
 * A derived context as the prompt of a provider package. Pure and stable: the same messages give the same prompt, and a longer
 * context extends the prompt of a shorter one, so that a provider's prompt cache stays warm.
 */
import type {
  LanguageModelV3FilePart,
  LanguageModelV3FunctionTool,
  LanguageModelV3Message,
  LanguageModelV3ReasoningPart,
  LanguageModelV3TextPart,
  LanguageModelV3ToolCallPart,
  LanguageModelV3ToolResultPart,
  SharedV3ProviderOptions,
} from "@ai-sdk/provider"
import type { JsonObject } from "../../domain/json.ts"
import type {
  AssistantMessage,
  ImagePart,
  Message,
  SystemMessage,
  ThinkingPart,
  ToolResultMessage,
  ToolSpec,
  UserPart,
} from "../../domain/message.ts"
import { WireIds } from "./wire-ids.ts"

/** What a service can take. */
export interface PromptTraits {
  /** `provider/model` of the request: only its own thinking and metadata go back to it. */
  readonly model: string
  readonly images: boolean
  /** Whether a tool result may hold images; otherwise they follow the batch of results as a user message. */
  readonly imagesInResults: boolean
  /** Whether a failed result has a flag of its own; otherwise its text says so. */
  readonly errorFlag: boolean
  /** How a later change of the system prompt is sent: as a system message, or as a note among the user's messages. */
  readonly systemChanges: "system" | "note"
  /** Whether a thinking part of this model can be sent back. */
  readonly replays: (part: ThinkingPart) => boolean
  /** Whether metadata goes back with the parts that the model itself wrote. */
  readonly metadata: boolean
  /** The longest call id, in characters. */
  readonly callIdLength: number
  /** Sends `strict: false` with every tool, for services that are strict by default. */
  readonly lenientTools: boolean
}

export interface Prompt {
  readonly messages: ReadonlyArray<LanguageModelV3Message>
  readonly tools: ReadonlyArray<LanguageModelV3FunctionTool>
}

const section = (name: string, text: string) => `<${name}>\n${text}\n</${name}>`

/** The whole prompt: sections in the order in which they first appeared. */
const leading = (messages: ReadonlyArray<SystemMessage>): string => {
  const sections = new Map<string, string>()
  for (const message of messages) {
    for (const { name, text } of message.sections) {
      if (text === null) sections.delete(name)
      else sections.set(name, text)
    }
  }
  return [...sections].map(([name, text]) => section(name, text)).join("\n\n")
}

/** A later change: what replaces a section, and what no longer holds. */
const change = (message: SystemMessage): string =>
  message.sections
    .map(({ name, text }) => (text === null ? `The section <${name}> no longer applies.` : section(name, text)))
    .join("\n\n")

/** The tools after every addition and removal, in the order in which they were added. */
const currentTools = (messages: ReadonlyArray<Message>): ReadonlyArray<ToolSpec> => {
  const tools = new Map<string, ToolSpec>()
  for (const message of messages) {
    if (message.role !== "system") continue
    for (const name of message.removeTools) tools.delete(name)
    for (const tool of message.addTools) tools.set(tool.name, tool)
  }
  return [...tools.values()]
}

const omitted = "[image left out: this model cannot see images]"

const userPart = (part: UserPart, traits: PromptTraits) =>
  part.type === "text"
    ? ({ type: "text", text: part.text } as const)
    : traits.images
      ? ({ type: "file", mediaType: part.mediaType, data: part.data } as const)
      : ({ type: "text", text: omitted } as const)

const options = (meta: JsonObject | undefined, own: boolean): { providerOptions?: SharedV3ProviderOptions } =>
  // Metadata has the shape that the same package gave it: an object per provider.
  own && meta !== undefined ? { providerOptions: meta as SharedV3ProviderOptions } : {}

type AssistantContent = LanguageModelV3TextPart | LanguageModelV3ReasoningPart | LanguageModelV3ToolCallPart

const assistant = (message: AssistantMessage, traits: PromptTraits, ids: WireIds): Array<AssistantContent> => {
  const own = traits.metadata && message.model === traits.model
  const out: Array<AssistantContent> = []
  for (const part of message.content) {
    if (part.type === "text") out.push({ type: "text", text: part.text, ...options(part.meta, own) })
    else if (part.type === "toolCall") {
      const call = { toolCallId: ids.wire(part.id), toolName: part.name, input: part.arguments }
      out.push({ type: "tool-call", ...call, ...options(part.meta, own) })
    } else if (own && traits.replays(part)) {
      out.push({ type: "reasoning", text: part.text, ...options(part.meta, own) })
    }
  }
  return out
}

const toolResult = (message: ToolResultMessage, traits: PromptTraits, ids: WireIds): LanguageModelV3ToolResultPart => {
  const images = message.content.filter((part): part is ImagePart => part.type === "image")
  const texts = message.content.flatMap((part) => (part.type === "text" ? [part.text] : []))
  const inline = images.length > 0 && traits.images && traits.imagesInResults && !message.isError
  if (images.length > 0 && !inline) {
    texts.push(traits.images ? `[${images.length} image(s), shown below]` : omitted)
  }
  let text = texts.join("\n")
  if (text.trim() === "") text = inline ? "" : "(no output)"
  if (message.isError && !traits.errorFlag && !/^error\b/i.test(text)) text = `Error: ${text}`
  const part = { type: "tool-result", toolCallId: ids.wire(message.callId), toolName: message.toolName } as const
  if (!inline) return { ...part, output: { type: message.isError ? "error-text" : "text", value: text } }
  const shown = images.map(({ mediaType, data }) => ({ type: "image-data", mediaType, data }) as const)
  return {
    ...part,
    output: { type: "content", value: text === "" ? shown : [{ type: "text", text }, ...shown] },
  }
}

/** Images of results that could not stay in them, as parts of a user message. */
const hoisted = (message: ToolResultMessage, traits: PromptTraits) => {
  if (!traits.images || (traits.imagesInResults && !message.isError)) return []
  const images = message.content.filter((part): part is ImagePart => part.type === "image")
  if (images.length === 0) return []
  return [
    { type: "text", text: `Image(s) from the result of ${message.toolName}:` } as const,
    ...images.map(({ mediaType, data }) => ({ type: "file", mediaType, data }) as const),
  ]
}

/** Builds the prompt of a context that was checked to be valid. */
export const toPrompt = (messages: ReadonlyArray<Message>, traits: PromptTraits): Prompt => {
  const ids = new WireIds(traits.callIdLength)
  const out: Array<LanguageModelV3Message> = []
  let pending: Array<ReturnType<typeof hoisted>[number]> = []
  const user = (content: ReadonlyArray<LanguageModelV3TextPart | LanguageModelV3FilePart>) => {
    const last = out.at(-1)
    // Where changes are notes they count as the user's, and services that want turns get turns.
    if (traits.systemChanges === "note" && last?.role === "user") last.content.push(...content)
    else out.push({ role: "user", content: [...content] })
  }
  const flush = () => {
    if (pending.length > 0) user(pending)
    pending = []
  }

  const firstOther = messages.findIndex(({ role }) => role !== "system")
  const head = messages.slice(0, firstOther === -1 ? messages.length : firstOther)
  const system = leading(head.filter((message): message is SystemMessage => message.role === "system"))
  if (system !== "") out.push({ role: "system", content: system })

  for (const message of messages.slice(head.length)) {
    if (message.role === "tool") {
      const result = toolResult(message, traits, ids)
      const last = out.at(-1)
      if (last?.role === "tool") last.content.push(result)
      else out.push({ role: "tool", content: [result] })
      pending.push(...hoisted(message, traits))
      continue
    }
    flush()
    if (message.role === "user") {
      user(message.content.map((part) => userPart(part, traits)))
    } else if (message.role === "assistant") {
      out.push({ role: "assistant", content: assistant(message, traits, ids) })
    } else {
      const text = change(message)
      if (text === "") continue
      if (traits.systemChanges === "system") out.push({ role: "system", content: text })
      else user([{ type: "text", text: `<system-update>\n${text}\n</system-update>` }])
    }
  }
  flush()

  const tools = currentTools(messages).map(
    (tool): LanguageModelV3FunctionTool => ({
      type: "function",
      name: tool.name,
      description: tool.description,
      // JSON Schema as an object of JSON values; the package's type spells out its keywords.
      inputSchema: tool.parameters as LanguageModelV3FunctionTool["inputSchema"],
      ...(traits.lenientTools ? { strict: false } : {}),
    }),
  )
  return { messages: out, tools }
}
