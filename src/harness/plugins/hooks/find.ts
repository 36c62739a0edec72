/**
 * Finds hooks files: those of the person, which run, and those of the project, which run once a person has approved them.
 */
import { join } from "node:path"
import { Bounded } from "../../bounded.ts"
import { projectOf, type Roots } from "../../discovery.ts"
import type { DiscoveryFiles } from "../../discovery-files.ts"
import type { Report } from "../../discovery-report.ts"
import { type CommandHook, type HooksFile, readHooks } from "./config.ts"
import { hashOf, readTrust, trustFile } from "./trust.ts"

export interface FoundFile {
  readonly path: string
  readonly hash: string
  /** Whether it belongs to the project: somebody else may have written it. */
  readonly ofProject: boolean
  readonly content: HooksFile
  readonly version: string
}

export interface FoundFiles {
  readonly files: ReadonlyArray<FoundFile>
  readonly reports: ReadonlyArray<Report>
}

/** Places of a hooks file in a directory of a project. */
const inProject = [".agents/hooks.json", ".super-pi/hooks.json"]

const parse = (text: string, path: string): HooksFile => {
  if (text.trim() === "") return { hooks: [], faults: [] }
  try {
    return readHooks(JSON.parse(text), path)
  } catch (error) {
    return { hooks: [], faults: [`not JSON (${error instanceof Error ? error.message : String(error)})`] }
  }
}

export class HooksFiles {
  readonly #files: DiscoveryFiles
  readonly #parsed = new Bounded<string, FoundFile>(500)

  constructor(files: DiscoveryFiles) {
    this.#files = files
  }

  /** Every hooks file, whether it may run or not: the person's, then the project's, nearest first. */
  async find(roots: Roots): Promise<FoundFiles> {
    const inside = projectOf(roots)
    const candidates = [
      ...roots.global.map((root) => ({ path: join(root, "hooks.json"), boundary: null, ofProject: false })),
      ...roots.project.flatMap((root) =>
        inProject.map((place) => ({ path: join(root, place), boundary: inside, ofProject: true })),
      ),
    ]
    const reports: Array<Report> = []
    const warn = (path: string, what: string, version: string) =>
      reports.push({ level: "warning", message: `hooks: ${path}: ${what}`, version })
    const read = await Promise.all(
      candidates.map(async ({ boundary, ofProject, path }) => {
        const found = await this.#files.read(path, boundary)
        if (found.type === "fault") warn(path, `${found.reason}; the file is skipped`, found.version)
        if (found.type !== "text") return null
        const before = this.#parsed.get(path)
        if (before?.version === found.version) return before
        const { text, version } = found
        const file: FoundFile = { path, hash: hashOf(text), ofProject, content: parse(text, path), version }
        this.#parsed.set(path, file)
        return file
      }),
    )
    const files = read.filter((file) => file !== null)
    for (const { content, path, version } of files) {
      for (const fault of content.faults) warn(path, `${fault}; it is skipped`, version)
    }
    return { files, reports }
  }

  /** The hooks that may run. `trusted` are hashes that a harness trusts by itself. */
  async runnable(
    roots: Roots,
    dataDir: string,
    trusted: ReadonlyArray<string>,
  ): Promise<{ readonly hooks: ReadonlyArray<CommandHook>; readonly reports: ReadonlyArray<Report> }> {
    const { files, reports } = await this.find(roots)
    const store = files.some((file) => file.ofProject) ? await this.#files.read(trustFile(dataDir), null) : null
    const approved = store?.type === "text" ? readTrust(store.text) : new Map<string, string>()
    const hooks: Array<CommandHook> = []
    const untrusted: Array<Report> = []
    for (const { content, hash, ofProject, path, version } of files) {
      if (!ofProject || trusted.includes(hash) || approved.get(path) === hash) hooks.push(...content.hooks)
      else if (content.hooks.length > 0) {
        const changed = approved.has(path)
          ? "it has changed since it was approved"
          : "it belongs to the project and was not approved"
        const message = `hooks: ${path}: ${changed}; its hooks do not run. See them and approve them with: super-pi trust`
        untrusted.push({ level: "warning", message, version })
      }
    }
    return { hooks, reports: [...reports, ...untrusted] }
  }
}
