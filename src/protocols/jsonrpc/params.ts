/**
 * The parameters of every method. Decoded once, here; an error names the first wrong field, what was expected and what came.
 */
import { Either, ParseResult, Schema } from "effect"
import { AgentDocument } from "../../domain/document.ts"
import { EffectAnswer } from "../../domain/effect.ts"
import { ContextEdit } from "../../domain/entry.ts"
import type { InvalidRequest } from "../../domain/failure.ts"
import { ConversationId, EntryId, SubmissionId, TaskId } from "../../domain/ids.ts"
import { Job } from "../../domain/job.ts"
import { Json } from "../../domain/json.ts"
import { McpServer } from "../../domain/mcp.ts"
import { Message, text, UserPart } from "../../domain/message.ts"
import { PermissionAnswer, QuestionAnswer } from "../../domain/question.ts"
import { WhenBusy } from "../../domain/submission.ts"
import { InputEntry, WriteHead } from "../../domain/write.ts"
import { invalidParams } from "./errors.ts"
import { describe } from "./message.ts"

const described = <A, I>(schema: Schema.Schema<A, I>, expected: string): Schema.Schema<A, I> =>
  schema.annotations({ message: () => ({ message: expected, override: true }) })

/** {@link described}, for a field that must be there. */
const required = <A, I>(schema: Schema.Schema<A, I>, expected: string) =>
  Schema.propertySignature(described(schema, expected)).annotations({ missingMessage: () => expected })

const conversationId = required(ConversationId, "a positive integer")
const submissionId = required(SubmissionId, "a positive integer")
const count = described(Schema.NonNegativeInt, "a non-negative integer or null")
const string = described(Schema.String, "a string")

const orNull = <A, I>(schema: Schema.Schema<A, I>) =>
  Schema.optionalWith(Schema.NullOr(schema), { default: () => null })

/** Base64 with its padding. */
const base64 = /^(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$|^[A-Za-z0-9+/]{2,3}={1,2}$/

/** What would reach a model as nothing, or as an image that every provider refuses from then on, is not admitted. */
const contentFault = (parts: ReadonlyArray<UserPart>): Schema.FilterOutput => {
  for (const [index, part] of parts.entries()) {
    if (part.type !== "image") continue
    if (!/^image\/[\w.+-]+$/.test(part.mediaType)) {
      return { path: [index, "mediaType"], message: 'a media type such as "image/png"' }
    }
    if (!base64.test(part.data)) return { path: [index, "data"], message: "the image in base64" }
  }
  const says = parts.some((part) => part.type === "image" || part.text.trim() !== "")
  return says || "a text that is not empty, or an image"
}

/** An array of parts; a plain string stands for one text part. */
const parts = Schema.Union(
  Schema.transform(Schema.String, Schema.typeSchema(Schema.Array(UserPart)), {
    strict: true,
    decode: (value) => [text(value)],
    encode: (parts) => parts.map((part) => (part.type === "text" ? part.text : "")).join(""),
  }),
  Schema.Array(UserPart),
).pipe(Schema.filter(contentFault))
const content = Schema.propertySignature(parts).annotations({ missingMessage: () => "a text or an array of parts" })

export const NoParams = Schema.Struct({})
export const OpenParams = Schema.Struct({
  conversationId: orNull(described(ConversationId, "a positive integer")),
  agent: Schema.optionalWith(AgentDocument, { default: () => ({}) }),
  title: orNull(string),
  requestId: orNull(string),
})
export const SubmitParams = Schema.Struct({
  conversationId,
  content,
  whenBusy: Schema.optionalWith(WhenBusy, { default: (): WhenBusy => "followUp" }),
  entry: Schema.optional(InputEntry),
  requestId: orNull(string),
})
/** Every part of a write may be left out; what must be there together is said by the sessions. */
export const WriteParams = Schema.Struct({
  conversationId,
  kind: orNull(string),
  data: orNull(Json),
  model: Schema.optionalWith(Schema.Array(Message), { default: (): ReadonlyArray<Message> => [] }),
  head: orNull(described(WriteHead, 'an entry id or "self"')),
  edits: Schema.optionalWith(Schema.Array(ContextEdit), { default: (): ReadonlyArray<ContextEdit> => [] }),
  requestId: orNull(string),
})
export const ResetParams = Schema.Struct({ conversationId, handoff: orNull(string), requestId: orNull(string) })
export const ForkParams = Schema.Struct({
  conversationId,
  entryId: orNull(described(EntryId, "a positive integer")),
  agent: Schema.optionalWith(AgentDocument, { default: () => ({}) }),
  title: orNull(string),
  requestId: orNull(string),
})
export const SubmissionParams = Schema.Struct({
  conversationId,
  submissionId: orNull(described(SubmissionId, "a positive integer")),
  requestId: orNull(string),
})
export const AwaitParams = Schema.Struct({ conversationId, submissionId })
export const WatchParams = Schema.Struct({
  conversationId,
  after: orNull(count),
  /** Whether this client can answer questions while it watches. */
  interactive: Schema.optionalWith(described(Schema.Boolean, "true or false"), { default: () => false }),
})
export const QuestionsParams = Schema.Struct({
  conversationId: orNull(described(ConversationId, "a positive integer")),
})
export const RespondParams = Schema.Struct({
  questionId: required(TaskId, "a positive integer"),
  answer: Schema.propertySignature(QuestionAnswer).annotations({
    missingMessage: () => `one of ${PermissionAnswer.literals.join(", ")}, or an answer to each thing that was asked`,
  }),
  requestId: orNull(string),
  client: orNull(described(Schema.String.pipe(Schema.maxLength(80)), "a name of at most 80 characters")),
})
const watchId = required(Schema.String, "the watchId that session.watch gave")
export const AckParams = Schema.Struct({ watchId, delivery: required(Schema.Int, "an integer") })
export const UnwatchParams = Schema.Struct({ watchId })
export const WhyParams = Schema.Struct({ conversationId, call: required(Schema.NonEmptyString, "the id of a call") })
export const ConversationParams = Schema.Struct({ conversationId })
export const CancelParams = Schema.Struct({
  conversationId,
  submissionId: orNull(described(SubmissionId, "a positive integer")),
})
export const CompactParams = Schema.Struct({ conversationId, instructions: orNull(string) })
export const ListParams = Schema.Struct({
  limit: Schema.optionalWith(described(Schema.Int.pipe(Schema.between(1, 1000)), "an integer from 1 to 1000"), {
    default: () => 100,
  }),
})
export const ConfigureParams = Schema.Struct({
  conversationId,
  agent: Schema.propertySignature(AgentDocument).annotations({ missingMessage: () => "an object" }),
})

const limit = Schema.optionalWith(described(Schema.Int.pipe(Schema.between(1, 1000)), "an integer from 1 to 1000"), {
  default: () => 100,
})
export const EffectsParams = Schema.Struct({
  running: Schema.optionalWith(described(Schema.Boolean, "true or false"), { default: () => false }),
  limit,
})
/** `checkpoint` null takes the newest run back. */
export const UndoParams = Schema.Struct({
  conversationId,
  checkpoint: orNull(described(Schema.Int.pipe(Schema.positive()), "a positive integer")),
  force: Schema.optionalWith(described(Schema.Boolean, "true or false"), { default: () => false }),
})
export const SettleEffectParams = Schema.Struct({
  taskId: required(TaskId, "a positive integer"),
  answer: required(EffectAnswer, `one of ${EffectAnswer.literals.map((one) => `"${one}"`).join(", ")}`),
})

export const LoginParams = Schema.Struct({ token: required(Schema.String.pipe(Schema.maxLength(10_000)), "a token") })
export const QueueParams = Schema.Struct({ queue: required(Schema.NonEmptyString, "the name of a queue") })
export const JobParams = Schema.Struct({
  jobId: required(Job.fields.id, "a positive integer"),
  reason: orNull(string),
})
/** `before` null deletes every job that has ended. */
export const PruneParams = Schema.Struct({
  before: orNull(described(Schema.Int, "milliseconds since the epoch, or null")),
})
const taskId = required(TaskId, "a positive integer")
export const TaskParams = Schema.Struct({ taskId })
/** `unless` null answers at once. */
export const TasksParams = Schema.Struct({
  all: Schema.optionalWith(described(Schema.Boolean, "true or false"), { default: () => false }),
  unless: orNull(string),
})
export const TaskAbortParams = Schema.Struct({
  taskId,
  background: Schema.optionalWith(described(Schema.Boolean, "true or false"), { default: () => false }),
})
const orNode = orNull(described(ConversationId, "a positive integer"))
export const McpListParams = Schema.Struct({ conversationId: orNode })
export const McpRestartParams = Schema.Struct({
  conversationId: orNode,
  name: required(Schema.NonEmptyString, "the name of a server"),
})
export const McpAddParams = Schema.Struct({
  conversationId,
  servers: Schema.Array(McpServer),
  replace: Schema.optionalWith(described(Schema.Boolean, "true or false"), { default: () => false }),
})

/** The value at a path of the input, for the error. */
const valueAt = (input: unknown, path: ReadonlyArray<PropertyKey>): unknown => {
  let value: unknown = input
  for (const key of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined
    value = Reflect.get(value, key)
  }
  return value
}

/** Schema messages read `Expected X, actual Y`; only the X is wanted, since Y is described by ourselves. */
const expectedOf = (message: string): string => {
  const match = /^Expected (.*), actual /s.exec(message)
  const expected = match?.[1] ?? message
  return expected.length <= 200 ? expected : `${expected.slice(0, 200)}…`
}

/** What would have been accepted at one place: every member of a union, without `null` where there is more. */
const alternatives = (issues: ReadonlyArray<ParseResult.ArrayFormatterIssue>): string => {
  const expected = [...new Set(issues.map((issue) => expectedOf(issue.message)))]
  const said = expected.filter((one) => one !== "null" && one !== "undefined")
  return (said.length > 0 ? said : expected).join(" | ")
}

const firstIssue = (input: unknown, error: ParseResult.ParseError): InvalidRequest => {
  const issues = ParseResult.ArrayFormatter.formatErrorSync(error)
  // The deepest issue says most: of a union, the member that matched furthest.
  const issue = issues.reduce((best, next) => (next.path.length > best.path.length ? next : best), issues[0] ?? missing)
  const path = issue.path.length === 0 ? "params" : issue.path.map(String).join(".")
  switch (issue._tag) {
    case "Missing":
      return invalidParams(path, issue.message === "is missing" ? "a value" : issue.message, "nothing")
    case "Unexpected":
      return invalidParams(
        path,
        issue.message.replace(/^is unexpected, expected: /, "one of the fields "),
        "an unknown field",
      )
    default:
      return invalidParams(
        path,
        alternatives(issues.filter((one) => one._tag === issue._tag && one.path.join("\0") === issue.path.join("\0"))),
        describe(valueAt(input, issue.path)),
      )
  }
}

const missing: ParseResult.ArrayFormatterIssue = { _tag: "Type", path: [], message: "other parameters" }

/** The one object that parameters stand for: themselves, the single element of an array, or `{}` when absent. */
const normalise = (params: unknown): unknown => {
  if (params === undefined) return {}
  if (Array.isArray(params)) return params.length === 0 ? {} : params.length === 1 ? params[0] : params
  return params
}

/** A decoder for one method's parameters. */
export const paramsDecoder = <A, I>(schema: Schema.Schema<A, I>) => {
  const decode = Schema.decodeUnknownEither(schema, { onExcessProperty: "error" })
  return (params: unknown): Either.Either<A, InvalidRequest> => {
    const input = normalise(params)
    if (Array.isArray(input)) return Either.left(invalidParams("params", "an object", describe(input)))
    return Either.mapLeft(decode(input), (error) => firstIssue(input, error))
  }
}
