/**
 * `npm run bench`: every bench in a process of its own, one table of all at the end. With a name, that one; further words go to it.
 * Ends with 1 when a target was missed or a bench failed.
 */
import { fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import { type Row, table } from "./row.ts"

/** By name; loaded in the process that runs it. */
const benches: Readonly<
  Record<string, () => Promise<{ readonly rows: (only?: string) => Promise<ReadonlyArray<Row>> }>>
> = {
  actors: () => import("./actors/index.ts"),
  cluster: () => import("./cluster/index.ts"),
  gateway: () => import("./gateway/index.ts"),
  memory: () => import("./memory/index.ts"),
  start: () => import("./start/index.ts"),
  store: () => import("./store/index.ts"),
  turn: () => import("./turn/index.ts"),
}

/** Rows of a bench that runs in a process of its own; null when it failed. */
const inOwnProcess = (name: string, words: ReadonlyArray<string>): Promise<ReadonlyArray<Row> | null> =>
  new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(import.meta.url), ["--one", name, ...words], { execArgv: ["--expose-gc"] })
    let rows: ReadonlyArray<Row> | null = null
    child.on("message", (message) => {
      // What the branch below sends.
      rows = message as ReadonlyArray<Row>
    })
    child.on("error", reject)
    child.on("close", (code) => resolve(code === 0 ? rows : null))
  })

const all = async (only: string | undefined, words: ReadonlyArray<string>): Promise<number> => {
  if (only !== undefined && !(only in benches)) {
    console.error(`bench: expected one of ${Object.keys(benches).join(", ")}, got ${JSON.stringify(only)}`)
    return 2
  }
  const rows: Array<Row> = []
  let failed = false
  for (const name of only === undefined ? Object.keys(benches) : [only]) {
    console.error(`bench: ${name} …`)
    const measured = await inOwnProcess(name, words)
    if (measured === null) console.error(`bench: ${name} failed`)
    failed ||= measured === null
    rows.push(...(measured ?? []).map((row) => ({ ...row, name: `${name}: ${row.name}` })))
  }
  console.log(table("bench", rows))
  return failed || rows.some(({ met }) => !met) ? 1 : 0
}

const [first, ...words] = process.argv.slice(2)
const [name = ""] = words
const one = first === "--one" ? benches[name] : undefined
if (one === undefined) process.exitCode = await all(first, words)
else {
  const { rows } = await one()
  process.send?.(await rows(words[1]))
  process.disconnect()
}
