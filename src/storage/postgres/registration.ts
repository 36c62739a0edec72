/**
 * A node's row in `nodes`: made when its writer opens, raised with each of its connections, ended when it closes. Rows of nodes that ended long ago
 * are removed: an epoch without a row is over.
 */
import { Fenced } from "../errors.ts"
import type { Link } from "./link.ts"
import { locationOf, type PostgresSettings } from "./settings.ts"

/** What a node says of itself. */
export interface NodeIdentity {
  /** What people call it. */
  readonly name: string
  /** Where other nodes reach it, `host:port`; "" where none does. */
  readonly address: string
  readonly version: string
}

/** Milliseconds for which the row of an ended node is kept. */
const keptMs = 30 * 24 * 3_600_000

/** `alone`: fences every other node off first, for a process that owns the whole database. Gives the epoch. */
export const register = async (link: Link, node: NodeIdentity, alone: boolean): Promise<number> => {
  const now = Date.now()
  await link.query("DELETE FROM nodes WHERE coalesce(ended_at, fenced_at) < $1", [now - keptMs])
  await link.query("DELETE FROM adoptions a WHERE NOT EXISTS (SELECT 1 FROM nodes n WHERE n.epoch = a.epoch)", [])
  if (alone) await link.query(fenceOthers, [now])
  const [row] = await link.query(
    "INSERT INTO nodes (epoch, name, address, version, started_at, link) VALUES (nextval('fences'), $1, $2, $3, $4, 1) RETURNING epoch",
    [node.name, node.address, node.version, now],
  )
  link.number = 1
  return Number(row?.epoch)
}

const fenceOthers =
  "UPDATE nodes SET fenced_at = $1, fenced_by = nextval('fences') WHERE ended_at IS NULL AND fenced_at IS NULL"

/** Fences one node off: waits for what it is committing, and nothing of it commits later. */
export const fenceOffStatement = `${fenceOthers} AND epoch = $2`

/** What the node's last group came to, as its row says; and whether somebody fenced it off. */
export interface Resumption {
  readonly group: number
  readonly answers: string
  readonly fenced: Fenced | null
}

/** Makes `link` the node's newest connection. Waits for what an older one is committing, and ends the chance of everything else on it. */
export const resume = async (link: Link, settings: PostgresSettings, epoch: number): Promise<Resumption> => {
  const [row] = await link.query(
    "UPDATE nodes SET link = link + 1 WHERE epoch = $1 RETURNING link, last_group, answers, fenced_at, ended_at, fenced_by",
    [epoch],
  )
  const fenced = (current: number) => new Fenced({ what: locationOf(settings), held: epoch, current })
  if (row === undefined) {
    const [last] = await link.query("SELECT last_value FROM fences", [])
    return { group: 0, answers: "[]", fenced: fenced(Number(last?.last_value)) }
  }
  link.number = Number(row.link)
  const over = row.fenced_at !== null || row.ended_at !== null
  return {
    group: Number(row.last_group),
    answers: String(row.answers),
    fenced: over ? fenced(Number(row.fenced_by ?? epoch)) : null,
  }
}

/** Says that the node writes no more. */
export const end = (link: Link, epoch: number): Promise<unknown> =>
  link.query("UPDATE nodes SET ended_at = $2 WHERE epoch = $1 AND link = $3 AND ended_at IS NULL", [
    epoch,
    Date.now(),
    link.number,
  ])
