/**
 * A group of plain commits as one SQL statement: rows of conversations that are there already, which is what turns write. It does what
 * `functions/commit.ts` does, in the same order, at a part of the cost: it locks the conversations and proves their tokens, draws a number for
 * each commit, writes kind by kind, and proves that the node may write. Rules:
 * 1. It writes what the function would write, or nothing: where any row is not taken as it is, no row comes back or the statement fails
 *    ({@link isUnfit}), and the function is called instead, which says why. So nothing is refused here.
 * 2. Kinds of which the group has no row are left out, few rows come as values of their own, many as arrays of columns: each such form is a
 *    statement of its own, prepared when first needed, {@link formLimit} at most.
 */
import { sqlState } from "./failures.ts"
import { type Kind, kinds, type PlainRows, type Value } from "./plain-rows.ts"

interface Writing {
  /** Columns of the rows as they come, and their types. */
  readonly columns: Readonly<Record<string, string>>
  /** Writes `rows`, in which `at` is the number of a row's commit in the group, from 1; `n` are the numbers. */
  readonly write: (rows: string) => string
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

const writings: Readonly<Record<Kind, Writing>> = {
  updates: {
    columns: { id: "bigint", updated_at: "bigint", renamed: "boolean", title: "text" },
    write: (rows) => `UPDATE conversations c
      SET updated_at = x.updated_at, seq = n.seq, title = CASE WHEN x.renamed THEN x.title ELSE c.title END
      FROM ${rows} JOIN number n ON n.at = x.at WHERE c.id = x.id`,
  },
  entries: {
    columns: entry,
    write: (rows) => `INSERT INTO entries (${names(entry)}, seq)
      SELECT ${picked(entry)}, n.seq FROM ${rows} JOIN number n ON n.at = x.at`,
  },
  tasks: {
    columns: task,
    // fencing: a row under a higher token stays as it is
    write: (rows) => `INSERT INTO tasks (${names(task)}, place, seq)
      SELECT ${picked(task)}, (SELECT place FROM held WHERE held.id = x.conversation), n.seq FROM ${rows} JOIN number n ON n.at = x.at
      ON CONFLICT (id) DO UPDATE SET ${replaced(task)}, request_id = NULL
      WHERE excluded.fence >= tasks.fence AND excluded.conversation IS NOT DISTINCT FROM tasks.conversation`,
  },
  submissions: {
    columns: submission,
    write: (rows) => `INSERT INTO submissions (${names(submission)}, seq)
      SELECT ${picked(submission)}, n.seq FROM ${rows} JOIN number n ON n.at = x.at
      ON CONFLICT (id) DO UPDATE SET ${replaced(submission)} WHERE excluded.conversation = submissions.conversation`,
  },
  documents: {
    columns: { id: "bigint", version: "bigint", value: "text", history: "text", since: "bigint" },
    write: (rows) => `UPDATE documents d SET version = x.version, value = x.value, seq = n.seq
      FROM ${rows} JOIN number n ON n.at = x.at
      WHERE d.id = x.id AND d.retired_seq IS NULL AND d.history = x.history AND d.version <= x.version AND d.seq = coalesce(x.since, d.seq)`,
  },
}

/** Parameters of every statement: epoch, link, number of the group, how many commits, conversations, tokens, how many rows of all kinds. */
const common = 7

/** Rows of a kind that come as values of their own, at most; forms that do. */
const fewRows = 3
const formLimit = 64

/** How the rows of a kind come: so many, or as arrays. */
interface Form {
  readonly kind: Kind
  readonly rows: number | "arrays"
}

const sqlOf = (forms: ReadonlyArray<Form>): string => {
  let parameter = common
  const written = forms.map(({ kind, rows }) => {
    const { columns, write } = writings[kind]
    const types = ["bigint", ...Object.values(columns)]
    const row = () => `(${types.map((type) => `$${++parameter}::${type}`).join(", ")})`
    const source =
      rows === "arrays"
        ? `unnest(${types.map((type) => `$${++parameter}::${type}[]`).join(", ")})`
        : `(VALUES ${Array.from({ length: rows }, row).join(", ")})`
    return `${kind} AS (${write(`${source} AS x(at, ${names(columns)})`)} RETURNING 1), `
  })
  const count = forms.map(({ kind }) => `(SELECT count(*) FROM ${kind})`).join(" + ") || "0"
  // numbers are drawn once everything is locked; a division by zero undoes what was written
  return `WITH held AS MATERIALIZED (
    SELECT id, place FROM conversations WHERE id = ANY($5::bigint[]) AND coalesce(($6::bigint[])[array_position($5::bigint[], id)], token) = token
    ORDER BY id FOR NO KEY UPDATE
  ), number AS MATERIALIZED (
    SELECT at, nextval('seqs') AS seq FROM generate_series(1, $4::bigint) AS at WHERE (SELECT count(*) FROM held) = cardinality($5::bigint[])
  ), answered AS MATERIALIZED (
    SELECT '[' || string_agg(seq::text, ',' ORDER BY at) || ']' AS answers FROM number
  ), ${written.join("")}proved AS (
    UPDATE nodes SET last_group = $3, answers = a.answers FROM answered a
    WHERE epoch = $1 AND link = $2 AND fenced_at IS NULL AND ended_at IS NULL AND a.answers IS NOT NULL RETURNING 1
  ) SELECT answers, 1 / CASE WHEN ${count} = $7::bigint AND (SELECT count(*) FROM proved) = 1 THEN 1 ELSE 0 END AS fit FROM answered`
}

export interface PlainStatement {
  /** Of the prepared statement. */
  readonly name: string
  readonly sql: string
  /** Behind epoch, link and number of the group. */
  readonly values: ReadonlyArray<unknown>
}

/** By name; the same for every connection of this process. */
const statements = new Map<string, string>()

const statementOf = (counts: ReadonlyArray<{ readonly kind: Kind; readonly count: number }>) => {
  const formed = (few: number) => {
    const forms = counts.map(({ count, kind }): Form => ({ kind, rows: count <= few ? count : "arrays" }))
    // at most 63 characters count
    const name = ["plain", ...forms.map(({ kind, rows }) => `${kind.slice(0, 3)} ${rows}`)].join(" ")
    return { name, forms, sql: statements.get(name) }
  }
  const known = formed(fewRows)
  const { forms, name, sql } = known.sql === undefined && statements.size >= formLimit ? formed(0) : known
  const made = sql ?? sqlOf(forms)
  statements.set(name, made)
  return { name, forms, sql: made }
}

/** The statement of a group; `conversations` in the order of their ids, `tokens` beside them, null where any will do. */
export const plainStatement = (
  group: ReadonlyArray<PlainRows>,
  conversations: ReadonlyArray<number>,
  tokens: ReadonlyArray<number | null>,
): PlainStatement => {
  const rowsOf = new Map<Kind, ReadonlyArray<ReadonlyArray<Value>>>()
  let total = 0
  for (const kind of kinds) {
    const rows = group.flatMap((commit, index) => commit[kind].map((row) => [index + 1, ...row]))
    if (rows.length > 0) rowsOf.set(kind, rows)
    total += rows.length
  }
  const { forms, name, sql } = statementOf([...rowsOf].map(([kind, rows]) => ({ kind, count: rows.length })))
  const values = forms.flatMap(({ kind, rows: form }): ReadonlyArray<unknown> => {
    const rows = rowsOf.get(kind) ?? []
    return form === "arrays" ? (rows[0] ?? []).map((_, column) => rows.map((row) => row[column])) : rows.flat()
  })
  return { name, sql, values: [group.length, conversations, tokens, total, ...values] }
}

/** The server wrote nothing and says something about the group, not about the connection: the function is to say what. */
export const isUnfit = (cause: unknown): boolean => /^(?:21|22|23)/.test(sqlState(cause))
