/**
 * Settings and data of the suite: nodes that a test starts without saying where find them in a directory of this run, and never read or write
 * those of the person who runs it.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export default (): (() => void) => {
  const home = mkdtempSync(join(tmpdir(), "super-pi-suite-"))
  process.env.SUPER_PI_CONFIG_DIR = join(home, "config")
  process.env.SUPER_PI_DATA_DIR = join(home, "data")
  return () => rmSync(home, { recursive: true, force: true })
}
