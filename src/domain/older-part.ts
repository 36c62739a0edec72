/**
 * The older part of a context as a text that can be read in one go: for the model that summarises it, and for the digest that needs no
 * model. Pure and deterministic.
 */
import { type ContextEntry, editsOf, messagesOf, pairResults } from "./context.ts"
import { EntryKind } from "./entry.ts"
import { isJsonObject, type JsonObject } from "./json.ts"
import type { AssistantPart, Message, UserPart } from "./message.ts"
import { toolCallsOf } from "./message.ts"
import { wellFormed } from "./well-formed.ts"

/** UTF-16 units of one message, one call's arguments and one result that are read. */
const limits = { message: 8_000, arguments: 1_000, result: 2_000 } as const

/** What stands behind a cut: what an earlier compaction said of what came before, and the messages since. */
export interface OlderPart {
  readonly summary: string | null
  readonly messages: ReadonlyArray<Message>
}

/** The data of a `pi.compaction` entry, as far as this engine wrote it. */
const compactionData = (entry: ContextEntry | undefined): JsonObject | null =>
  entry?.kind === EntryKind.compaction && entry.head !== null && isJsonObject(entry.data) ? entry.data : null

/** The entries of a context in front of position `cut`, edits applied, calls with their results. */
export const olderPart = (selected: ReadonlyArray<ContextEntry>, cut: number): OlderPart => {
  const data = compactionData(selected[0])
  const summary = typeof data?.summary === "string" ? data.summary : null
  const entries = selected.slice(summary === null ? 0 : 1, cut)
  return { summary, messages: pairResults(messagesOf(entries, editsOf(selected))) }
}

/** A cut in the middle of a character needs no note. */
const unnoted = (): void => undefined

/** The head and the tail of a text that is longer than `limit`, with what is missing said in between. */
const shorten = (value: string, limit: number): string => {
  if (value.length <= limit) return value
  const half = Math.floor(limit / 2)
  const left = value.length - 2 * half
  return wellFormed(`${value.slice(0, half)}\n[… ${left} characters left out …]\n${value.slice(-half)}`, unnoted)
}

const wordsOf = (content: ReadonlyArray<AssistantPart | UserPart>): string =>
  content
    .map((part) => (part.type === "text" ? part.text : part.type === "image" ? "[image]" : ""))
    .filter((words) => words !== "")
    .join("\n")

/** One message as a block of text; empty for what says nothing about the work. */
const blockOf = (message: Message): string => {
  switch (message.role) {
    case "system":
      return ""
    case "user":
      return `[User]\n${shorten(wordsOf(message.content), limits.message)}`
    case "tool":
      return `[Result of ${message.toolName}${message.isError ? ", an error" : ""}]\n${shorten(wordsOf(message.content), limits.result)}`
    case "assistant": {
      const said = wordsOf(message.content)
      const calls = toolCallsOf(message).map(
        (call) => `[Call of ${call.name}] ${shorten(JSON.stringify(call.arguments), limits.arguments)}`,
      )
      return ["[Assistant]", ...(said === "" ? [] : [shorten(said, limits.message)]), ...calls].join("\n")
    }
  }
}

/** Messages as text of at most about `budget` UTF-16 units: where they do not fit, the oldest are left out, and that is said. */
export const readable = (messages: ReadonlyArray<Message>, budget: number): string => {
  const blocks = messages.map(blockOf).filter((block) => block !== "")
  let from = blocks.length
  let length = 0
  while (from > 0 && length + (blocks[from - 1]?.length ?? 0) <= budget) {
    from--
    length += (blocks[from]?.length ?? 0) + 2
  }
  // Something is always read, be it the end of the newest block.
  const kept = from === blocks.length && from > 0 ? [shorten(blocks[from - 1] ?? "", budget)] : blocks.slice(from)
  const missing = blocks.length - kept.length
  return [...(missing === 0 ? [] : [`[${missing} earlier messages left out]`]), ...kept].join("\n\n")
}

/** Names of arguments that hold the path of a file. */
const pathNames = new Set(["path", "file", "file_path", "filePath", "filename"])

/** How many inputs and files a digest names, and how many UTF-16 units of each input and of an earlier summary it keeps. */
const digestLimits = { inputs: 30, files: 100, input: 300, summary: 6_000 } as const

const newest = <A>(items: ReadonlyArray<A>, count: number, line: (item: A) => string): ReadonlyArray<string> => [
  ...(items.length > count ? [`(${items.length - count} earlier ones left out)`] : []),
  ...items.slice(-count).map(line),
]

/** What can be said of the older part without a model: its inputs, the files that calls named, the tools that were used. */
export const digestOf = ({ messages, summary }: OlderPart): string => {
  const inputs: Array<string> = []
  const files = new Set<string>()
  const tools = new Map<string, number>()
  for (const message of messages) {
    if (message.role === "user") inputs.push(wordsOf(message.content).replace(/\s+/g, " ").trim())
    if (message.role !== "assistant") continue
    for (const call of toolCallsOf(message)) {
      tools.set(call.name, (tools.get(call.name) ?? 0) + 1)
      for (const [name, value] of Object.entries(call.arguments)) {
        if (pathNames.has(name) && typeof value === "string" && value !== "") files.add(value)
      }
    }
  }
  const sections: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
    ["Said before", summary === null ? [] : [shorten(summary, digestLimits.summary)]],
    ["Inputs", newest(inputs, digestLimits.inputs, (input) => `- ${shorten(input, digestLimits.input)}`)],
    ["Files", newest([...files], digestLimits.files, (file) => `- ${file}`)],
    ["Tools used", [...tools].map(([name, count]) => `- ${name}: ${count}`)],
  ]
  return sections
    .filter(([, lines]) => lines.length > 0)
    .map(([title, lines]) => `## ${title}\n${lines.join("\n")}`)
    .join("\n\n")
}
