/**
 * A transcript as it reads: for a terminal, and as Markdown. Pure.
 */
import type { ContextMark } from "../../domain/context-marks.ts"
import { type Entry, EntryKind } from "../../domain/entry.ts"
import { isJsonObject } from "../../domain/json.ts"
import type { AssistantPart, Message, UserPart } from "../../domain/message.ts"
import { quarantineKind } from "../../domain/quarantine.ts"
import { shortArguments } from "./format.ts"
import { oneLine, sanitize } from "./sanitize.ts"
import type { Paint } from "./style.ts"

/** Lines of a tool's output that a terminal shows. */
const shownLines = 8

const partText = (part: AssistantPart | UserPart): string => {
  switch (part.type) {
    case "text":
      return part.text
    case "image":
      return `[image ${part.mediaType}]`
    case "thinking":
    case "toolCall":
      return ""
  }
}

const contentText = (content: ReadonlyArray<AssistantPart | UserPart>): string =>
  content
    .map(partText)
    .filter((one) => one !== "")
    .join("\n")

const head = (text: string, lines: number): string => {
  const all = text.trimEnd().split("\n")
  return all.length <= lines ? all.join("\n") : `${all.slice(0, lines).join("\n")}\n… ${all.length - lines} more lines`
}

const indent = (text: string): string =>
  text
    .split("\n")
    .map((one) => (one === "" ? "" : `  ${one}`))
    .join("\n")

const messageForTerminal = (message: Message, paint: Paint): Array<string> => {
  switch (message.role) {
    case "system": {
      const sections = message.sections.map((section) => `${section.text === null ? "-" : ""}${section.name}`)
      const tools = message.addTools.length === 0 ? [] : [`${message.addTools.length} tools`]
      return [paint("dim", oneLine(`system: ${[...sections, ...tools].join(", ")}`))]
    }
    case "user":
      return [paint("strong", sanitize(contentText(message.content)).replace(/^/gm, "> "))]
    case "assistant": {
      const text = sanitize(contentText(message.content)).trim()
      const calls = message.content.flatMap((part) =>
        part.type === "toolCall"
          ? [paint("accent", `→ ${oneLine(part.name)} ${shortArguments(part.arguments, 100)}`.trimEnd())]
          : [],
      )
      const ended =
        message.stopReason === "error" || message.stopReason === "aborted"
          ? [
              paint(
                "warning",
                `[${message.stopReason}${message.error === undefined ? "" : `: ${oneLine(message.error)}`}]`,
              ),
            ]
          : []
      return [...(text === "" ? [] : [text]), ...calls, ...ended]
    }
    case "tool":
      return [
        paint(message.isError ? "error" : "dim", indent(head(sanitize(contentText(message.content)), shownLines))),
      ]
  }
}

/** What a quarantine found, for example `#7: empty answer dropped`. */
const quarantined = ({ data }: Entry): string => {
  const found = isJsonObject(data) && Array.isArray(data.found) ? data.found : []
  const reasons = found.flatMap((one) => (isJsonObject(one) ? [`#${one.entry}: ${one.what}`] : []))
  return `kept from being sent, because a provider would refuse it: ${reasons.join("; ")}`
}

const note = (entry: Entry): string => {
  switch (entry.kind) {
    case EntryKind.compaction:
      return "the context was compacted here"
    case EntryKind.reset:
      return "a new context began here"
    case quarantineKind:
      return quarantined(entry)
    default:
      return entry.edits.length > 0
        ? `${entry.kind}: edits ${entry.edits.map((edit) => `#${edit.entry}`).join(", ")}`
        : entry.kind
  }
}

/** The subagents that a call started, each on a line: its role, its conversation, and how it ended as far as that is there. */
const subagentLines = (message: Message, ends: ReadonlyMap<number, string>, paint: Paint): Array<string> => {
  const details = message.role === "tool" ? message.details : undefined
  const started = isJsonObject(details) && Array.isArray(details.subagents) ? details.subagents : []
  return started.flatMap((one) => {
    if (!isJsonObject(one) || typeof one.conversation !== "number") return []
    const end = ends.get(one.conversation) ?? "no end yet"
    return [paint("dim", `  ↳ ${oneLine(String(one.role))}: conversation ${one.conversation}, ${end}`)]
  })
}

/** How subagents ended, by their conversation. */
const subagentEnds = (entries: ReadonlyArray<Entry>): ReadonlyMap<number, string> =>
  new Map(
    entries.flatMap(({ data, kind }) =>
      kind === EntryKind.subagent && isJsonObject(data) && typeof data.conversation === "number"
        ? [[data.conversation, String(data.status).replace("_", " ")] as const]
        : [],
    ),
  )

/** What a compaction put in place of what came before. */
const standIn = (entry: Entry): string =>
  entry.model.flatMap((message) => (message.role === "user" ? [contentText(message.content)] : [])).join("\n")

/** The transcript for a person at a terminal; long tool output is cut. `above` gives a line above each entry. */
export const transcriptText = (
  entries: ReadonlyArray<Entry>,
  paint: Paint,
  above: (entry: Entry) => string | null = () => null,
): string => {
  const ends = subagentEnds(entries)
  const blocks = entries.map((entry) => {
    const said =
      entry.kind === EntryKind.compaction
        ? [paint("dim", `[${note(entry)}]`), paint("dim", sanitize(standIn(entry)))]
        : entry.model.flatMap((message) => [
            ...messageForTerminal(message, paint),
            ...subagentLines(message, ends, paint),
          ])
    const lines = said.filter((one) => one.trim() !== "")
    const body = lines.length > 0 ? lines.join("\n") : paint("dim", `[${oneLine(note(entry))}]`)
    const line = above(entry)
    return line === null ? body : `${paint("dim", line)}\n${body}`
  })
  return blocks.join("\n\n")
}

/** An entry's number, where it comes from where not from `conversation`, and what became of it on its way to the model. */
export const entryLine = (entry: Entry, conversation: number, mark: ContextMark | undefined): string => {
  const from = entry.conversation === conversation ? [] : [`from conversation ${entry.conversation}`]
  return [`#${entry.id}`, ...from, ...(mark === undefined ? [] : [markWords(mark)])].join(" · ")
}

const markWords = ({ by, type }: ContextMark): string => {
  switch (type) {
    case "before":
      return `before the context that #${by} begins`
    case "omitted":
      return `omitted by #${by}`
    case "replaced":
      return `replaced by #${by}`
  }
}

/** A code fence that the text itself does not close. */
const fenced = (text: string, language = ""): string => {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map((match) => match[0].length))
  const fence = "`".repeat(longest + 1)
  return `${fence}${language}\n${text.trimEnd()}\n${fence}`
}

const messageAsMarkdown = (message: Message): Array<string> => {
  switch (message.role) {
    case "system":
      return []
    case "user":
      return [`## User\n\n${contentText(message.content)}`]
    case "assistant": {
      const text = contentText(message.content).trim()
      const calls = message.content.flatMap((part) =>
        part.type === "toolCall"
          ? [`**Call** \`${part.name}\`\n\n${fenced(JSON.stringify(part.arguments, null, 2), "json")}`]
          : [],
      )
      const ended =
        message.stopReason === "stop" || message.stopReason === "tool_calls" ? [] : [`*Ended: ${message.stopReason}*`]
      const parts = [...(text === "" ? [] : [text]), ...calls, ...ended]
      return parts.length === 0 ? [] : [`## Assistant (${message.model})\n\n${parts.join("\n\n")}`]
    }
    case "tool":
      return [
        `**${message.isError ? "Failed" : "Result"}** \`${message.toolName}\`\n\n${fenced(sanitize(contentText(message.content)))}`,
      ]
  }
}

/** The whole transcript as Markdown, nothing cut but the prompt's system messages left out. */
export const transcriptMarkdown = (title: string, entries: ReadonlyArray<Entry>): string => {
  const blocks = entries.flatMap((entry) => {
    if (entry.model.length === 0) return [`*${note(entry)}*`]
    return entry.kind === EntryKind.compaction
      ? [`## Compaction\n\n${standIn(entry)}`]
      : entry.model.flatMap(messageAsMarkdown)
  })
  return [`# ${oneLine(title)}`, ...blocks].join("\n\n")
}
