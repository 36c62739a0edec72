/**
 * Temporary directories and child processes for the storage tests.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { createInterface } from "node:readline"
import { Effect, type Scope } from "effect"
import { build } from "esbuild"

const root = resolve(import.meta.dirname, "../..")

/** A fresh directory that is removed with the scope. */
export const temporaryDirectory: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "super-pi-storage-"))),
  (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true })),
)

/** Bundles a program whose source imports from `src/`, so that a child process can run it. Returns its path. */
export const bundle = async (directory: string, name: string, source: string): Promise<string> => {
  mkdirSync(join(directory, "program"), { recursive: true })
  const outfile = join(directory, "program", `${name}.mjs`)
  await build({
    stdin: { contents: source, resolveDir: root, loader: "ts", sourcefile: `${name}.ts` },
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    // a native module cannot be bundled; the rest is, so that children start fast
    external: ["better-sqlite3"],
    logLevel: "error",
  })
  const modules = join(directory, "program", "node_modules")
  try {
    symlinkSync(join(root, "node_modules"), modules)
  } catch (cause) {
    if (!(cause instanceof Error && "code" in cause && cause.code === "EEXIST")) throw cause
  }
  return outfile
}

export interface Child {
  readonly process: ChildProcess
  /** The next line of its output; null once it has ended. */
  readonly line: () => Promise<string | null>
  readonly exited: Promise<void>
  readonly kill: (signal: NodeJS.Signals) => void
}

/** Runs a bundled program until the scope closes. */
export const run = (program: string, args: ReadonlyArray<string>): Effect.Effect<Child, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync((): Child => {
      const child = spawn(process.execPath, [program, ...args], { stdio: ["pipe", "pipe", "inherit"] })
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
      return {
        process: child,
        line: async () => {
          const next = await lines.next()
          return next.done === true ? null : next.value
        },
        exited: new Promise((done) => child.once("close", () => done())),
        kill: (signal) => void child.kill(signal),
      }
    }),
    (child) =>
      Effect.promise(() => {
        child.kill("SIGKILL")
        return child.exited
      }),
  )
