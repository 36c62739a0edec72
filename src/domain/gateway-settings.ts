/**
 * The `gateway` section of the settings: who may call, from where, and how much. Unlike other sections a fault in it is not skipped:
 * a gateway that does not understand who may call does not start.
 */
import { Either, ParseResult, Schema } from "effect"
import { shown } from "./shown.ts"

const Count = Schema.Int.pipe(Schema.positive())
const Positive = Schema.Number.pipe(Schema.positive())

/** What one server lets its clients take. Each has a default. */
export const GatewayLimits = Schema.Struct({
  /** Bytes of a request's body. Default 33,554,432 (32 MiB). */
  bodyBytes: Schema.optional(Count),
  /** Bytes of a request's head. Default 16,384. */
  headerBytes: Schema.optional(Count),
  /** For the whole head to arrive. Default 10. */
  headerSeconds: Schema.optional(Positive),
  /** For the whole body to arrive. Default 60. */
  bodySeconds: Schema.optional(Positive),
  /** Without any byte taken from an answer that waits; then the client is cut off. Default 60. */
  stalledSeconds: Schema.optional(Positive),
  /** How long an idle connection stays open. Default 65, a little longer than proxies keep theirs. */
  keepAliveSeconds: Schema.optional(Positive),
  /** Open connections. Default 2,048. */
  connections: Schema.optional(Count),
  /** Open connections from one address. Default 1,024. */
  connectionsPerAddress: Schema.optional(Count),
  /** Answers that stream, and upgraded connections. Default 1,024. */
  streams: Schema.optional(Count),
  /** Those of one principal. Default 512. */
  streamsPerPrincipal: Schema.optional(Count),
  /** Sustained rate of one principal. Default 100. */
  requestsPerSecond: Schema.optional(Positive),
  /** Requests of one principal at once, on top of the rate. Default 400. */
  requestBurst: Schema.optional(Count),
  /** Wrong tokens from one address. Default 30. */
  loginsPerMinute: Schema.optional(Positive),
})
export type GatewayLimits = typeof GatewayLimits.Type

/** What an HTTP header can carry, and a comma-separated list can hold. */
const Token = Schema.String.pipe(
  Schema.filter((token) => /^[\x21-\x2b\x2d-\x7e]+$/.test(token), {
    message: () => "Expected visible ASCII characters without spaces and commas",
  }),
)
const Principal = Schema.String.pipe(
  Schema.pattern(/^[\w.@-]{1,64}$/, { message: () => "Expected a name of letters, digits, ., _, @ and -, at most 64" }),
)
const Origin = Schema.String.pipe(
  Schema.filter((origin) => origin === "*" || (URL.canParse(origin) && new URL(origin).origin === origin), {
    message: () => 'Expected an origin such as "https://example.com", or "*"',
  }),
)

export const GatewaySettings = Schema.Struct({
  /** Where to listen; anything but loopback needs a token. Default 127.0.0.1. */
  host: Schema.optional(Schema.NonEmptyString),
  /** Tokens by principal, or a list of tokens that are each a principal of their own. Default none: open on loopback. */
  tokens: Schema.optional(Schema.Union(Schema.Record({ key: Principal, value: Token }), Schema.Array(Token))),
  /** Web pages that may call, for example `https://app.example.com`. Default none. */
  allowedOrigins: Schema.optional(Schema.Array(Origin)),
  /** Names beside the loopback ones under which clients may reach a gateway without tokens. Default none. */
  allowedHosts: Schema.optional(Schema.Array(Schema.NonEmptyString)),
  /** Between the comments that keep an idle stream open. Default 15. */
  heartbeatSeconds: Schema.optional(Positive),
  /** How long running requests may go on while the server stops. Default 10. */
  drainSeconds: Schema.optional(Schema.NonNegative),
  limits: Schema.optional(GatewayLimits),
})
export type GatewaySettings = typeof GatewaySettings.Type

/** The section as it stands in the file; the fault names the key, and never shows a token. */
export const readGatewaySettings = (value: unknown): Either.Either<GatewaySettings, string> =>
  Either.mapLeft(Schema.decodeUnknownEither(GatewaySettings, { onExcessProperty: "error" })(value ?? {}), (error) => {
    const [issue] = ParseResult.ArrayFormatter.formatErrorSync(error)
    const path = ["gateway", ...(issue?.path ?? [])].map(String)
    const message = (issue?.message ?? "a valid section").replace(/, actual .*$/s, "").replace(/ \| undefined$/, "")
    if (issue?._tag === "Unexpected") return `${path.join(".")}: unknown key`
    let actual: unknown = value
    for (const key of path.slice(1)) actual = (actual as Record<string, unknown> | undefined)?.[key]
    const got = path[1] === "tokens" ? "" : `, got ${shown(actual, "…")}`
    return `${path.join(".")}: ${message.replace(/^Expected /, "expected ")}${got}`
  })
