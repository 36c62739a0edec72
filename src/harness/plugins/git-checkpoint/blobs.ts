/**
 * Contents kept by their SHA-256, as files that only their owner can read: `<store>/blobs/ab/cdef…`. A file of that name holds exactly that
 * content: it is written beside and renamed. The clock of a content is its modification time, renewed whenever a checkpoint needs it;
 * what nobody needed for {@link keepDays} days is deleted.
 */
import { createHash, randomUUID } from "node:crypto"
import { createReadStream, createWriteStream } from "node:fs"
import { copyFile, mkdir, open, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Transform } from "node:stream"
import { pipeline } from "node:stream/promises"
import { errorCode } from "../../../domain/error-code.ts"

/** Days that a content stays after a checkpoint needed it last. */
const keepDays = 30

/** Files up to this size are read as a whole. */
const wholeBytes = 1024 * 1024

export class Blobs {
  readonly directory: string
  private readonly made = new Set<string>()

  constructor(directory: string) {
    this.directory = directory
  }

  path(hash: string): string {
    return join(this.directory, "blobs", hash.slice(0, 2), hash.slice(2))
  }

  /** Keeps bytes; gives their hash. */
  async put(bytes: Uint8Array): Promise<string> {
    const hash = createHash("sha256").update(bytes).digest("hex")
    if (await this.renew(hash)) return hash
    const temporary = await this.temporary()
    try {
      await writeFile(temporary, bytes, { mode: 0o600 })
      await this.settle(temporary, hash)
    } catch (cause) {
      await rm(temporary, { force: true })
      throw cause
    }
    return hash
  }

  /** Keeps the content of a file; gives its hash and size as they were read. */
  async putFile(path: string): Promise<{ readonly hash: string; readonly size: number }> {
    const { size } = await stat(path)
    if (size <= wholeBytes) {
      const bytes = await readFile(path)
      return { hash: await this.put(bytes), size: bytes.length }
    }
    const temporary = await this.temporary()
    try {
      const digest = createHash("sha256")
      let read = 0
      const measure = new Transform({
        transform(chunk: Buffer, _encoding, done) {
          digest.update(chunk)
          read += chunk.length
          done(null, chunk)
        },
      })
      await pipeline(createReadStream(path), measure, createWriteStream(temporary, { mode: 0o600 }))
      const hash = digest.digest("hex")
      if (await this.renew(hash)) await rm(temporary, { force: true })
      else await this.settle(temporary, hash)
      return { hash, size: read }
    } catch (cause) {
      await rm(temporary, { force: true })
      throw cause
    }
  }

  read(hash: string): Promise<Buffer> {
    return readFile(this.path(hash))
  }

  /** Copies a content to a path that does not exist. */
  async copyTo(hash: string, path: string): Promise<void> {
    await copyFile(this.path(hash), path)
  }

  /** Whether it is there; its clock begins anew. */
  async renew(hash: string): Promise<boolean> {
    const now = new Date()
    try {
      await utimes(this.path(hash), now, now)
      return true
    } catch (cause) {
      if (errorCode(cause) === "ENOENT" || errorCode(cause) === "ENOTDIR") return false
      throw cause
    }
  }

  /** Deletes what nobody needed for {@link keepDays}, once a day at most. */
  async sweep(now: number): Promise<number> {
    const marker = join(this.directory, "swept")
    const last = await stat(marker).then(
      ({ mtimeMs }) => mtimeMs,
      () => 0,
    )
    if (now - last < 24 * 3600_000) return 0
    await this.make(this.directory)
    await (await open(marker, "w", 0o600)).close()
    const stamp = new Date(now)
    await utimes(marker, stamp, stamp)
    let removed = 0
    const root = join(this.directory, "blobs")
    for (const folder of await readdir(root).catch(() => [])) {
      for (const name of await readdir(join(root, folder)).catch(() => [])) {
        const path = join(root, folder, name)
        const found = await stat(path).catch(() => null)
        if (found === null || now - found.mtimeMs < keepDays * 24 * 3600_000) continue
        await rm(path, { force: true })
        removed++
      }
    }
    return removed
  }

  private async temporary(): Promise<string> {
    const directory = join(this.directory, "blobs")
    await this.make(directory)
    return join(directory, `.${randomUUID()}.tmp`)
  }

  private async settle(temporary: string, hash: string): Promise<void> {
    const path = this.path(hash)
    await this.make(dirname(path))
    await rename(temporary, path)
  }

  private async make(directory: string): Promise<void> {
    if (this.made.has(directory)) return
    await mkdir(directory, { recursive: true, mode: 0o700 })
    this.made.add(directory)
  }
}
