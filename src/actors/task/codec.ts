/**
 * Values of a definition's schemas as stored JSON and back. What does not fit is one line that names the path.
 */
import { Either, ParseResult, Schema } from "effect"
import type { Json } from "../../domain/json.ts"

export interface Codec<A> {
  /** Left is why the value cannot be stored. */
  readonly encode: (value: A) => Either.Either<Json, string>
  readonly decode: (stored: Json) => Either.Either<A, string>
}

/** The first fault as `name.path: what`. */
const wording = (name: string, error: ParseResult.ParseError): string => {
  const issue = ParseResult.ArrayFormatter.formatErrorSync(error)[0]
  if (issue === undefined) return `${name}: ${error.message}`
  return `${[name, ...issue.path].join(".")}: ${issue.message.split("\n", 1)[0]}`
}

/** What JSON keeps of a value; `undefined` is null. Throws a TypeError for a cycle or a bigint. */
const toJson = (value: unknown): Json => JSON.parse(JSON.stringify(value) ?? "null")

/** `name` starts the messages. Compiles the schema when it is first used. */
export const codec = <A, I>(name: string, schema: Schema.Schema<A, I>): Codec<A> => {
  let encodeValue: ((value: unknown) => Either.Either<I, ParseResult.ParseError>) | undefined
  let decodeValue: ((stored: unknown) => Either.Either<A, ParseResult.ParseError>) | undefined
  return {
    encode: (value) => {
      encodeValue ??= Schema.encodeUnknownEither(schema)
      try {
        return Either.mapBoth(encodeValue(value), { onLeft: (error) => wording(name, error), onRight: toJson })
      } catch (cause) {
        return Either.left(`${name}: expected a JSON value, got ${cause instanceof Error ? cause.message : "another"}`)
      }
    },
    decode: (stored) => {
      decodeValue ??= Schema.decodeUnknownEither(schema)
      const decoded = decodeValue(stored)
      // `undefined` is stored as null
      const found =
        Either.isLeft(decoded) && stored === null ? Either.orElse(decodeValue(undefined), () => decoded) : decoded
      return Either.mapLeft(found, (error) => wording(name, error))
    },
  }
}
