/**
 * Definitions of documents: what a kind of document holds, how long its history is kept, what a fork starts with, and how older values
 * become current ones. Pure; the service over a store is in `src/storage/documents/`.
 */
import { Either, ParseResult, Schema, SchemaAST } from "effect"
import type { DocumentHistory, DocumentScope, ForkPolicy } from "./document.ts"
import type { Json } from "./json.ts"

/** The deltas since the newest base, the one about to be stored included. */
export interface DocumentTail {
  readonly deltas: number
  /** UTF-8 bytes of their operations as JSON. */
  readonly bytes: number
}

/** What {@link defineDocument} is given. */
export interface DocumentOptions<A, I, Scope extends DocumentScope = DocumentScope> {
  /** Name of the kind, with a prefix of its owner: `app.cart`. `pi.` is taken. */
  readonly kind: string
  /** Raised with every change of what is stored; from 1. */
  readonly version: number
  /** What a value is; its encoded side must be JSON. */
  readonly schema: Schema.Schema<A, I>
  readonly scope: Scope
  /** `rewindable` also keeps what it was at every commit; `latest` (default) only what it is. */
  readonly history?: DocumentHistory
  /** What a fork of its conversation starts with. Default `initial`; `asOf` needs `rewindable`. */
  readonly fork?: ForkPolicy
  /** Many documents of this kind, each under its own key. Default false: one, under the key "". */
  readonly family?: boolean
  /** The value before the first write. */
  readonly initial: () => A
  /** The JSON of version `from + 1`, given that of version `from`. Required above version 1; called once per version. */
  readonly migrate?: (value: Json, from: number) => Json
  /** True stores this change as a whole base, which bounds what a read must replay. Default {@link everySixtyFour}. */
  readonly checkpointWhen?: (value: A, tail: DocumentTail) => boolean
}

/** A kind of document. */
export interface DocumentDefinition<A, I = A, Scope extends DocumentScope = DocumentScope>
  extends Required<Omit<DocumentOptions<A, I, Scope>, "checkpointWhen">> {
  readonly checkpointWhen: ((value: A, tail: DocumentTail) => boolean) | null
  /** The schema changes nothing between a value and its JSON, so a draft keeps what it did not touch. */
  readonly plain: boolean
}

/** Deltas after which the default rule stores a base. */
const maximumDeltas = 64

/** The default checkpoint rule: a base at the 64th delta, or when the deltas are longer than the value (`size`, UTF-8 bytes). */
export const everySixtyFour = (tail: DocumentTail, size: number): boolean =>
  tail.deltas >= maximumDeltas || tail.bytes > size

const expected = (kind: string, field: string, what: string, got: unknown): TypeError =>
  new TypeError(`document ${JSON.stringify(kind)}.${field}: expected ${what}, got ${JSON.stringify(got) ?? typeof got}`)

/** Defines a kind of document. Throws a `TypeError` that names the field where the definition contradicts itself. */
export const defineDocument = <A, I, const Scope extends DocumentScope>(
  options: DocumentOptions<A, I, Scope>,
): DocumentDefinition<A, I, Scope> => {
  const { kind, version } = options
  const history = options.history ?? "latest"
  const fork = options.fork ?? "initial"
  if (kind === "") throw expected(kind, "kind", "a name", kind)
  if (!Number.isSafeInteger(version) || version < 1)
    throw expected(kind, "version", "a whole number from 1 on", version)
  if (version > 1 && options.migrate === undefined) {
    throw expected(kind, "migrate", `a function, since version is ${version}`, options.migrate)
  }
  if (fork === "asOf" && history === "latest") {
    throw expected(kind, "history", `"rewindable", since fork is "asOf"`, history)
  }
  if (fork !== "initial" && options.scope !== "conversation") {
    throw expected(kind, "fork", `"initial", since only documents of a conversation are forked`, fork)
  }
  return {
    ...options,
    history,
    fork,
    family: options.family ?? false,
    migrate: options.migrate ?? ((value) => value),
    checkpointWhen: options.checkpointWhen ?? null,
    plain: SchemaAST.typeAST(options.schema.ast) === options.schema.ast,
  }
}

/** Why stored JSON is not a value of a definition. */
export type DocumentFault =
  | { readonly type: "newer"; readonly found: number }
  | { readonly type: "invalid"; readonly detail: string }

/** Unknown fields stay: code of the same version that knows more may have written them. */
const keepUnknown = { onExcessProperty: "preserve" } as const

/** The first fault as `path: what`. */
const wording = (error: ParseResult.ParseError): string => {
  const issue = ParseResult.ArrayFormatter.formatErrorSync(error)[0]
  if (issue === undefined) return error.message
  return issue.path.length === 0 ? issue.message : `${issue.path.join(".")}: ${issue.message}`
}

const invalid = (detail: string) => Either.left<DocumentFault>({ type: "invalid", detail })

/** The value that is stored as `json` by `version`, migrated where that is older. A newer one is a fault, whatever it holds. */
export const decodeDocument = <A, I>(
  definition: DocumentDefinition<A, I>,
  version: number,
  json: Json,
): Either.Either<A, DocumentFault> => {
  if (version > definition.version) return Either.left({ type: "newer", found: version })
  let current = json
  for (let from = version; from < definition.version; from++) {
    try {
      current = definition.migrate(current, from)
    } catch (cause) {
      return invalid(`migrate from version ${from}: ${cause instanceof Error ? cause.message : String(cause)}`)
    }
  }
  const decoded = Schema.decodeUnknownEither(definition.schema, keepUnknown)(current)
  if (Either.isLeft(decoded)) return invalid(wording(decoded.left))
  // a plain value is its own JSON, and keeps what it shares with others: its type and its encoded type are the same
  return Either.right(definition.plain ? (current as unknown as A) : decoded.right)
}

/** The JSON that stores `value`, or why it is none. */
export const encodeDocument = <A, I>(
  definition: DocumentDefinition<A, I>,
  value: A,
): Either.Either<Json, DocumentFault> => {
  const encoded = Schema.encodeEither(definition.schema, keepUnknown)(value)
  if (Either.isLeft(encoded)) return invalid(wording(encoded.left))
  // the encoded side of a document is JSON by contract
  return Either.right((definition.plain ? value : encoded.right) as Json)
}
