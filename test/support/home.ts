/**
 * Settings and data of the suite: nodes that a test starts without saying where find them in a directory of this run, and never read or write
 * those of the person who runs it. A PostgreSQL server that a test started for all of them (`postgres.ts`) ends with the run.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** The process that keeps the server of this run; null: no test needed one. */
const keeper = (home: string): number | null => {
  try {
    return JSON.parse(readFileSync(join(home, "postgres", "state.json"), "utf8")).keeper ?? null
  } catch {
    return null
  }
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

export default (): (() => Promise<void>) => {
  const home = mkdtempSync(join(tmpdir(), "super-pi-suite-"))
  process.env.SUPER_PI_CONFIG_DIR = join(home, "config")
  process.env.SUPER_PI_DATA_DIR = join(home, "data")
  process.env.SUPER_PI_SUITE_DIR = home
  process.env.SUPER_PI_SUITE_PID = String(process.pid)
  return async () => {
    const pid = keeper(home)
    if (pid !== null && isAlive(pid)) {
      process.kill(pid, "SIGTERM")
      while (isAlive(pid)) await new Promise((resolve) => setTimeout(resolve, 20))
    }
    rmSync(home, { recursive: true, force: true })
  }
}
