/**
 * The job that makes one compaction: asks a model for the summary where the method needs one, reads the todo list, and says what it has. The
 * intent is committed before it starts, and what it says is placed by the machine: it never writes.
 */
import { Effect, Schema } from "effect"
import { unknownWindow } from "../../domain/compaction-settings.ts"
import type { CompactionInput } from "../../domain/compaction-task.ts"
import type { ContextEntry } from "../../domain/context.ts"
import { selectEntries } from "../../domain/context.ts"
import { DocumentKind, TodoDocument } from "../../domain/document.ts"
import { textOf } from "../../domain/message.ts"
import { digestOf, type OlderPart, olderPart } from "../../domain/older-part.ts"
import { summaryRequest } from "../../domain/summary-request.ts"
import { traced } from "../../domain/traced.ts"
import type { Usage } from "../../domain/usage.ts"
import type { HookRunner } from "../../harness/context.ts"
import { beforeCompact } from "../../harness/pipeline.ts"
import type { CompactDecision } from "../../harness/plugin.ts"
import { type ModelError, type ModelPart, type ModelsService, ModelTransient } from "../../models/model.ts"
import type { StoreReads } from "../../storage/store.ts"
import { orStorageFailure } from "./failures.ts"
import type { Send } from "./jobs.ts"
import type { Compaction, Data } from "./machine/data.ts"
import { requestCode } from "./observe-models.ts"
import type { ConversationSettingsService } from "./settings.ts"

/** UTF-16 units of conversation per token of the writer's window that a request carries: room is left for tokens that are shorter. */
const unitsPerToken = 2

/** Tokens of a summary at most. */
const summaryTokens = 8_192

/** How often the conversation's text is halved where the writer's service finds it too long. */
const halvings = 3

interface Written {
  readonly text: string
  readonly model: string
  readonly usage: Usage | null
}

export interface CompactionJob {
  readonly compaction: Compaction
  /** The conversation as it is when the job starts. */
  readonly data: Data
  readonly services: {
    readonly models: ModelsService
    readonly store: StoreReads
    readonly settings: ConversationSettingsService
  }
  readonly send: Send
  /** The plugins that may have a say; null where there are none. */
  readonly runner: HookRunner | null
}

/** What stands behind the plan's cut; null where it is not there any more. */
const olderOf = (entries: ReadonlyArray<ContextEntry>, { plan }: CompactionInput): OlderPart | null => {
  const selected = selectEntries(entries)
  const at = selected.findIndex((entry) => entry.id === plan.cut.last)
  return at < 0 ? null : olderPart(selected, at + 1)
}

/** One request for a summary. */
const ask = (
  models: ModelsService,
  model: string,
  older: OlderPart,
  instructions: string | null,
  budget: number,
): Effect.Effect<{ readonly text: string; readonly usage: Usage }, ModelError> => {
  let finished: Extract<ModelPart, { readonly type: "finish" }> | null = null
  const sink = (parts: ReadonlyArray<ModelPart>) =>
    Effect.sync(() => {
      for (const part of parts) if (part.type === "finish") finished = part
    })
  const messages = summaryRequest(older, instructions, budget)
  const nothing = new ModelTransient({
    model,
    reason: "truncated",
    status: null,
    retryAfterMs: null,
    detail: "the summary came back empty",
  })
  return Effect.flatMap(models.respond({ model, messages, maxOutputTokens: summaryTokens }, sink), () => {
    const written = finished === null ? "" : textOf(finished.content).trim()
    return finished === null || written === "" ? nothing : Effect.succeed({ text: written, usage: finished.usage })
  })
}

/** The summary, of less and less where the service finds the conversation too long. */
const summarise = (
  { compaction, data, services }: CompactionJob,
  older: OlderPart,
): Effect.Effect<Written, ModelError> =>
  Effect.gen(function* () {
    const { instructions, reason, writer } = compaction.input
    const { models, settings } = services
    const info = yield* models.resolve(writer === "" ? yield* models.defaultModel : writer)
    const budget = (info.contextWindow ?? unknownWindow) * unitsPerToken
    const once = (halved: number): Effect.Effect<Written, ModelError> =>
      ask(models, info.id, older, instructions, budget / 2 ** halved).pipe(
        Effect.map((written): Written => ({ ...written, model: info.id })),
        Effect.catchTag("ContextOverflow", (error) => (halved < halvings ? once(halved + 1) : Effect.fail(error))),
      )
    const slots = settings.compactionSlots
    if (slots === undefined || reason !== "background") return yield* once(0)
    return yield* slots.use({ conversation: data.conversation.id, task: compaction.task.id }, once(0))
  })

/** The todo list as text, null where there is none or it is empty. One that cannot be read is left to the document's own reader to tell. */
const todoOf = ({ data, services }: CompactionJob): Effect.Effect<string | null> =>
  orStorageFailure(services.store.documents(data.conversation.id)).pipe(
    Effect.map((documents) => {
      const record = documents.find((one) => one.kind === DocumentKind.todo && one.key === "")
      const todo = Schema.decodeUnknownOption(TodoDocument)(record?.value)
      if (todo._tag === "None" || todo.value.items.length === 0) return null
      return todo.value.items.map((item) => `- [${item.status}] ${item.text}`).join("\n")
    }),
    Effect.orElseSucceed(() => null),
  )

/** What the plugins want, before anything is asked of a model; null: what is usual. Of stubs for old results they may only say no. */
const decisionOf = ({ compaction, data, runner }: CompactionJob): Effect.Effect<CompactDecision | null> => {
  const { instructions, model, plan, reason, writer } = compaction.input
  if (runner === null || !runner.pipeline.hooks.has("beforeCompact")) return Effect.succeed(null)
  const stubs = plan.method === "tool_results"
  const messages = stubs ? [] : (olderOf(data.context.entries.slice(), compaction.input)?.messages ?? [])
  const given = { reason, instructions, method: plan.method, writer: writer === model ? null : writer, messages }
  return Effect.map(beforeCompact(runner, given), (answer) =>
    answer === null || (stubs && answer.decision.type !== "decline") ? null : answer.decision,
  )
}

/** The same with another writer. */
const writtenBy = (
  job: CompactionJob,
  { instructions, model }: Extract<CompactDecision, { readonly type: "summarise" }>,
): CompactionJob => {
  const { compaction } = job
  const { input } = compaction
  const asked = instructions ?? input.instructions
  return { ...job, compaction: { ...compaction, input: { ...input, writer: model, instructions: asked } } }
}

/** Makes the compaction and sends its one event. A defect crashes the job, and the machine learns it from its end. */
export const compactionJob = (job: CompactionJob): Effect.Effect<void> => {
  const { compaction, send } = job
  const { input, task } = compaction
  const attributes = {
    "gen_ai.conversation.id": String(job.data.conversation.id),
    "super_pi.compaction.reason": input.reason,
    "super_pi.compaction.method": input.plan.method,
    "super_pi.task.id": task.id,
  }
  const write = (decision: CompactDecision | null): Effect.Effect<Written, ModelError> => {
    const { method } = input.plan
    if (decision?.type === "summary") return Effect.succeed({ text: decision.text, model: "", usage: null })
    const older = method === "tool_results" ? null : olderOf(job.data.context.entries.slice(), input)
    if (older === null) return Effect.succeed({ text: "", model: "", usage: null })
    const usual =
      method === "truncate"
        ? Effect.sync((): Written => ({ text: digestOf(older), model: "", usage: null }))
        : summarise(job, older)
    if (decision?.type !== "summarise") return usual
    // A writer that refuses for good is no reason to go without a compaction.
    return Effect.catchTags(summarise(writtenBy(job, decision), older), {
      ModelRejected: () => usual,
      ModelNotFound: () => usual,
      ProviderNotConfigured: () => usual,
    })
  }
  const made = (decision: CompactDecision | null) =>
    Effect.flatMap(Effect.zip(write(decision), todoOf(job)), ([{ model, text, usage }, todo]) =>
      send({ type: "compacted", task: task.id, summary: { text, todo }, model, usage }),
    )
  return Effect.flatMap(decisionOf(job), (decision) =>
    decision?.type === "decline"
      ? send({ type: "compactionDeclined", task: task.id, reason: decision.reason })
      : made(decision),
  ).pipe(
    traced("super_pi.compaction", attributes, { code: requestCode }),
    Effect.catchAll((error) => send({ type: "compactionFailed", task: task.id, error })),
  )
}
