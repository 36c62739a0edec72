/**
 * Placeholders for the outputs of commands that run before an input is placed. A plugin writes `{{command:0}}` for the first of its own; since
 * the next plugin counts from 0 as well, and a person may have typed the same, they are bound to marks that nobody types.
 */
import type { UserPart } from "../domain/message.ts"

const open = "\uE000command:"
const close = "\uE001"

/** Stands between the braces of a placeholder that somebody typed: it is none. */
const typed = "\uE002"

const inText = (content: ReadonlyArray<UserPart>, change: (text: string) => string): ReadonlyArray<UserPart> =>
  content.map((part) => (part.type === "text" ? { ...part, text: change(part.text) } : part))

/** Keeps placeholders that somebody typed from being taken for a plugin's. Undone by {@link withOutputs}. */
export const setApart = (content: ReadonlyArray<UserPart>): ReadonlyArray<UserPart> =>
  content.some((part) => part.type === "text" && part.text.includes("{{command:"))
    ? inText(content, (text) => text.replaceAll("{{command:", `{${typed}{command:`))
    : content

/** A text as it was typed. */
export const asTyped = (text: string): string => text.replaceAll(`{${typed}{command:`, "{{command:")

/** Binds the placeholders of a plugin that asks for `count` commands, the first of which is number `from` of all. */
export const bindOutputs = (content: ReadonlyArray<UserPart>, from: number, count: number): ReadonlyArray<UserPart> =>
  inText(content, (text) =>
    text.replaceAll(/\{\{command:(\d{1,4})\}\}/g, (whole, digits: string) =>
      Number(digits) < count ? `${open}${from + Number(digits)}${close}` : whole,
    ),
  )

/** Puts the outputs in place of what was bound. */
export const withOutputs = (
  content: ReadonlyArray<UserPart>,
  outputs: ReadonlyArray<string>,
): ReadonlyArray<UserPart> =>
  inText(content, (text) =>
    asTyped(text).replaceAll(
      new RegExp(`${open}(\\d{1,4})${close}`, "g"),
      (_, digits: string) => outputs[Number(digits)] ?? "",
    ),
  )
