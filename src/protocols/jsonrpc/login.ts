/**
 * Who a connection acts for. Where no token is configured, or the transport knows the caller already, that is settled from the start;
 * otherwise nothing but `auth.login` is answered until a token was right.
 */
import { Busy, type Failure, Refused } from "../../domain/failure.ts"
import { type Authenticator, localPrincipal } from "../auth/tokens.ts"
import type { RateTable } from "../http/rate.ts"

/** Wrong tokens after which a connection is ended. */
const attemptLimit = 5

/** What a token came to. `failed` ends the connection where it is the last attempt. */
export type LoginResult =
  | { readonly type: "principal"; readonly principal: string }
  | { readonly type: "wrong"; readonly last: boolean }
  | { readonly type: "refused"; readonly failure: Failure }

export interface Login {
  /** Null before a login that is needed. */
  readonly principal: () => string | null
  /** `now` in ms. */
  readonly attempt: (token: string, now: number) => LoginResult
}

export interface LoginOptions {
  readonly auth: Authenticator
  /** Whose connection it is, where the transport knows. */
  readonly principal?: string | null | undefined
  /** Wrong tokens by address, shared by all connections of a server. */
  readonly attempts: RateTable
  readonly address: string
}

export const makeLogin = ({ address, attempts, auth, principal = null }: LoginOptions): Login => {
  let known = auth.required ? principal : (principal ?? localPrincipal)
  let wrong = 0
  return {
    principal: () => known,
    attempt: (token, now) => {
      const waitMs = attempts.peek(address, now)
      if (waitMs > 0) {
        const detail = "too many wrong tokens came from this address"
        return { type: "refused", failure: new Busy({ what: "login", detail, retryAfterMs: waitMs }) }
      }
      const found = auth.required ? auth.principalOf(token) : localPrincipal
      if (found === null) {
        attempts.take(address, now)
        wrong++
        return { type: "wrong", last: wrong >= attemptLimit }
      }
      if (known !== null && known !== found) {
        const detail = "this connection has logged in as somebody else; open another one"
        return { type: "refused", failure: new Refused({ rule: "login", detail }) }
      }
      known = found
      return { type: "principal", principal: found }
    },
  }
}
