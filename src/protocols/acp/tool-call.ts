/**
 * What an editor shows of a tool call: its kind, its title, the places that it touches, and its content. Pure.
 */
import { isAbsolute, join, relative } from "node:path"
import type { ToolCallContent, ToolCallLocation, ToolKind } from "@agentclientprotocol/sdk"
import { isJsonObject, type Json, type JsonObject } from "../../domain/json.ts"
import type { UserPart } from "../../domain/message.ts"

/** Characters of a title. */
const titleChars = 200
/** Characters of a running command's output that are shown: its end. */
const outputChars = 16 * 1024

const kinds: Readonly<Record<string, ToolKind>> = {
  read: "read",
  ls: "read",
  artifact_get: "read",
  artifact_list: "read",
  skill: "read",
  edit: "edit",
  write: "edit",
  artifact_put: "edit",
  bash: "execute",
  grep: "search",
  find: "search",
  tool_search: "search",
  web_search: "search",
  web_fetch: "fetch",
  todo: "think",
}

/** Tools that are not known by name, those of MCP servers among them, are `other`. */
export const kindOf = (name: string): ToolKind => (Object.hasOwn(kinds, name) ? (kinds[name] ?? "other") : "other")

const textIn = (args: JsonObject, key: string): string | null => {
  const value = args[key]
  return typeof value === "string" && value !== "" ? value : null
}

const numberIn = (args: JsonObject, key: string): number | null => {
  const value = args[key]
  return typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : null
}

const oneLine = (text: string): string => {
  const line = text.replace(/\s+/g, " ").trim()
  return line.length <= titleChars ? line : `${line.slice(0, titleChars - 1)}…`
}

/** What a call does, in one line. */
export const titleOf = (name: string, args: JsonObject): string => {
  const path = textIn(args, "path")
  switch (name) {
    case "bash":
      return oneLine(textIn(args, "command") ?? name)
    case "read": {
      const from = numberIn(args, "offset")
      return oneLine(`Read ${path ?? "a file"}${from === null ? "" : ` from line ${from}`}`)
    }
    case "edit":
      return oneLine(`Edit ${path ?? "a file"}`)
    case "write":
      return oneLine(`Write ${path ?? "a file"}`)
    case "ls":
      return oneLine(`List ${path ?? "the workspace"}`)
    case "grep":
    case "find": {
      const what = textIn(args, "pattern")
      return oneLine(`${name === "grep" ? "Search" : "Find"} ${what ?? ""}${path === null ? "" : ` in ${path}`}`)
    }
    default:
      return oneLine(name)
  }
}

/** Where the session's directory is: as the editor calls it, and as it is. */
export interface Directory {
  /** As the editor named it. */
  readonly given: string
  /** Canonical. */
  readonly canonical: string
}

/** A path as the editor knows it: absolute, and below the directory that it named where it lies in the session's. */
export const editorPath = (path: string, { given, canonical }: Directory): string => {
  const absolute = isAbsolute(path) ? path : join(given, path)
  const below = relative(canonical, absolute)
  return below === "" ? given : below.startsWith("..") || isAbsolute(below) ? absolute : join(given, below)
}

const touching = new Set<ToolKind>(["read", "edit", "search"])

/** The file or directory that a call is about. Lines count from 1. */
export const locationsOf = (name: string, args: JsonObject, directory: Directory): Array<ToolCallLocation> => {
  const path = touching.has(kindOf(name)) && !name.startsWith("artifact") ? textIn(args, "path") : null
  if (path === null) return []
  const line = numberIn(args, "offset")
  return [{ path: editorPath(path, directory), ...(line === null ? {} : { line }) }]
}

/** The change that a call makes, as far as its arguments say so: one for each text that an edit replaces. */
export const diffsOf = (name: string, args: JsonObject, directory: Directory): Array<ToolCallContent> => {
  const path = textIn(args, "path")
  if (path === null) return []
  const at = editorPath(path, directory)
  const { content, edits } = args
  if (name === "write") return typeof content === "string" ? [{ type: "diff", path: at, newText: content }] : []
  if (name !== "edit" || !Array.isArray(edits)) return []
  return edits.flatMap((edit: Json): Array<ToolCallContent> => {
    if (!isJsonObject(edit)) return []
    const { newText, oldText } = edit
    return typeof oldText === "string" && typeof newText === "string"
      ? [{ type: "diff", path: at, oldText, newText }]
      : []
  })
}

/** Text as a tool call's content. */
export const textContent = (text: string): ToolCallContent => ({ type: "content", content: { type: "text", text } })

/** What a call gave. */
export const resultContent = (output: ReadonlyArray<UserPart>): Array<ToolCallContent> =>
  output.map((part) =>
    part.type === "text"
      ? textContent(part.text)
      : { type: "content", content: { type: "image", data: part.data, mimeType: part.mediaType } },
  )

/** The end of a running command's output. */
export const outputTail = (output: string, delta: string): string => {
  const all = output + delta
  return all.length <= outputChars ? all : all.slice(-outputChars)
}

/** The line of the first change, where a result says so. */
export const changedLine = (details: Json | null): number | null =>
  isJsonObject(details) ? numberIn(details, "firstLine") : null
