/**
 * Who calls: tokens and the principals they stand for. Tokens are kept as keyed digests only, and a presented one is compared with every
 * one of them in constant time, whatever its length.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import { Either } from "effect"
import type { GatewaySettings } from "../../domain/gateway-settings.ts"

/** The principal of everybody where no token is configured, and of the process that owns the database. */
export const localPrincipal = "local"

/** A token and whose it is. */
interface Grant {
  readonly principal: string
  readonly token: string
}

export interface Authenticator {
  /** Whether callers need a token; without, everybody is `local`. */
  readonly required: boolean
  /** The principal of a token; null for a wrong one. */
  readonly principalOf: (token: string) => string | null
}

/** Everybody is `local`. */
export const openAuthenticator: Authenticator = { required: false, principalOf: () => localPrincipal }

/** A token without a name is a principal by itself, the same one after a restart. */
const unnamed = (token: string): Grant => ({
  principal: `token-${createHash("sha256").update(token).digest("hex").slice(0, 12)}`,
  token,
})

const fromVariable = (value: string): Either.Either<ReadonlyArray<Grant>, string> => {
  const grants: Array<Grant> = []
  for (const [index, item] of value.split(",").entries()) {
    const text = item.trim()
    if (text === "") continue
    // A token may end in `=` as base64 does; a name before a `=` has no such end.
    const named = /^([\w.@-]{1,64})=([^=].*)$/.exec(text)
    const grant = named === null ? unnamed(text) : { principal: named[1] ?? "", token: named[2] ?? "" }
    if (!/^[\x21-\x2b\x2d-\x7e]+$/.test(grant.token)) {
      return Either.left(`SUPER_PI_GATEWAY_TOKEN: item ${index + 1}: expected visible ASCII characters without spaces`)
    }
    grants.push(grant)
  }
  return Either.right(grants)
}

const fromSettings = (tokens: GatewaySettings["tokens"]): ReadonlyArray<Grant> => {
  if (tokens === undefined) return []
  if (Array.isArray(tokens)) return tokens.map(unnamed)
  return Object.entries(tokens).map(([principal, token]) => ({ principal, token }))
}

/**
 * The authenticator of the settings; the variable (`key-one,alice=key-two`) takes their place where it is set. Fails with one line that
 * never shows a token.
 */
export const authenticatorOf = (
  settings: Pick<GatewaySettings, "tokens">,
  variable: string | undefined,
): Either.Either<Authenticator, string> => {
  const read = Either.flatMap(fromVariable(variable ?? ""), (grants) =>
    Either.right(grants.length > 0 ? grants : fromSettings(settings.tokens)),
  )
  return Either.flatMap(read, (grants) => {
    const owners = new Map<string, string>()
    for (const { principal, token } of grants) {
      const other = owners.get(token)
      if (other !== undefined && other !== principal) {
        return Either.left(
          `gateway tokens: expected a token of its own for each principal, ${other} and ${principal} share one`,
        )
      }
      owners.set(token, principal)
    }
    return Either.right(grants.length === 0 ? openAuthenticator : makeAuthenticator(grants))
  })
}

const makeAuthenticator = (grants: ReadonlyArray<Grant>): Authenticator => {
  const key = randomBytes(32)
  const digest = (token: string) => createHmac("sha256", key).update(token).digest()
  const known = grants.map(({ principal, token }) => ({ principal, digest: digest(token) }))
  return {
    required: true,
    principalOf: (token) => {
      const given = digest(token)
      let found: string | null = null
      // Every one is looked at, whichever fits.
      for (const one of known) if (timingSafeEqual(one.digest, given)) found = one.principal
      return found
    },
  }
}

/** The token of an `Authorization` header: `Bearer …`; null where there is none. */
export const bearerToken = (header: string | undefined): string | null => {
  const match = /^Bearer +([^\s]+) *$/i.exec(header ?? "")
  return match?.[1] ?? null
}
