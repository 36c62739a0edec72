/**
 * Whole files in memory, up to a limit.
 */
import { constants } from "node:fs"
import { openInside } from "./workspace.ts"

/** The bytes of a canonical path; fails when there are more than `limit`, also when the file grows meanwhile. */
export const readWhole = async (canonical: string, limit: number): Promise<Buffer> => {
  const handle = await openInside(canonical, constants.O_RDONLY)
  try {
    const { size } = await handle.stat()
    const buffer = Buffer.allocUnsafe(Math.min(size, limit) + 1)
    let length = 0
    while (length < buffer.length) {
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length)
      if (bytesRead === 0) return buffer.subarray(0, length)
      length += bytesRead
    }
    throw new Error(`expected at most ${Math.min(size, limit)} bytes, got more; try again`)
  } finally {
    await handle.close()
  }
}
