/**
 * Finds custom commands: Markdown files of the project, nearest first, then the person's. A file in a directory is `directory:name`.
 */
import { join } from "node:path"
import { projectOf, type Roots } from "../../discovery.ts"
import { type DiscoveryFiles, listDirectory } from "../../discovery-files.ts"
import type { Report } from "../../discovery-report.ts"
import { frontMatter } from "../../front-matter.ts"

export interface CustomCommand {
  readonly name: string
  readonly path: string
  readonly inside: string | null
}

export interface FoundCommands {
  /** By name in lower case, nearest first. */
  readonly commands: ReadonlyMap<string, CustomCommand>
  readonly reports: ReadonlyArray<Report>
}

const maxDepth = 3
const namePattern = /^[A-Za-z][\w-]*$/

/** `names` are taken: a file cannot have one of them. */
export const findCommands = async (roots: Roots, names: ReadonlyArray<string>): Promise<FoundCommands> => {
  const inside = projectOf(roots)
  const commands = new Map<string, CustomCommand>()
  const reports: Array<Report> = []
  const warn = (path: string, what: string) =>
    void reports.push({ level: "warning", message: `commands: ${path}: ${what}`, version: "" })
  const visit = async (directory: string, prefix: string, boundary: string | null, depth: number): Promise<void> => {
    const { directories, fault, files } = await listDirectory(directory)
    if (fault !== null) warn(directory, fault)
    for (const file of files) {
      if (!file.endsWith(".md")) continue
      const own = file.slice(0, -3)
      const path = join(directory, file)
      if (!namePattern.test(own)) {
        warn(path, `name: expected letters, digits, _ and -, got ${JSON.stringify(own)}; the command is skipped`)
        continue
      }
      const name = `${prefix}${own}`.toLowerCase()
      const taken = names.includes(name) ? "a command that comes with Super-Pi" : commands.get(name)?.path
      if (taken === undefined) commands.set(name, { name, path, inside: boundary })
      else warn(path, `/${name} is ${taken}; this one is not used`)
    }
    if (depth >= maxDepth) return
    for (const name of directories) {
      if (namePattern.test(name)) await visit(join(directory, name), `${prefix}${name}:`, boundary, depth + 1)
    }
  }
  for (const root of roots.project) await visit(join(root, ".agents", "commands"), "", inside, 1)
  for (const root of roots.global) await visit(join(root, "commands"), "", null, 1)
  return { commands, reports }
}

export type ReadCommand =
  | { readonly type: "command"; readonly template: string; readonly model: string | null }
  | { readonly type: "fault"; readonly report: Report }

/** What a command's file says. Its front matter may name a `model`; other fields are for people. */
export const readCommand = async (files: DiscoveryFiles, { inside, path }: CustomCommand): Promise<ReadCommand> => {
  const broken = (reason: string, version: string): ReadCommand => {
    const message = `commands: ${path}: ${reason}; the input stays as it is`
    return { type: "fault", report: { level: "warning", message, version } }
  }
  const found = await files.read(path, inside)
  if (found.type === "missing") return broken("it is gone", "")
  if (found.type === "fault") return broken(found.reason, found.version)
  const front = await frontMatter(found.text)
  if (front.type === "fault") return broken(front.reason, found.version)
  const { model } = front.fields
  if (model !== undefined && (typeof model !== "string" || model.trim() === "")) {
    return broken(`model: expected the name of a model, got ${JSON.stringify(model)}`, found.version)
  }
  const template = front.body.trim()
  return template === ""
    ? broken("expected a text, got nothing", found.version)
    : { type: "command", template, model: model ?? null }
}
