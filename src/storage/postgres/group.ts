/**
 * Commits that go to the server in one call: what they lock, in one order for all nodes, and what was answered. Pure.
 */
import { Exit } from "effect"
import type { Seq } from "../../domain/ids.ts"
import { type CommitError, Conflict, Fenced } from "../errors.ts"
import type { EncodedCommit } from "./encode.ts"
import { type GroupStatement, plainStatement } from "./plain.ts"
import { decodeText } from "./text.ts"

export type Answer = Exit.Exit<Seq, CommitError>

/** Calls `super_pi_commit`. */
const commitStatement = "SELECT super_pi_commit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) AS answers"

/** Null where there is nothing to lock. */
const sorted = (ids: ReadonlyArray<number>): ReadonlyArray<number> | null =>
  ids.length === 0 ? null : [...new Set(ids)].sort((a, b) => a - b)

/** What the commits of a group need of conversations. */
interface Needs {
  readonly conversations: ReadonlyArray<number> | null
  /** Beside them; null where any will do. */
  readonly tokens: ReadonlyArray<number | null> | null
  /** No commit takes one away, and of each one token is needed. */
  readonly agree: boolean
}

const needsOf = (group: ReadonlyArray<EncodedCommit>): Needs => {
  const tokens = new Map<number, number>()
  let agree = true
  for (const { removes, under } of group) {
    if (removes) agree = false
    if (under === null) continue
    const other = tokens.get(under.conversation)
    if (other !== undefined && other !== under.token) agree = false
    tokens.set(under.conversation, under.token)
  }
  const conversations = sorted(group.flatMap((commit) => [...commit.conversations]))
  return { conversations, tokens: conversations?.map((id) => tokens.get(id) ?? null) ?? null, agree }
}

/** The group as a call of the function. `apart`: each commit is refused alone. */
export const functionCall = (group: ReadonlyArray<EncodedCommit>, apart: boolean): GroupStatement => {
  const { agree, conversations, tokens } = needsOf(group)
  const [only] = group
  const values = [
    only !== undefined && group.length === 1 ? only.text : `[${group.map((commit) => commit.text).join(",")}]`,
    conversations,
    tokens,
    sorted(group.flatMap((commit) => commit.documents)),
    sorted(group.flatMap((commit) => commit.tasks)),
    sorted(group.flatMap((commit) => commit.jobs)),
    agree,
    apart,
  ]
  return { name: "commit", sql: commitStatement, values }
}

/** The group as one plain statement, or null where one of its commits is of another kind. */
export const plainGroup = (group: ReadonlyArray<EncodedCommit>): GroupStatement | null => {
  const rows = group.flatMap(({ plain }) => (plain === null ? [] : [plain]))
  if (rows.length < group.length) return null
  const { agree, conversations, tokens } = needsOf(group)
  return agree && conversations !== null && tokens !== null ? plainStatement(rows, conversations, tokens) : null
}

/** What the functions say of a refused commit. */
interface Refusal {
  readonly what: string
  /** A text given by somebody, to be shown in quotes behind `what`, and what comes behind it. */
  readonly quoted?: string
  readonly after?: string
  readonly detail?: string
  readonly held?: number
  readonly current?: number
}

/** The refusal in the detail of an error of the server. */
export const refusalOf = (refusal: Refusal): Conflict | Fenced => {
  const { after = "", current, detail = "", held, quoted } = refusal
  const what = decodeText(refusal.what)
  if (held !== undefined && current !== undefined) return new Fenced({ what, held, current })
  const named = quoted === undefined ? what : `${what}${JSON.stringify(decodeText(quoted))}${after}`
  return new Conflict({ what: named, detail: decodeText(detail) })
}

/** What was answered to each commit of a group. */
export const answersOf = (text: string): ReadonlyArray<Answer> => {
  const answers: ReadonlyArray<number | Refusal> = JSON.parse(text)
  return answers.map((answer) =>
    typeof answer === "number" ? Exit.succeed(answer as Seq) : Exit.fail(refusalOf(answer)),
  )
}
