/**
 * The five ways in which something can fail towards a person or a protocol (architecture, *Failure words*). Internal errors are
 * their own tagged types; at the session contract each becomes one of these.
 */
import { Schema } from "effect"

/** The caller's mistake. `path` names the field, `expected` and `actual` what was due and what came. */
export class InvalidRequest extends Schema.TaggedError<InvalidRequest>()("InvalidRequest", {
  path: Schema.String,
  expected: Schema.String,
  actual: Schema.String,
}) {
  override get message() {
    return `${this.path}: expected ${this.expected}, got ${this.actual}`
  }
}

/** Not found, or not yours: the same answer. `what` is for example `conversation 12`. */
export class NotFound extends Schema.TaggedError<NotFound>()("NotFound", { what: Schema.String }) {
  override get message() {
    return `${this.what} was not found`
  }
}

/** Refused by a policy; `rule` names it. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", { rule: Schema.String, detail: Schema.String }) {
  override get message() {
    return `refused by ${this.rule}: ${this.detail}`
  }
}

/** Busy or draining; try again after `retryAfterMs`. `ConversationBusy` is `what: "conversation"`. */
export class Busy extends Schema.TaggedError<Busy>()("Busy", {
  what: Schema.String,
  detail: Schema.String,
  retryAfterMs: Schema.NullOr(Schema.Int),
}) {
  override get message() {
    return `${this.what} is busy: ${this.detail}`
  }
}

/**
 * Something on our side or at a provider failed. `reference` finds the cause in the log; `detail` is one line that says what to do;
 * `code` tells kinds apart for programs, for example `provider_not_configured`, `model_not_found`, `storage`.
 */
export class ServiceFailure extends Schema.TaggedError<ServiceFailure>()("ServiceFailure", {
  code: Schema.String,
  detail: Schema.String,
  reference: Schema.String,
}) {
  override get message() {
    return this.detail
  }
}

export const Failure = Schema.Union(InvalidRequest, NotFound, Refused, Busy, ServiceFailure)
export type Failure = typeof Failure.Type
