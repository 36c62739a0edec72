/**
 * Front matter: a YAML mapping between two lines `---` at the start of a Markdown file.
 */
import { isRecord } from "../domain/json.ts"

/** `fields` is empty where a file has none. Line ends are `\n`. */
export type FrontMatter =
  | { readonly type: "ok"; readonly fields: Readonly<Record<string, unknown>>; readonly body: string }
  | { readonly type: "fault"; readonly reason: string }

const maxChars = 64 * 1024

/** `key: a value: with a colon`, which many authors write without the quotes that YAML wants. */
const quoteValues = (source: string): string =>
  source.replace(
    /^([A-Za-z][\w-]*): (?!["'|>[{&*!])(.*:.*)$/gm,
    (_, key: string, value: string) => `${key}: ${JSON.stringify(value)}`,
  )

/** Parses the front matter of a text. The YAML package is loaded with the first file that has one. */
export const frontMatter = async (text: string): Promise<FrontMatter> => {
  const opening = /^---[ \t]*\n/.exec(text)
  if (opening === null) return { type: "ok", fields: {}, body: text }
  const rest = text.slice(opening[0].length)
  const closing = /^---[ \t]*(?:\n|$)/m.exec(rest)
  if (closing === null) return { type: "fault", reason: "front matter: expected a line --- that ends it, got none" }
  const source = rest.slice(0, closing.index)
  if (source.length > maxChars)
    return { type: "fault", reason: `front matter: expected at most ${maxChars} characters` }
  const { parse } = await import("yaml")
  const read = (yaml: string): unknown => parse(yaml, { logLevel: "error", maxAliasCount: 10, schema: "core" })
  let value: unknown
  try {
    value = read(source)
  } catch (error) {
    try {
      value = read(quoteValues(source))
    } catch {
      const line = (error instanceof Error ? error.message : String(error)).split("\n", 1)[0] ?? ""
      return { type: "fault", reason: `front matter: not YAML (${line.replace(/:$/, "")})` }
    }
  }
  if (value === null || value === undefined) value = {}
  if (!isRecord(value)) return { type: "fault", reason: "front matter: expected fields, got something else" }
  return { type: "ok", fields: value, body: rest.slice(closing.index + closing[0].length) }
}
