/**
 * A command whose beginning and end a test sees, wherever its process is: it holds a pipe of the workspace open.
 */
import { execFileSync } from "node:child_process"
import { createReadStream } from "node:fs"
import { join } from "node:path"

export interface WatchedCommand {
  /** For bash. It goes on until the file `go` is in the workspace, and says `finished` then. */
  readonly command: string
  /** It runs. */
  readonly begun: Promise<void>
  /** It and everything that it started is gone. */
  readonly gone: Promise<void>
}

export const watchedCommand = (directory: string, name: string): WatchedCommand => {
  execFileSync("mkfifo", [join(directory, name)])
  const pipe = createReadStream(join(directory, name))
  return {
    command: `exec 3> ${name}; echo up >&3; echo run >> ${name}.runs; while [ ! -e ${name}.go ]; do sleep 0.1; done; echo finished`,
    begun: new Promise((done, fail) => pipe.once("data", () => done()).once("error", fail)),
    gone: new Promise((done) => pipe.once("end", () => done())),
  }
}
