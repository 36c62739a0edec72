/**
 * Replaces a file as a whole: readers see the old bytes or the new ones, also after a crash. A temporary file in the same directory is
 * written, flushed and renamed over the old one, whose mode and owner it takes.
 *
 * On Linux everything goes through the directory's descriptor, which was checked to be where it should be, so that a directory that is
 * swapped for a link meanwhile does not lead the write elsewhere. `mkdir` of missing directories has no such check.
 */
import { randomUUID } from "node:crypto"
import { constants, existsSync, type Stats } from "node:fs"
import { mkdir, open, rename, rm } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { openInside } from "./workspace.ts"

/** Makes a directory and its missing parents, one by one: Node's recursive `mkdir` never returns below `/proc` and its like. */
const makeDirectories = async (directory: string): Promise<void> => {
  if (existsSync(directory)) return
  await makeDirectories(dirname(directory))
  await mkdir(directory).catch((cause: unknown) => {
    if (!existsSync(directory)) throw cause
  })
}

/**
 * Writes `bytes` to the canonical path; `before` is the file that it replaces, or null for a new one. `sure` is asked when all but the
 * replacement is done: nothing changes where it rejects.
 */
export const writeAtomically = async (
  path: string,
  bytes: Uint8Array,
  before: Stats | null,
  sure: () => Promise<void>,
): Promise<void> => {
  const directory = dirname(path)
  if (before === null) await makeDirectories(directory)
  const folder = await openInside(directory, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    const place = process.platform === "linux" ? `/proc/self/fd/${folder.fd}` : directory
    const temporary = join(place, `.super-pi-${randomUUID()}.tmp`)
    try {
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
      const handle = await open(temporary, flags, before === null ? 0o666 : before.mode & 0o777)
      try {
        await handle.writeFile(bytes)
        if (before !== null) await keepOwnerAndMode(handle, before)
        await handle.datasync()
      } finally {
        await handle.close()
      }
      await sure()
      await rename(temporary, join(place, basename(path)))
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => undefined)
      throw error
    }
  } finally {
    await folder.close()
  }
}

const keepOwnerAndMode = async (handle: Awaited<ReturnType<typeof open>>, before: Stats): Promise<void> => {
  const now = await handle.stat()
  if (now.uid !== before.uid || now.gid !== before.gid) {
    // Only an administrator may give files away; the content matters more than the owner.
    await handle.chown(before.uid, before.gid).catch(() => undefined)
  }
  // After the change of owner, which clears the set-id bits; and past the process's mask.
  await handle.chmod(before.mode & 0o7777)
}
