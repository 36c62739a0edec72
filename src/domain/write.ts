/**
 * Writes: entries that a caller appends without asking the model. The checks are pure; whether an entry that is named is visible is asked of
 * the storage by whoever admits the write.
 */
import { Either, Schema } from "effect"
import { cleanAssistant, cleanMessage } from "./clean-message.ts"
import { ContextEdit, EntryKind } from "./entry.ts"
import { InvalidRequest } from "./failure.ts"
import { EntryId } from "./ids.ts"
import { Json } from "./json.ts"
import { Message } from "./message.ts"
import { validityRules } from "./validity.ts"

/** Where the context starts from a written entry on: an earlier entry, or the written one itself. */
export const WriteHead = Schema.Union(EntryId, Schema.Literal("self"))
export type WriteHead = typeof WriteHead.Type

/** An entry to append; the content of a submission of kind `write`. */
export const EntryDraft = Schema.Struct({
  kind: Schema.NonEmptyString,
  data: Schema.NullOr(Json),
  model: Schema.Array(Message),
  head: Schema.NullOr(WriteHead),
  edits: Schema.Array(ContextEdit),
})
export type EntryDraft = typeof EntryDraft.Type

/** How an input shows in the transcript instead of as `pi.user`; the model sees its content all the same. */
export const InputEntry = Schema.Struct({ kind: Schema.NonEmptyString, data: Schema.NullOr(Json) })
export type InputEntry = typeof InputEntry.Type

/** Kinds that start like this are the engine's. */
const ownPrefix = "pi."

const invalid = (path: string, expected: string, actual: string) =>
  Either.left(new InvalidRequest({ path, expected, actual }))

/** Whether an application may use a kind. `path` names the field. */
export const checkKind = (path: string, kind: string): Either.Either<string, InvalidRequest> =>
  kind === "" || kind.startsWith(ownPrefix)
    ? invalid(path, 'a kind of your own, such as "app.note"', JSON.stringify(kind))
    : Either.right(kind)

/** Why a message cannot be sent to a model as it is, or null. One that no model sees again (rule 9) may hold anything. */
const messageFault = (message: Message, callIds: Set<string>): string | null => {
  const notes: Array<string> = []
  const note = (what: string) => void notes.push(what)
  if (message.role !== "assistant") cleanMessage(message, validityRules.strict.toolName, note)
  else if (!["aborted", "error", "deferred"].includes(message.stopReason)) {
    cleanAssistant(message, validityRules.strict.toolName, callIds, note)
  }
  return notes[0] ?? null
}

const checkMessages = (path: string, messages: ReadonlyArray<Message>): Either.Either<void, InvalidRequest> => {
  const callIds = new Set<string>()
  for (const [at, message] of messages.entries()) {
    const fault = messageFault(message, callIds)
    if (fault !== null)
      return invalid(`${path}.${at}`, "a message that every model accepts", `one to repair (${fault})`)
  }
  return Either.void
}

/** A write as it was asked for: the kind may be left out where it carries edits. */
export type WriteRequest = Omit<EntryDraft, "kind"> & { readonly kind: string | null }

/** The entry to append, checked as far as that needs no transcript. */
export const entryDraftOf = (write: WriteRequest): Either.Either<EntryDraft, InvalidRequest> =>
  Either.gen(function* () {
    const { edits, kind, model } = write
    if (kind === null && edits.length === 0) {
      return yield* invalid("kind", 'the kind of the entry, such as "app.note"', "nothing")
    }
    if (kind !== null) yield* checkKind("kind", kind)
    yield* checkMessages("model", model)
    for (const [at, edit] of edits.entries()) {
      if (edit.type === "replace") yield* checkMessages(`edits.${at}.model`, edit.model)
    }
    return { ...write, kind: kind ?? EntryKind.edit }
  })

/** The entry of a reset: it heads a context of its own, which starts with the handoff note where there is one. */
export const resetDraft = (handoff: string | null): EntryDraft => ({
  kind: EntryKind.reset,
  data: null,
  model: handoff === null ? [] : [{ role: "user", content: [{ type: "text", text: handoff }] }],
  head: "self",
  edits: [],
})

/** A note changes nothing that a model sees. */
export const isNote = ({ edits, head, model }: EntryDraft): boolean =>
  model.length === 0 && head === null && edits.length === 0

/** The entries that a draft names, each with its field. */
export const namedEntries = ({
  edits,
  head,
}: EntryDraft): ReadonlyArray<{ readonly path: string; readonly id: EntryId }> => [
  ...(head === null || head === "self" ? [] : [{ path: "head", id: head }]),
  ...edits.map((edit, at) => ({ path: `edits.${at}.entry`, id: edit.entry })),
]
