/**
 * Tools, parts and transcripts as the Model Context Protocol words them. Pure.
 */
import type { Entry } from "../../../domain/entry.ts"
import type { Json } from "../../../domain/json.ts"
import type { UserPart } from "../../../domain/message.ts"
import type { ServedTool } from "./connection.ts"

/** What a client may think of a tool before it calls it. */
interface ToolHints {
  readonly readOnlyHint: boolean
  readonly destructiveHint: boolean
  readonly idempotentHint: boolean
  readonly openWorldHint: boolean
}

/** The hints that the effects of a tool come to; one that states none may do anything. */
export const hintsOf = ({ effects, replay }: Pick<ServedTool, "effects" | "replay">): ToolHints => {
  const readOnly = effects.length > 0 && effects.every((effect) => effect === "read" || effect === "net_read")
  const stated = effects.length > 0
  return {
    readOnlyHint: readOnly,
    destructiveHint: !readOnly,
    idempotentHint: replay === "safe",
    openWorldHint: !stated || effects.some((effect) => effect === "exec" || effect.startsWith("net_")),
  }
}

type Content =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly data: string; readonly mimeType: string }

export const contentOf = (parts: ReadonlyArray<UserPart>): Array<Content> =>
  parts.map((part) =>
    part.type === "text"
      ? { type: "text", text: part.text }
      : { type: "image", data: part.data, mimeType: part.mediaType },
  )

/** Structured content is an object; another value stands in one as `value`. Null: the tool gave none. */
export const structuredOf = (value: Json): Record<string, unknown> | null => {
  if (value === null) return null
  return typeof value === "object" && !Array.isArray(value) ? { ...value } : { value }
}

/** A transcript as lines of JSON, an entry a line, oldest first; the fields are those of docs/transcripts.md. */
export const transcriptLines = (entries: ReadonlyArray<Entry>): string =>
  entries
    .map(({ createdAt, data, edits, head, id, kind, model, task }) =>
      JSON.stringify({ type: "entry", id, kind, at: createdAt, task, model, data, head, edits }),
    )
    .join("\n")

/** Before the number of a conversation. */
const transcriptPrefix = "superpi://conversation/"
export const transcriptTemplate = `${transcriptPrefix}{id}/transcript`
export const transcriptUri = (id: number): string => `${transcriptPrefix}${id}/transcript`

/** The number of a conversation as clients write it, or null. */
export const conversationNumber = (value: unknown): number | null =>
  typeof value === "string" && /^[1-9]\d{0,14}$/.test(value) ? Number(value) : null
