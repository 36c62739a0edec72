/**
 * Saved command output: files of our own outside every workspace, readable by their owner only. Their names cannot be guessed, and the
 * reading tools may read them although they are outside; they are removed a week later.
 */
import { randomUUID } from "node:crypto"
import { constants, realpathSync } from "node:fs"
import { type FileHandle, lstat, mkdir, mkdtemp, open, readdir, realpath, rm } from "node:fs/promises"
import { tmpdir, userInfo } from "node:os"
import { dirname, join } from "node:path"

const lifetimeMs = 7 * 24 * 3_600_000

const namePattern = /^output-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\.log$/

let directory: Promise<string> | undefined
let known: string | undefined

const sweep = async (path: string): Promise<void> => {
  for (const name of await readdir(path)) {
    if (!namePattern.test(name)) continue
    const file = join(path, name)
    const stat = await lstat(file).catch(() => undefined)
    if (stat !== undefined && Date.now() - stat.mtimeMs > lifetimeMs) await rm(file, { force: true })
  }
}

/** Our directory's name; one per user, so that another user's node has its own. */
const sharedName = (): string => `super-pi-output-${userInfo().uid}`

const prepare = async (): Promise<string> => {
  const base = await realpath(tmpdir())
  const { uid } = userInfo()
  const path = join(base, sharedName())
  await mkdir(path, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error
  })
  const stat = await lstat(path)
  // Someone else's directory under our name: use one that nobody could prepare.
  const ours = stat.isDirectory() && (uid < 0 || (stat.uid === uid && (stat.mode & 0o022) === 0))
  known = ours ? path : await mkdtemp(join(base, "super-pi-output-"))
  await sweep(known).catch(() => undefined)
  return known
}

const openNew = async (folder: Promise<string>) => {
  const path = join(await folder, `output-${randomUUID()}.log`)
  const handle = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
  return { path, handle }
}

/** Creates a file for the output of one command. */
export const createSpill = async (): Promise<{ readonly path: string; readonly handle: FileHandle }> => {
  directory ??= prepare()
  try {
    return await openNew(directory)
  } catch {
    // Never made, or removed since by whoever cleans up there.
    directory = prepare()
    return openNew(directory)
  }
}

/** Whether a canonical path is saved output of this user's nodes. */
export const isSpill = (canonical: string): boolean => {
  const folder = dirname(canonical)
  if (!namePattern.test(canonical.slice(folder.length + 1))) return false
  return folder === known || folder === join(realpathSync(tmpdir()), sharedName())
}
