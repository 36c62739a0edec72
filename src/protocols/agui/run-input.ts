/**
 * `RunAgentInput` as it counts here. Pure.
 *
 * 1. New are the user messages behind the last message of the agent. What a client sends again of the history is not taken over.
 * 2. `state` and `tools` are read by nobody; `context` is told with the first new message.
 */
import { Either } from "effect"
import type { AgentDocument } from "../../domain/document.ts"
import type { TaskId } from "../../domain/ids.ts"
import type { UserPart } from "../../domain/message.ts"
import type { QuestionAnswer } from "../../domain/question.ts"
import { content, each, type Fields, fields, flag, id, list, optional, type Read, string, wrong } from "./body.ts"
import { contextText, isOurs } from "./messages.ts"
import type { AguiMessage } from "./protocol.ts"
import { answerOf, questionId } from "./question.ts"

export interface NewMessage {
  readonly id: string
  /** As the client shows it. */
  readonly message: AguiMessage
  /** As it is submitted. */
  readonly content: ReadonlyArray<UserPart>
}

export interface Resume {
  readonly question: TaskId
  readonly answer: QuestionAnswer
}

export interface RunInput {
  readonly threadId: string
  readonly runId: string
  readonly fresh: ReadonlyArray<NewMessage>
  /** Ids that the client gave to messages of its user. */
  readonly userIds: ReadonlyArray<string>
  /** Messages that only the client has: it keeps them. */
  readonly kept: ReadonlyArray<AguiMessage>
  /** Whether the client has messages of the conversation. */
  readonly hasMessages: boolean
  readonly resume: ReadonlyArray<Resume>
  readonly agent: AgentDocument
  /** Whether the client takes questions as interrupts. */
  readonly interrupts: boolean
}

const roles = ["developer", "system", "assistant", "user", "tool", "activity", "reasoning"]
const agents: ReadonlyArray<unknown> = ["assistant", "tool", "reasoning"]
const modes = ["plan", "accept-edits", "auto"] as const

interface RawMessage {
  readonly id: string
  readonly role: string
  readonly fields: Fields
  readonly path: string
}

const rawMessage = (value: unknown, at: number): Read<RawMessage> => {
  const path = `messages.${at}`
  return Either.gen(function* () {
    const record = yield* fields(value, path)
    const { role } = record
    const own = yield* id(record.id, `${path}.id`)
    if (typeof role !== "string" || !roles.includes(role))
      return yield* wrong(`${path}.role`, `one of ${roles.join(", ")}`, role)
    return { id: own, role, fields: record, path }
  })
}

/** A message that only a client has, as it goes back to it. */
const keptMessage = ({ fields: { content: said }, id: own, role }: RawMessage): ReadonlyArray<AguiMessage> =>
  (role === "system" || role === "developer") && typeof said === "string" ? [{ id: own, role, content: said }] : []

const contextPart = (values: ReadonlyArray<unknown>): Read<ReadonlyArray<UserPart>> =>
  Either.map(
    each(values, (value, at) =>
      Either.gen(function* () {
        const record = yield* fields(value, `context.${at}`)
        const description = yield* string(record.description, `context.${at}.description`)
        const said = yield* string(record.value, `context.${at}.value`)
        return { description, value: said }
      }),
    ),
    (all) => (all.length === 0 ? [] : [{ type: "text", text: contextText(all) }]),
  )

const freshMessages = (
  messages: ReadonlyArray<RawMessage>,
  context: ReadonlyArray<UserPart>,
): Read<ReadonlyArray<NewMessage>> => {
  const last = messages.findLastIndex(({ role }) => agents.includes(role))
  const added = messages.slice(last + 1).filter((one) => one.role === "user" && !isOurs(one.id))
  return each(added, (one, at) =>
    Either.map(content(one.fields.content, `${one.path}.content`), (said) => ({
      id: one.id,
      // Read above: a text, or parts that are texts and images.
      message: { id: one.id, role: "user", content: one.fields.content as string },
      content: at === 0 ? [...context, ...said] : said,
    })),
  )
}

const resumeEntry = (value: unknown, at: number): Read<Resume> => {
  const path = `resume.${at}`
  return Either.gen(function* () {
    const record = yield* fields(value, path)
    const question = yield* questionId(record.interruptId, `${path}.interruptId`)
    const { status } = record
    if (status === "cancelled") return { question, answer: "reject_once" as const }
    if (status !== "resolved") return yield* wrong(`${path}.status`, '"resolved" or "cancelled"', status)
    return { question, answer: yield* answerOf(record.payload, `${path}.payload`) }
  })
}

/** What `forwardedProps` choose for the conversation. */
const choices = (props: Fields): Read<AgentDocument> =>
  Either.gen(function* () {
    const harness = yield* optional(props.harness, (value) => id(value, "forwardedProps.harness"))
    const model = yield* optional(props.model, (value) => id(value, "forwardedProps.model"))
    const mode = yield* optional(props.executionMode, (value): Read<(typeof modes)[number]> => {
      const known = modes.find((one) => one === value)
      return known === undefined
        ? wrong("forwardedProps.executionMode", `one of ${modes.join(", ")}`, value)
        : Either.right(known)
    })
    return {
      ...(harness === null ? {} : { harness }),
      ...(model === null ? {} : { model }),
      ...(mode === null ? {} : { mode }),
    }
  })

export const readRunInput = (body: unknown): Read<RunInput> =>
  Either.gen(function* () {
    const record = yield* fields(body, "body")
    const threadId = yield* id(record.threadId, "threadId")
    const runId = yield* id(record.runId, "runId")
    const messages = yield* each(yield* list(record.messages, "messages"), rawMessage)
    const context = yield* contextPart(yield* list(record.context, "context"))
    const resume = yield* each(yield* list(record.resume, "resume"), resumeEntry)
    const props = (yield* optional(record.forwardedProps, (value) => fields(value, "forwardedProps"))) ?? {}
    const interrupts = yield* optional(props.interrupts, (value) => flag(value, "forwardedProps.interrupts"))
    return {
      threadId,
      runId,
      fresh: yield* freshMessages(messages, context),
      userIds: messages.filter((one) => one.role === "user" && !isOurs(one.id)).map((one) => one.id),
      kept: messages.flatMap(keptMessage),
      hasMessages: messages.some((one) => isOurs(one.id)),
      resume,
      agent: yield* choices(props),
      // A client that declares the version knows them.
      interrupts: interrupts ?? (typeof record.protocolVersion === "string" && record.protocolVersion !== ""),
    }
  })
