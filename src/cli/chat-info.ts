/**
 * What `/status`, `/context` and `/sessions` of a chat say. Pure.
 */
import type { SessionSummary } from "../actors/contract.ts"
import { contextOf, contextState } from "../domain/context.ts"
import { type Entry, EntryKind } from "../domain/entry.ts"
import type { SessionState } from "../domain/event.ts"
import { contextTokens } from "../domain/token-estimate.ts"
import { ago, cost, count, parkedWords, tokens } from "../protocols/terminal/format.ts"
import { oneLine } from "../protocols/terminal/sanitize.ts"

/** What the state of a conversation does not tell. */
export interface Beside {
  /** `provider/model` of conversations that name none, where it is known. */
  readonly defaultModel: string | null
  /** US dollars; null where its models have no price. */
  readonly dollars: number | null
  /** Tokens of the model's context window, when known. */
  readonly window: number | null
}

const facts = (rows: ReadonlyArray<readonly [name: string, value: string]>): ReadonlyArray<string> => {
  const said = rows.filter(([, value]) => value !== "")
  const width = Math.max(...said.map(([name]) => name.length))
  return said.map(([name, value]) => `${name.padEnd(width)}  ${value}`)
}

const modelWords = (model: string, defaultModel: string | null): string =>
  model === "" ? (defaultModel === null ? "the default model" : `${defaultModel} (default)`) : oneLine(model)

/** For example `4.3k of 200.0k (2 %)`. */
const used = (taken: number, window: number | null): string =>
  window === null
    ? `about ${count(taken)}`
    : `about ${count(taken)} of ${count(window)} (${Math.round((taken / window) * 100)} %)`

export const statusLines = (session: SessionState, { defaultModel, dollars }: Beside): ReadonlyArray<string> =>
  facts([
    ["conversation", `${session.conversation_id}${session.title === null ? "" : `  ${oneLine(session.title)}`}`],
    ["model", modelWords(session.model, defaultModel)],
    [
      "state",
      `${session.state.replaceAll("_", " ")}${session.parked === null ? "" : `, ${parkedWords(session.parked.reason)}`}`,
    ],
    ["mode", oneLine(session.mode)],
    ["harness", oneLine(session.harness ?? "none")],
    ["directory", oneLine(session.cwd ?? "")],
    ["entries", String(session.entries)],
    ["tokens", tokens(session.usage) || "none yet"],
    ["cost", dollars === null ? "" : cost(dollars)],
    ["queue", session.queued.length === 0 ? "empty" : `${session.queued.length} queued`],
    ["questions", session.questions.length === 0 ? "" : `${session.questions.length} open`],
    [
      "subagents",
      session.subagents === undefined || session.subagents.length === 0 ? "" : `${session.subagents.length} at work`,
    ],
  ])

/** The context that the next request starts from. */
export const contextLines = (
  session: SessionState,
  entries: ReadonlyArray<Entry>,
  { defaultModel, window }: Beside,
): ReadonlyArray<string> => {
  const state = contextState(entries)
  const compactions = entries.filter(({ kind }) => kind === EntryKind.compaction).length
  const tools = [...state.prompt.tools.keys()].map(oneLine)
  const sections = [...state.prompt.sections.keys()].map(oneLine)
  return facts([
    ["model", modelWords(session.model, defaultModel)],
    ["messages", `${contextOf(state).length}, from ${entries.length} entries`],
    ["tokens", used(contextTokens(state), window)],
    ["compactions", compactions === 0 ? "none" : String(compactions)],
    ["sections", sections.length === 0 ? "none before the first turn" : sections.join(", ")],
    ["tools", tools.length === 0 ? "none before the first turn" : `${tools.length}: ${tools.join(", ")}`],
  ])
}

/** The newest conversations, one a line; `present` is marked. */
export const sessionLines = (
  rows: ReadonlyArray<SessionSummary>,
  present: number,
  now: number,
): ReadonlyArray<string> => {
  const width = Math.max(0, ...rows.map((row) => String(row.conversation_id).length))
  return rows.map((row) => {
    const state = row.parked !== null ? "[parked] " : row.busy ? "[busy] " : ""
    const mark = row.conversation_id === present ? "*" : " "
    const id = String(row.conversation_id).padStart(width)
    return `${mark} ${id}  ${ago(row.updated_at, now).padEnd(10)}  ${state}${oneLine(row.title ?? "(no title)")}`
  })
}
