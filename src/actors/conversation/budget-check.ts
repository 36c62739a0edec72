/**
 * The budget before a request: what the whole tree of conversations took, as it is committed, against the limits of the one at its top. Only
 * conversations that have a budget, and subagents, are looked at. Where a person can be asked the run pauses; a subagent's branch ends.
 */
import { Deferred, Effect, Option, Schema } from "effect"
import { type Budget, doubled, type Exhausted, exhausted, type Prices, spendOf } from "../../domain/budget.ts"
import { AgentDocument, DocumentKind, type DocumentRecord, UsageDocument } from "../../domain/document.ts"
import type { ConversationId } from "../../domain/ids.ts"
import type { AskOutcome } from "../../domain/question.ts"
import { SubagentInput } from "../../domain/subagent.ts"
import { TaskKind } from "../../domain/task.ts"
import type { ReadError } from "../../storage/errors.ts"
import type { StoreReads } from "../../storage/store.ts"
import type { Send } from "./jobs.ts"
import type { Reply } from "./machine/data.ts"

const decodeAgent = Schema.decodeUnknownOption(AgentDocument)
const decodeUsage = Schema.decodeUnknownOption(UsageDocument)
const decodeInput = Schema.decodeUnknownOption(SubagentInput)

const valueOf = (documents: ReadonlyArray<DocumentRecord>, kind: string) =>
  documents.find((one) => one.kind === kind && one.key === "")?.value

/** What a conversation and all its subagents took: those that ended are in its own document, the others are looked up. */
const treeUsage = (store: StoreReads, id: ConversationId): Effect.Effect<ReadonlyArray<UsageDocument>, ReadError> =>
  Effect.gen(function* () {
    const own = decodeUsage(valueOf(yield* store.documents(id), DocumentKind.usage))
    const open = (yield* store.openTasks(id)).filter(({ kind }) => kind === TaskKind.subagent)
    const inputs = open.flatMap(({ input }) => Option.toArray(decodeInput(input)))
    const below = yield* Effect.forEach(inputs, ({ conversation }) => treeUsage(store, conversation))
    return [...Option.toArray(own), ...below.flat()]
  })

export interface BudgetParts {
  readonly store: StoreReads
  readonly prices: Prices
  readonly conversation: ConversationId
  readonly agent: AgentDocument
  /** `provider/model` of the request, "" where it is not known. */
  readonly model: string
  readonly send: Send
}

/** Whether the conversation's requests are counted at all. */
export const isBudgeted = ({ budget, subagent }: AgentDocument): boolean =>
  budget !== undefined || subagent !== undefined

/** Asks the machine and waits for its answer. */
const told = <A>(send: (reply: Reply<A>) => Effect.Effect<void>, otherwise: A): Effect.Effect<A> =>
  Effect.gen(function* () {
    const answer = yield* Deferred.make<A>()
    const done = (value: A) => void Deferred.unsafeDone(answer, Effect.succeed(value))
    yield* send({ succeed: done, fail: () => done(otherwise) })
    return yield* Deferred.await(answer)
  })

const questionId = "budget"

/** Whether a person lets the conversation go on. */
const mayGoOn = ({ send }: BudgetParts, { detail, limit }: Exhausted): Effect.Effect<boolean> =>
  Effect.map(
    told<AskOutcome>(
      (reply) =>
        send({
          type: "ask",
          owner: null,
          // Another limit, or the same one doubled, is another question.
          key: `budget ${detail}`,
          body: {
            kind: "choice",
            title: "The budget is used up",
            questions: [
              {
                id: questionId,
                text: `${detail}. Go on?`,
                options: [
                  { id: "double", label: `Go on, and double ${limit}` },
                  { id: "stop", label: "End the run" },
                ],
                multiple: false,
                freeText: false,
              },
            ],
          },
          timeoutMs: null,
          reply,
        }),
      { type: "nobody", reason: "storage failed" },
    ),
    (outcome) => outcome.type === "answered" && outcome.answers[questionId]?.selected.includes("double") === true,
  )

/** The limit that was reached, or null: then the request may be made. A person who lets it go on doubles the limit. */
export const checkBudget = (parts: BudgetParts): Effect.Effect<Exhausted | null> => {
  const { agent, conversation, model, prices, send, store } = parts
  const root = agent.subagent?.root ?? conversation
  const check: Effect.Effect<Exhausted | null, ReadError> = Effect.gen(function* () {
    // A subagent's copy is of the moment when it began: what counts is the budget at the top, as it is now.
    const top = root === conversation ? agent : decodeTop(yield* store.documents(root))
    const budget: Budget | undefined = top?.budget
    if (budget === undefined) return null
    const reached = exhausted(budget, spendOf(yield* treeUsage(store, root), prices), prices, model)
    if (reached === null || root !== conversation || !reached.extensible) return reached
    if (!(yield* mayGoOn(parts, reached))) return reached
    const wider = { ...agent, budget: doubled(budget, reached) }
    yield* told<void>((reply) => send({ type: "configure", agent: { budget: wider.budget }, reply }), undefined)
    return yield* checkBudget({ ...parts, agent: wider })
  })
  // What cannot be counted must not be spent.
  return Effect.catchAll(check, (error) =>
    Effect.succeed({
      limit: "maxTokens" as const,
      extensible: false,
      detail: `it cannot be counted: ${error.message}`,
    }),
  )
}

const decodeTop = (documents: ReadonlyArray<DocumentRecord>): AgentDocument | null =>
  Option.getOrNull(decodeAgent(valueOf(documents, DocumentKind.agent)))
