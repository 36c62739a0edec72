/**
 * Lives of one database: runs the child, and holds the database between two lives to what was printed before the kill.
 */
import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { type Effects, readEffects, readWorld, type World } from "../../stress/database.ts"
import type { ChildLine, CrashCase, CrashPoint } from "./case.ts"

export interface Life {
  readonly lines: ReadonlyArray<ChildLine>
  readonly signal: NodeJS.Signals | null
  readonly code: number | null
  readonly stderr: string
}

const run = (program: string, given: CrashCase): Promise<Life> =>
  new Promise((resolve, reject) => {
    const env = { PATH: process.env.PATH ?? "", SUPER_PI_CRASH_CASE: JSON.stringify(given) }
    const child = spawn(process.execPath, [program], { env, stdio: ["ignore", "pipe", "pipe"] })
    let stdout = ""
    let stderr = ""
    child.stdout.on("data", (chunk) => {
      stdout += chunk
    })
    child.stderr.on("data", (chunk) => {
      stderr += chunk
    })
    child.on("error", reject)
    child.on("close", (code, signal) => {
      const lines = stdout.split("\n").filter((line) => line !== "")
      resolve({ lines: lines.map((line) => JSON.parse(line)), code, signal, stderr })
    })
  })

/** Everything that was acknowledged so far and is not in the database. */
const missing = (lines: ReadonlyArray<ChildLine>, world: World): ReadonlyArray<string> => {
  const has = (rows: ReadonlyArray<{ readonly id: number }>) => {
    const ids = new Set(rows.map(({ id }) => id))
    return (what: string, list: ReadonlyArray<number>) => list.filter((id) => !ids.has(id)).map((id) => `${what} ${id}`)
  }
  const [entries, tasks, submissions] = [has(world.entries), has(world.tasks), has(world.submissions)]
  return lines.flatMap((line) => {
    switch (line.type) {
      case "opened":
        return world.conversations.includes(line.conversation) ? [] : [`conversation ${line.conversation}`]
      case "acknowledged":
        return submissions("submission", [line.submission])
      case "committed":
        return [
          ...(line.seq > world.seq ? [`commit ${line.seq}`] : []),
          ...entries("entry", line.entries),
          ...tasks("task", line.tasks),
          ...submissions("submission", line.submissions),
        ]
      default:
        return []
    }
  })
}

/** What is different from the plain turn; see {@link CrashCase}. */
export type Variant = Partial<Pick<CrashCase, "followUp" | "compaction">>

export class Lives {
  readonly #directory = mkdtempSync(path.join(tmpdir(), "super-pi-crash-"))
  readonly #program: string
  readonly #variant: Variant
  readonly #lines: Array<ChildLine> = []
  readonly db = path.join(this.#directory, "crash.db")
  readonly #effects = path.join(this.#directory, "effects.log")

  constructor(program: string, variant: Variant = {}) {
    this.#program = program
    this.#variant = variant
    mkdirSync(path.join(this.#directory, "workspace"))
  }

  /** Runs one life; `lost` is what it and earlier ones acknowledged and the database does not have. */
  async live(crash: CrashPoint | null): Promise<Life & { readonly lost: ReadonlyArray<string> }> {
    const workspace = path.join(this.#directory, "workspace")
    const { compaction = false, followUp = false } = this.#variant
    const given = { db: this.db, effects: this.#effects, workspace, crash, followUp, compaction }
    const life = await run(this.#program, given)
    this.#lines.push(...life.lines)
    return { ...life, lost: this.#lines.length === 0 ? [] : missing(this.#lines, this.world()) }
  }

  world(): World {
    return readWorld(this.db)
  }

  effects(): Effects {
    return readEffects(this.#effects)
  }

  /** How often a line was written. */
  written(line: string): number {
    return readFileSync(this.#effects, "utf8")
      .split("\n")
      .filter((one) => one === line).length
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true, force: true })
  }
}
