/**
 * What an MCP server answered, as the result of a call. Pure; takes whatever came and never throws.
 *
 * Text stays text; images that models can see stay images; sound, other bytes and links are told in words; resources are their text.
 */
import { isRecord, type Json } from "../../domain/json.ts"
import { text, type UserPart } from "../../domain/message.ts"
import { sniffImage } from "../../tools/file-kind.ts"
import { maxImageChars, maxImageSide, outputChars, sizeText } from "../../tools/limits.ts"
import type { ToolResult } from "../../tools/tool.ts"
import { boundedJson } from "./bounded-json.ts"

const bytesOf = (base64: string): number => Math.floor((base64.length * 3) / 4)

const stringOf = (value: unknown): string | null => (typeof value === "string" ? value : null)

const imageOf = (data: string, type: string): UserPart => {
  const size = sizeText(bytesOf(data))
  if (data.length > maxImageChars) return text(`[an image of ${size}: too large to be shown]`)
  const info = sniffImage(Buffer.from(data.slice(0, 64 * 1024), "base64"))
  if (info === undefined) return text(`[an image of type ${type}, ${size}: not one that can be shown]`)
  if (Math.max(info.width ?? 0, info.height ?? 0) > maxImageSide) {
    return text(`[an image of ${info.width} × ${info.height} pixels: too large to be shown]`)
  }
  return { type: "image", mediaType: info.mediaType, data }
}

const resourceOf = (resource: unknown): UserPart => {
  if (!isRecord(resource)) return text("[a resource that cannot be read]")
  const uri = stringOf(resource.uri) ?? "without an address"
  const type = stringOf(resource.mimeType) ?? "unknown"
  const content = stringOf(resource.text)
  if (content !== null) return text(`[resource ${uri}]\n${content}`)
  const blob = stringOf(resource.blob)
  if (blob === null) return text(`[resource ${uri}]`)
  if (type.startsWith("image/")) return imageOf(blob, type)
  return text(`[resource ${uri} of type ${type}, ${sizeText(bytesOf(blob))}: not text]`)
}

const partOf = (block: unknown): UserPart => {
  if (!isRecord(block)) return text("[content that cannot be read]")
  switch (block.type) {
    case "text":
      return text(stringOf(block.text) ?? "")
    case "image":
      return imageOf(stringOf(block.data) ?? "", stringOf(block.mimeType) ?? "unknown")
    case "audio": {
      const size = sizeText(bytesOf(stringOf(block.data) ?? ""))
      return text(`[sound of type ${stringOf(block.mimeType) ?? "unknown"}, ${size}: cannot be shown]`)
    }
    case "resource":
      return resourceOf(block.resource)
    case "resource_link": {
      const words = [stringOf(block.title) ?? stringOf(block.name), stringOf(block.description)].filter(Boolean)
      return text(`[resource ${stringOf(block.uri) ?? ""}${words.length === 0 ? "" : `: ${words.join(", ")}`}]`)
    }
    default:
      return text(`[content of the unknown type ${boundedJson(block.type, 100) ?? "none"}]`)
  }
}

/** Texts up to `outputChars` together; what is cut off is said. */
const bounded = (parts: ReadonlyArray<UserPart>): ReadonlyArray<UserPart> => {
  let room: number = outputChars
  let cut = 0
  const kept = parts.flatMap((part): ReadonlyArray<UserPart> => {
    if (part.type !== "text") return [part]
    const shown = part.text.slice(0, room)
    room -= shown.length
    cut += part.text.length - shown.length
    return shown === "" && part.text !== "" ? [] : [text(shown)]
  })
  return cut === 0 ? kept : [...kept, text(`[${cut.toLocaleString("en-US")} more characters were left out]`)]
}

/** The largest structured content that is kept, in characters of its JSON. */
const maxStructured = 1024 * 1024

const structuredOf = (value: unknown): { readonly value: Json; readonly json: string } | null => {
  if (value === undefined || value === null) return null
  const json = boundedJson(value, maxStructured)
  // It was JSON on the wire.
  return json === null ? null : { value: JSON.parse(json) as Json, json }
}

/** Images that one result shows. */
const maxImages = 16

/** The result of a call. */
export const resultOf = (answer: unknown): ToolResult => {
  if (!isRecord(answer)) {
    return { output: [text("The server answered with what is no result.")], isError: true }
  }
  const blocks = Array.isArray(answer.content) ? answer.content : []
  let images = 0
  const parts = blocks.map((block) => {
    const part = partOf(block)
    if (part.type !== "image") return part
    images++
    return images <= maxImages ? part : text(`[an image more than the ${maxImages} that are shown]`)
  })
  const structured = structuredOf(answer.structuredContent)
  // A server that gives structured content only, gives the model that.
  const shown = parts.length === 0 && structured !== null ? [text(structured.json)] : parts
  return {
    output: shown.length === 0 ? [text("(no output)")] : bounded(shown),
    ...(structured === null ? {} : { structuredOutput: structured.value }),
    ...(answer.isError === true ? { isError: true } : {}),
  }
}
