/**
 * What the results of a batch ask of the conversation (`ToolControl`). `terminate` and `handoff` count when the batch is complete, so they
 * are kept in the generation's checkpoint, in the commit of the result that asked: a death before the last result forgets none.
 */
import { Schema } from "effect"
import { DocumentKind, TodoDocument } from "../../../domain/document.ts"
import type { DocumentWrite } from "../../../domain/document-write.ts"
import type { TaskId } from "../../../domain/ids.ts"
import type { Json } from "../../../domain/json.ts"
import type { ToolControl } from "../../../tools/tool.ts"
import type { CallSlot, Run, TaskRow } from "./data.ts"
import type { Draft } from "./draft.ts"

/** What one call asked for. */
type Asked = {
  readonly task: TaskId
  readonly terminate: boolean
  readonly handoff: string | null
}

/** The part of a checkpoint that is written here; absent where nothing was asked for. */
const askedIn = (generation: TaskRow): ReadonlyArray<Asked> =>
  // This engine wrote it, below.
  (generation.checkpoint as unknown as { readonly asked?: ReadonlyArray<Asked> }).asked ?? []

/** Keeps what a result asks for. */
export const applyControl = (d: Draft, slot: CallSlot, control: ToolControl | undefined): void => {
  if (control === undefined) return
  if (control.addTools !== undefined) offer(d, control.addTools)
  for (const write of control.documents ?? []) writeDocument(d, write)
  const { handoff = null, terminate = false } = control
  if (handoff === null && !terminate) return
  const { generation } = d.run
  const asked: ReadonlyArray<Asked> = [...askedIn(generation), { task: slot.task.id, terminate, handoff }]
  const checkpoint: Json = { ...(generation.checkpoint as { readonly [key: string]: Json }), asked }
  d.patchRun({ generation: d.putTask({ ...generation, checkpoint }) })
}

/** A document's write in the commit of the result. Whoever watches learns of the todo list. */
const writeDocument = (d: Draft, write: DocumentWrite): void => {
  d.addDocument(write)
  if (write.kind !== DocumentKind.todo) return
  const todo = Schema.decodeUnknownOption(TodoDocument)(write.value)
  if (todo._tag === "None") return
  const { items } = todo.value
  d.patch({ plan: items })
  d.publish({ type: "plan_updated", items })
}

/** Adds tools to those that `pi.agent` names; where it names none, to those that were found: only those of a search are not offered already. */
const offer = (d: Draft, names: ReadonlyArray<string>): void => {
  const { agent } = d.data
  const field = agent.tools === undefined ? "foundTools" : "tools"
  const before = agent[field] ?? []
  const after = [...new Set([...before, ...names])]
  if (after.length === before.length) return
  d.patch({ agent: { ...agent, [field]: after } })
  d.putDocument(DocumentKind.agent, { ...d.data.agent } as Json)
}

/** How a complete batch ends: with a new context from a note, with the end of the run, or (null) with another request. */
export const endAsked = (
  { generation }: Run,
  calls: number,
): { readonly type: "handoff"; readonly note: string } | { readonly type: "terminate" } | null => {
  const all = askedIn(generation)
  if (all.length === 0) return null
  // Task ids grow in call order: of several notes the last call's counts.
  const asked = [...all].sort((a, b) => a.task - b.task)
  const note = asked.findLast((one) => one.handoff !== null)?.handoff ?? null
  if (note !== null) return { type: "handoff", note }
  return asked.filter((one) => one.terminate).length === calls ? { type: "terminate" } : null
}
