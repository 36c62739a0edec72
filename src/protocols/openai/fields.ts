/**
 * Reading the fields of a body. Each reader takes what a client may send and throws `InvalidRequest` with the dotted path of the field for
 * anything else; null counts as left out, as clients send it.
 */
import { Either } from "effect"
import { InvalidRequest } from "../../domain/failure.ts"
import { isJsonObject, isRecord, type JsonObject } from "../../domain/json.ts"
import { shown } from "../../domain/shown.ts"
import { wrong } from "./problems.ts"

export type Fields = Readonly<Record<string, unknown>>

export const asFields = (value: unknown, path: string): Fields => {
  if (isRecord(value)) return value
  throw wrong(path, "an object", shown(value))
}

export const asList = (value: unknown, path: string): ReadonlyArray<unknown> => {
  if (Array.isArray(value)) return value
  throw wrong(path, "an array", shown(value))
}

export const asText = (value: unknown, path: string): string => {
  if (typeof value === "string") return value
  throw wrong(path, "a string", shown(value))
}

const optional =
  <A>(read: (value: unknown, path: string) => A) =>
  (value: unknown, path: string): A | undefined =>
    value === undefined || value === null ? undefined : read(value, path)

const flag = (value: unknown, path: string): boolean => {
  if (typeof value === "boolean") return value
  throw wrong(path, "true or false", shown(value))
}

const object = (value: unknown, path: string): JsonObject => {
  if (isJsonObject(value)) return value
  throw wrong(path, "an object", shown(value))
}

export const optionalText = optional(asText)
export const optionalFlag = optional(flag)
export const optionalFields = optional(asFields)
export const optionalObject = optional(object)

/** Runs readers: what they throw is the caller's mistake. */
export const reading = <A>(read: () => A): Either.Either<A, InvalidRequest> =>
  Either.try({
    try: read,
    catch: (error) => {
      if (error instanceof InvalidRequest) return error
      throw error
    },
  })
