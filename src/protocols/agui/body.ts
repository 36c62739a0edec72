/**
 * Reading bodies of requests, by hand: a fault names the field, what was expected and what came. Pure.
 */
import { Either } from "effect"
import { InvalidRequest } from "../../domain/failure.ts"
import { isRecord } from "../../domain/json.ts"
import type { UserPart } from "../../domain/message.ts"

export type Read<A> = Either.Either<A, InvalidRequest>
export type Fields = { readonly [key: string]: unknown }

/** Characters of an id that a client makes. */
const idLength = 256

/** What came, short enough for a message. */
const shown = (value: unknown): string => {
  if (value === undefined) return "nothing"
  if (Array.isArray(value)) return "an array"
  if (typeof value === "object" && value !== null) return "an object"
  const text = JSON.stringify(value) ?? typeof value
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}

export const wrong = (path: string, expected: string, value: unknown): Either.Either<never, InvalidRequest> =>
  Either.left(new InvalidRequest({ path, expected, actual: shown(value) }))

export const fields = (value: unknown, path: string): Read<Fields> =>
  isRecord(value) ? Either.right(value) : wrong(path, "an object", value)

/** An id: a string of 1 to 256 characters. */
export const id = (value: unknown, path: string): Read<string> =>
  typeof value === "string" && value.length >= 1 && value.length <= idLength
    ? Either.right(value)
    : wrong(path, `a string of 1 to ${idLength} characters`, value)

/** Null where it is left out. */
export const optional = <A>(value: unknown, read: (value: unknown) => Read<A>): Read<A | null> =>
  value === undefined || value === null ? Either.right(null) : read(value)

export const string = (value: unknown, path: string): Read<string> =>
  typeof value === "string" ? Either.right(value) : wrong(path, "a string", value)

export const flag = (value: unknown, path: string): Read<boolean> =>
  typeof value === "boolean" ? Either.right(value) : wrong(path, "true or false", value)

/** Absent is an empty list. */
export const list = (value: unknown, path: string): Read<ReadonlyArray<unknown>> => {
  if (value === undefined || value === null) return Either.right([])
  return Array.isArray(value) ? Either.right(value) : wrong(path, "an array", value)
}

/** Each of some values, to the first fault. */
export const each = <A, B>(
  values: ReadonlyArray<A>,
  read: (value: A, at: number) => Read<B>,
): Read<ReadonlyArray<B>> => {
  const out: Array<B> = []
  for (const [at, value] of values.entries()) {
    const one = read(value, at)
    if (Either.isLeft(one)) return Either.left(one.left)
    out.push(one.right)
  }
  return Either.right(out)
}

/** Base64 with its padding. */
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

const part = (value: unknown, path: string): Read<UserPart> =>
  Either.flatMap(fields(value, path), (record): Read<UserPart> => {
    if (record.type === "text") {
      return Either.map(string(record.text, `${path}.text`), (text): UserPart => ({ type: "text", text }))
    }
    if (record.type !== "image") return wrong(`${path}.type`, '"text" or "image"', record.type)
    return Either.flatMap(fields(record.source, `${path}.source`), ({ mimeType, type, value: data }) => {
      if (type !== "data") return wrong(`${path}.source.type`, '"data": images are sent along, not fetched', type)
      if (typeof mimeType !== "string" || !/^image\/[\w.+-]+$/.test(mimeType)) {
        return wrong(`${path}.source.mimeType`, 'a media type such as "image/png"', mimeType)
      }
      if (typeof data !== "string" || data === "" || !base64.test(data)) {
        return wrong(`${path}.source.value`, "the image in base64", data)
      }
      return Either.right<UserPart>({ type: "image", mediaType: mimeType, data })
    })
  })

/** The content of a user's message: a text, or parts that are texts and images. */
export const content = (value: unknown, path: string): Read<ReadonlyArray<UserPart>> => {
  const parts: Read<ReadonlyArray<UserPart>> =
    typeof value === "string"
      ? Either.right([{ type: "text", text: value }])
      : Array.isArray(value)
        ? each(value, (one, at) => part(one, `${path}.${at}`))
        : wrong(path, "a text or an array of parts", value)
  return Either.flatMap(parts, (all) =>
    all.some((one) => one.type === "image" || one.text.trim() !== "")
      ? Either.right(all)
      : wrong(path, "a text that is not empty, or an image", value),
  )
}
