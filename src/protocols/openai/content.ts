/**
 * Content of a message, as Chat Completions and Responses carry it, as ours. Images come as data URLs: nothing is fetched for a client.
 */
import type { ImagePart, UserPart } from "../../domain/message.ts"
import { shown } from "../../domain/shown.ts"
import { asFields, asText } from "./fields.ts"
import { wrong } from "./problems.ts"

const dataUrl = /^data:(image\/[\w.+-]+)(?:;[\w=.+-]+)*;base64,/i

/** The picture in a data URL. */
const imageOf = (url: string, path: string): ImagePart => {
  const match = dataUrl.exec(url.slice(0, 200))
  const mediaType = match?.[1]
  if (match === null || mediaType === undefined) {
    const actual = /^https?:/i.test(url) ? "the URL of another server, which is not fetched" : shown(url.slice(0, 60))
    throw wrong(path, "an image as a data URL (data:image/png;base64,…)", actual)
  }
  const data = url.slice(match[0].length)
  if (data === "" || !/^[A-Za-z0-9+/]*={0,2}$/.test(data))
    throw wrong(path, "base64 data of an image", "something else")
  return { type: "image", mediaType: mediaType.toLowerCase(), data }
}

const textTypes = new Set(["text", "input_text", "output_text"])

/** One part: text, a refusal (which is text), or an image. */
const partOf = (value: unknown, path: string): UserPart => {
  const part = asFields(value, path)
  const { type } = part
  if (typeof type === "string" && textTypes.has(type)) return { type: "text", text: asText(part.text, `${path}.text`) }
  if (type === "refusal") return { type: "text", text: asText(part.refusal, `${path}.refusal`) }
  if (type === "image_url") {
    const given = part.image_url
    const at = `${path}.image_url`
    return typeof given === "string"
      ? imageOf(given, at)
      : imageOf(asText(asFields(given, at).url, `${at}.url`), `${at}.url`)
  }
  if (type === "input_image") return imageOf(asText(part.image_url, `${path}.image_url`), `${path}.image_url`)
  throw wrong(`${path}.type`, 'a part of type "text" or "image_url"', shown(type))
}

/** A string, or a list of parts. Empty text says nothing and is left out. */
export const contentOf = (value: unknown, path: string): ReadonlyArray<UserPart> => {
  const parts =
    typeof value === "string"
      ? [{ type: "text", text: value } as const]
      : Array.isArray(value)
        ? value.map((part, at) => partOf(part, `${path}.${at}`))
        : null
  if (parts === null) throw wrong(path, "a string or an array of parts", shown(value))
  return parts.filter((part) => part.type !== "text" || part.text !== "")
}

/** The words of a content, without its images. */
export const wordsOf = (value: unknown, path: string): string =>
  value === null || value === undefined
    ? ""
    : contentOf(value, path)
        .map((part) => (part.type === "text" ? part.text : ""))
        .join("")
