/**
 * A server for the examples: `super-pi rpc 0` as a process of its own, with a model that needs no key and a database that is thrown away.
 */
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export interface Server {
  readonly port: number
  /** Stops it and removes its database. */
  readonly stop: () => Promise<void>
}

/** `launcher` is the path of `bin/super-pi`. */
export const startServer = (launcher: string): Promise<Server> =>
  new Promise((resolve, reject) => {
    const directory = mkdtempSync(join(tmpdir(), "super-pi-example-"))
    const args = [launcher, "rpc", "0", "--db", join(directory, "example.db"), "--model", "mock/echo"]
    const env = { ...process.env, SUPER_PI_CONFIG_DIR: directory, SUPER_PI_DATA_DIR: directory }
    const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"], env })
    const ended = new Promise<void>((done) => child.once("exit", () => done()))
    let said = ""
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      said += chunk
      const port = /127\.0\.0\.1:(\d+)/.exec(said)?.[1]
      if (port === undefined) return
      const stop = async () => {
        child.kill("SIGTERM")
        await ended
        rmSync(directory, { recursive: true, force: true })
      }
      resolve({ port: Number(port), stop })
    })
    child.once("error", reject)
    child.once("exit", () => reject(new Error(`the server ended: ${said}`)))
  })
