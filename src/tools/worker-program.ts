/**
 * Where the program of a sandbox thread is. A build has it as a file of its own beside the programs; a run from the sources (the tests)
 * bundles it once per process.
 */
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"

/** A file to start, or code to start. */
export type WorkerProgram = { readonly file: URL } | { readonly code: string }

const fromSource = async (source: URL): Promise<WorkerProgram> => {
  // The name is not a literal, so that no bundler takes the development dependency along.
  const bundler: string = "esbuild"
  const esbuild = (await import(bundler)) as typeof import("esbuild")
  const built = await esbuild.build({
    entryPoints: [fileURLToPath(source)],
    bundle: true,
    write: false,
    platform: "node",
    target: "node20",
    format: "cjs",
    logLevel: "silent",
  })
  const [output] = built.outputFiles
  if (output === undefined) throw new Error("the sandbox worker's bundle is empty")
  return { code: output.text }
}

const locate = async (): Promise<WorkerProgram> => {
  // Beside the entry, or one directory up from a chunk.
  for (const place of ["./sandbox-worker.js", "../sandbox-worker.js"]) {
    const file = new URL(place, import.meta.url)
    if (existsSync(file)) return { file }
  }
  const source = new URL("./sandbox-worker.ts", import.meta.url)
  if (existsSync(source)) return fromSource(source)
  throw new Error(
    `sandbox-worker.js: expected beside ${fileURLToPath(import.meta.url)}, found nothing; build the project again`,
  )
}

let located: Promise<WorkerProgram> | undefined

/** The program, located once. A failure is tried again the next time. */
export const workerProgram = (): Promise<WorkerProgram> => {
  located ??= locate().catch((error: unknown) => {
    located = undefined
    throw error
  })
  return located
}
