/**
 * Makes paths what they were: first everything that shall go or is of another kind goes, deepest first; then directories come, outermost
 * first; then files and links; then the modes of directories. Each file is written beside and renamed, so that nobody sees half of it.
 */
import { randomUUID } from "node:crypto"
import { chmod, mkdir, rename, rm, rmdir, symlink, unlink } from "node:fs/promises"
import { dirname, join } from "node:path"
import { type Image, sameImage, type UndoStep } from "../../../domain/checkpoint.ts"
import { errorCode } from "../../../domain/error-code.ts"
import { reasonOf } from "../../../tools/workspace.ts"
import type { Blobs } from "./blobs.ts"
import { imageAt } from "./image.ts"

/** What was not done, and why. */
export interface RestoreFault {
  readonly path: string
  readonly reason: string
  /** A directory that stays because others use it. */
  readonly minor: boolean
}

/** Whether `next` can only stand where `now` is gone. A file takes the place of a file or a link by itself. */
const inTheWay = (now: Image, next: Image): boolean => {
  if (now.type === "absent") return false
  if (next.type === "absent") return true
  return (now.type === "directory") !== (next.type === "directory")
}

const remove = async ({ now, path, to }: UndoStep): Promise<RestoreFault | null> => {
  try {
    if (now.type === "directory") await rmdir(path)
    else await unlink(path)
    return null
  } catch (cause) {
    if (errorCode(cause) === "ENOENT") return null
    const full = errorCode(cause) === "ENOTEMPTY" || errorCode(cause) === "EEXIST"
    // What others have put there stays, and the directory with it.
    if (full && to.type === "absent")
      return { path, reason: "the directory stays: something else is in it", minor: true }
    return { path, reason: reasonOf(cause), minor: false }
  }
}

const put = async ({ path, to }: UndoStep, blobs: Blobs): Promise<void> => {
  const temporary = join(dirname(path), `.super-pi-${randomUUID()}.tmp`)
  try {
    if (to.type === "symlink") await symlink(to.target, temporary)
    else if (to.type === "file") {
      await blobs.copyTo(to.hash, temporary)
      await chmod(temporary, to.mode)
    }
    await rename(temporary, path)
  } catch (cause) {
    await rm(temporary, { force: true })
    throw cause
  }
}

const byDepth = (a: UndoStep, b: UndoStep): number => a.path.split("/").length - b.path.split("/").length

/** Performs the steps, each only while its path is still as it was when the undo was planned. Gives what could not be done. */
export const restore = async (steps: ReadonlyArray<UndoStep>, blobs: Blobs): Promise<ReadonlyArray<RestoreFault>> => {
  const faults: Array<RestoreFault> = []
  const ready: Array<UndoStep> = []
  for (const step of steps) {
    const now = await imageAt(step.path, { blobs: null })
    if (sameImage(now, step.now)) ready.push(step)
    else if (!sameImage(now, step.to))
      faults.push({ path: step.path, reason: "it changed during the undo", minor: false })
  }
  const outermost = ready.sort(byDepth)
  for (const step of [...outermost].reverse()) {
    if (!inTheWay(step.now, step.to)) continue
    const fault = await remove(step)
    if (fault !== null) faults.push(fault)
  }
  const attempt = async (step: UndoStep, run: () => Promise<unknown>): Promise<void> => {
    await run().catch((cause: unknown) => faults.push({ path: step.path, reason: reasonOf(cause), minor: false }))
  }
  for (const step of outermost) {
    if (step.to.type !== "directory" || step.now.type === "directory") continue
    await attempt(step, () =>
      mkdir(step.path).catch((cause: unknown) => {
        if (errorCode(cause) !== "EEXIST") throw cause
      }),
    )
  }
  for (const step of outermost) {
    if (step.to.type === "file" || step.to.type === "symlink") await attempt(step, () => put(step, blobs))
  }
  for (const step of [...outermost].reverse()) {
    const { path, to } = step
    if (to.type === "directory") await attempt(step, () => chmod(path, to.mode))
  }
  return faults
}
