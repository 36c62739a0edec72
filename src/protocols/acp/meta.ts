/**
 * What editors may say in `_meta` of a request. Pure. Keys that are not known are left alone, as the protocol wants it.
 */
import { Either } from "effect"
import { InvalidRequest } from "../../domain/failure.ts"
import { isRecord } from "../../domain/json.ts"
import { WhenBusy } from "../../domain/submission.ts"

type Meta = { readonly [key: string]: unknown } | null | undefined

const invalid = (path: string, expected: string, actual: string) =>
  Either.left(new InvalidRequest({ path, expected, actual }))

const shown = (value: unknown): string =>
  typeof value === "string" ? JSON.stringify(value.slice(0, 60)) : Array.isArray(value) ? "an array" : typeof value

/** A text under `superPi.<key>`, or under `<key>` itself; null where there is none. */
const textIn = (meta: Meta, key: string): Either.Either<string | null, InvalidRequest> => {
  const own = isRecord(meta?.superPi) ? meta.superPi[key] : undefined
  const value = own ?? meta?.[key]
  if (value === undefined || value === null) return Either.right(null)
  return typeof value === "string" && value !== ""
    ? Either.right(value)
    : invalid(`_meta.${own === undefined ? "" : "superPi."}${key}`, "a text that is not empty", shown(value))
}

/** Which harness a new session is to have. */
export const harnessIn = (meta: Meta): Either.Either<string | null, InvalidRequest> => textIn(meta, "harness")

/** The token of `authenticate`. */
export const tokenIn = (meta: Meta): Either.Either<string | null, InvalidRequest> => textIn(meta, "token")

/** How a prompt is to be submitted: a request id that makes it repeatable, and what it does while a turn runs. */
export const promptIn = (
  meta: Meta,
): Either.Either<{ readonly requestId: string | null; readonly whenBusy: WhenBusy }, InvalidRequest> =>
  Either.gen(function* () {
    const requestId = yield* textIn(meta, "requestId")
    const given = yield* textIn(meta, "whenBusy")
    const whenBusy = WhenBusy.literals.find((one) => one === (given ?? "followUp"))
    if (whenBusy === undefined) {
      const expected = `one of ${WhenBusy.literals.map((one) => JSON.stringify(one)).join(", ")}`
      return yield* invalid("_meta.superPi.whenBusy", expected, shown(given))
    }
    return { requestId, whenBusy }
  })
