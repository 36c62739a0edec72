/**
 * A group of plain commits as one SQL statement: rows of conversations that are there already, which is what turns write. It does what
 * `functions/commit.ts` does, in the same order, at a part of the cost: it locks the conversations and proves their tokens, draws a number for
 * each commit, writes kind by kind, and proves that the node may write. Rules:
 * 1. It writes what the function would write, or nothing: where any row is not taken as it is, the statement fails ({@link isUnfit}), and the
 *    function is called instead, which says why. So nothing is refused here.
 * 2. Kinds of which the group has no row are left out. The few rows of a commit that comes alone are values of their own, others come as
 *    arrays of columns: each such form is a statement of its own, prepared when first needed, {@link formLimit} at most.
 */
import { sqlState } from "./failures.ts"
import { type Kind, kinds, type PlainRows, type Value } from "./plain-rows.ts"

/** How a statement takes its group. */
interface Way {
  /** Of its statements, in front. */
  readonly name: string
  /** Parameters before those of rows. */
  readonly common: number
  /** Locks the conversations, then draws the numbers: none where a conversation or its token is not as it must be. */
  readonly head: string
  /** Number of the commit that the row `x` belongs to, null where none was drawn: no row may have that. */
  readonly seq: string
  /** Place of the conversation of the row `x`. */
  readonly place: string
  /** What the writer is answered. */
  readonly answers: string
  /** Columns of rows before their own, and their types. */
  readonly before: Readonly<Record<string, string>>
}

interface Writing {
  /** Columns of the rows as they come, and their types. */
  readonly columns: Readonly<Record<string, string>>
  /** Writes `rows`, which are called `x`. */
  readonly write: (rows: string, way: Way) => string
  /** A row may be passed over without an error: those that were not are counted. */
  readonly counted: boolean
}

const names = (columns: Writing["columns"]): string => Object.keys(columns).join(", ")
const fixed: ReadonlyArray<string> = ["id", "conversation"]
const replaced = (columns: Writing["columns"]): string =>
  [...Object.keys(columns).filter((name) => !fixed.includes(name)), "seq"]
    .map((name) => `${name} = excluded.${name}`)
    .join(", ")
const picked = (columns: Writing["columns"]): string =>
  Object.keys(columns)
    .map((name) => `x.${name}`)
    .join(", ")

const entry = {
  ...{ id: "bigint", conversation: "bigint", kind: "text", model: "text", data: "text", head: "bigint", edits: "text" },
  ...{ task: "bigint", created_at: "bigint" },
}
const task = {
  ...{ id: "bigint", conversation: "bigint", kind: "text", version: "bigint", input: "text", status: "text" },
  ...{ checkpoint: "text", owner: "bigint", background: "smallint", abort_requested: "smallint", crashes: "bigint" },
  ...{ parked: "text", node: "text", fence: "bigint", lease_until: "bigint", wake_at: "bigint", waiting_on: "text" },
  ...{ outcome: "text", in_doubt: "smallint", created_at: "bigint", started_at: "bigint", ended_at: "bigint" },
}
const submission = {
  ...{ id: "bigint", conversation: "bigint", kind: "text", content: "text", when_busy: "text", status: "text" },
  ...{ reason: "text", detail: "text", request_id: "text", entry: "bigint", answer: "bigint", created_at: "bigint" },
}
const document = {
  ...{
    id: "bigint",
    kind: "text",
    scope: "text",
    conversation: "bigint",
    task: "bigint",
    key: "text",
    version: "bigint",
  },
  ...{ history: "text", fork: "text", value: "text" },
}

const writings: Readonly<Record<Kind, Writing>> = {
  updates: {
    columns: { id: "bigint", updated_at: "bigint", renamed: "boolean", title: "text" },
    write: (rows, { seq }) => `UPDATE conversations c
      SET updated_at = x.updated_at, seq = ${seq}, title = CASE WHEN x.renamed THEN x.title ELSE c.title END
      FROM ${rows} WHERE c.id = x.id`,
    counted: true,
  },
  entries: {
    columns: entry,
    write: (rows, { seq }) => `INSERT INTO entries (${names(entry)}, seq) SELECT ${picked(entry)}, ${seq} FROM ${rows}`,
    counted: false,
  },
  tasks: {
    columns: task,
    // fencing: a row under a higher token stays as it is
    write: (rows, { place, seq }) => `INSERT INTO tasks (${names(task)}, place, seq)
      SELECT ${picked(task)}, ${place}, ${seq} FROM ${rows}
      ON CONFLICT (id) DO UPDATE SET ${replaced(task)}, request_id = NULL
      WHERE excluded.fence >= tasks.fence AND excluded.conversation IS NOT DISTINCT FROM tasks.conversation`,
    counted: true,
  },
  submissions: {
    columns: submission,
    write: (
      rows,
      { seq },
    ) => `INSERT INTO submissions (${names(submission)}, seq) SELECT ${picked(submission)}, ${seq} FROM ${rows}
      ON CONFLICT (id) DO UPDATE SET ${replaced(submission)} WHERE excluded.conversation = submissions.conversation`,
    counted: true,
  },
  documents: {
    columns: { ...document, since: "bigint" },
    // created by this commit, or there as of an earlier one: then its number comes instead, negative, and is written nowhere
    write: (rows, { seq }) => `INSERT INTO documents (${names(document)}, created_seq, seq)
      SELECT ${picked(document)}, coalesce(-x.since, ${seq}), ${seq} FROM ${rows}
      WHERE x.since IS NULL OR EXISTS (SELECT 1 FROM documents WHERE documents.id = x.id)
      ON CONFLICT (id) DO UPDATE SET version = excluded.version, value = excluded.value, seq = excluded.seq
      WHERE documents.retired_seq IS NULL AND documents.history = excluded.history AND documents.version <= excluded.version
        AND excluded.created_seq IN (excluded.seq, -documents.seq)`,
    counted: true,
  },
}

/** One commit for one conversation. Parameters: epoch, link, number of the group, how many rows are counted; conversation, token. */
const alone: Way = {
  name: "alone",
  common: 6,
  // a number of the same query would be drawn before the lock
  head: `held AS MATERIALIZED (
    SELECT place FROM conversations WHERE id = $5::bigint AND token = coalesce($6::bigint, token) FOR NO KEY UPDATE
  ), number AS MATERIALIZED (
    SELECT nextval('seqs') AS seq FROM held
  )`,
  seq: "(SELECT seq FROM number)",
  place: "(SELECT place FROM held)",
  answers: "(SELECT '[' || seq || ']' FROM number)",
  before: {},
}

/** The same for a group: conversations, tokens, how many commits. `at` is the number of a row's commit, from 1. */
const together: Way = {
  name: "together",
  common: 7,
  head: `held AS MATERIALIZED (
    SELECT id, place FROM conversations WHERE id = ANY($5::bigint[]) AND coalesce(($6::bigint[])[array_position($5::bigint[], id)], token) = token
    ORDER BY id FOR NO KEY UPDATE
  ), places AS MATERIALIZED (
    SELECT array_agg(place ORDER BY id) AS places FROM held
  ), number AS MATERIALIZED (
    SELECT array_agg(nextval('seqs')) AS seqs FROM generate_series(1, $7::bigint) WHERE (SELECT count(*) FROM held) = cardinality($5::bigint[])
  )`,
  seq: "(SELECT seqs FROM number)[x.at]",
  place: "(SELECT places FROM places)[array_position($5::bigint[], x.conversation)]",
  answers: "(SELECT '[' || array_to_string(seqs, ',') || ']' FROM number)",
  before: { at: "bigint" },
}

/** Rows of a kind that come as values of their own, at most; statements that do: each is half a megabyte of the server's memory. */
const fewRows = 3
const formLimit = 32

/** How the rows of a kind come: so many, or as arrays. */
interface Form {
  readonly kind: Kind
  readonly rows: number | "arrays"
}

const sqlOf = (way: Way, forms: ReadonlyArray<Form>): string => {
  let parameter = way.common
  const written = forms.map(({ kind, rows }) => {
    const { counted, write } = writings[kind]
    const columns = { ...way.before, ...writings[kind].columns }
    const types = Object.values(columns)
    const row = () => `(${types.map((type) => `$${++parameter}::${type}`).join(", ")})`
    const source =
      rows === "arrays"
        ? `unnest(${types.map((type) => `$${++parameter}::${type}[]`).join(", ")})`
        : `(VALUES ${Array.from({ length: rows }, row).join(", ")})`
    return `${kind} AS (${write(`${source} AS x(${names(columns)})`, way)}${counted ? " RETURNING 1" : ""})`
  })
  const counts = forms.flatMap(({ kind }) => (writings[kind].counted ? [`(SELECT count(*) FROM ${kind})`] : []))
  // what is no number undoes what was written, and says so in the server's log
  return `WITH ${[way.head, ...written].join(", ")}, proved AS (
    UPDATE nodes SET last_group = $3, answers = ${way.answers}
    WHERE epoch = $1 AND link = $2 AND fenced_at IS NULL AND ended_at IS NULL RETURNING answers
  ), written AS (
    SELECT ${["(SELECT count(*) FROM proved)", ...counts].join(" + ")} AS rows
  ) SELECT (SELECT answers FROM proved) AS answers,
    CASE WHEN rows < 1 + $4::bigint THEN ('super-pi: not taken as it is, the function is asked: ' || rows)::bigint END AS unfit FROM written`
}

/** What writes a group. */
export interface GroupStatement {
  /** Of the prepared statement. */
  readonly name: string
  readonly sql: string
  /** Behind epoch, link and number of the group. */
  readonly values: ReadonlyArray<unknown>
}

interface Prepared {
  readonly name: string
  readonly sql: string
  readonly forms: ReadonlyArray<Form>
}

/** By name; the same for every connection of this process. */
const statements = new Map<string, Prepared>()

const statementOf = (way: Way, counts: ReadonlyMap<Kind, number>, few: number): Prepared => {
  let name = way.name
  // at most 63 characters count: here come 59
  for (const [kind, count] of counts) name += count <= few ? ` ${kind} ${count}` : ` ${kind}`
  const known = statements.get(name)
  if (known !== undefined) return known
  if (few > 0 && statements.size >= formLimit) return statementOf(way, counts, 0)
  const forms = [...counts].map(([kind, count]): Form => ({ kind, rows: count <= few ? count : "arrays" }))
  const made = { name, sql: sqlOf(way, forms), forms }
  statements.set(name, made)
  return made
}

/** The rows of a kind as columns, in front of them the number of each row's commit where `numbered`. */
const columnsOf = (group: ReadonlyArray<PlainRows>, kind: Kind, numbered: boolean): ReadonlyArray<Array<Value>> => {
  const width = Object.keys(writings[kind].columns).length
  const columns = Array.from({ length: width }, (): Array<Value> => [])
  const numbers: Array<Value> = []
  for (const [index, commit] of group.entries()) {
    for (const row of commit[kind]) {
      numbers.push(index + 1)
      for (const [at, column] of columns.entries()) column.push(row[at] ?? null)
    }
  }
  return numbered ? [numbers, ...columns] : columns
}

/** The statement of a group; `conversations` in the order of their ids, `tokens` beside them, null where any will do. */
export const plainStatement = (
  group: ReadonlyArray<PlainRows>,
  conversations: ReadonlyArray<number>,
  tokens: ReadonlyArray<number | null>,
): GroupStatement => {
  const way = group.length === 1 && conversations.length === 1 ? alone : together
  const [conversation] = conversations
  const [token] = tokens
  const counts = new Map<Kind, number>()
  let counted = 0
  for (const kind of kinds) {
    let count = 0
    for (const commit of group) count += commit[kind].length
    if (count > 0) counts.set(kind, count)
    if (writings[kind].counted) counted += count
  }
  const { forms, name, sql } = statementOf(way, counts, way === alone ? fewRows : 0)
  const values: Array<unknown> =
    way === alone ? [counted, conversation, token] : [counted, conversations, tokens, group.length]
  for (const { kind, rows } of forms) {
    if (rows === "arrays") values.push(...columnsOf(group, kind, way === together))
    else for (const commit of group) for (const row of commit[kind]) values.push(...row)
  }
  return { name, sql, values }
}

/** The server wrote nothing and says something about the group, not about the connection: the function is to say what. */
export const isUnfit = (cause: unknown): boolean => /^(?:21|22|23)/.test(sqlState(cause))
