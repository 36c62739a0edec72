/**
 * What the architecture test knows of a source file: its imports, its exports and its text without comments and strings. A scanner, not a
 * parser: it reads the plain module syntax that the formatter leaves.
 */
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..")

export interface Import {
  /** As written: `./store.ts`, `effect`, `node:fs`. */
  readonly specifier: string
  /** Path from the root of the project, or null for a package. */
  readonly file: string | null
  /** Names taken; `*` for the whole module. */
  readonly names: ReadonlyArray<string>
  /** Erased by the compiler: it costs nothing at run time. */
  readonly typeOnly: boolean
  readonly lazy: boolean
  /** `export … from`: the names are passed on. */
  readonly reexport: boolean
}

export interface Export {
  readonly name: string
  /** Whether a type or interface stands behind the name and no value. */
  readonly type: boolean
}

export interface SourceFile {
  /** Path from the root of the project, with `/`. */
  readonly file: string
  readonly text: string
  /** The text with comments blanked, lines kept. */
  readonly code: string
  readonly imports: ReadonlyArray<Import>
  readonly exports: ReadonlyArray<Export>
}

/** Blanks comments and keeps every line and column, so that a match still tells where it is. */
export const withoutComments = (text: string): string => {
  const pattern = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`/g
  return text.replace(pattern, (found) => (found.startsWith("/") ? found.replace(/[^\n]/g, " ") : found))
}

const namesOf = (clause: string): { names: Array<string>; typeOnly: boolean } => {
  const names: Array<string> = []
  let values = 0
  const whole = clause.startsWith("type ")
  const body = whole ? clause.slice(5) : clause
  const braces = /\{([\s\S]*)\}/.exec(body)
  for (const part of (braces?.[1] ?? "").split(",")) {
    const name = part.trim()
    if (name === "") continue
    if (!name.startsWith("type ")) values++
    names.push((name.replace(/^type\s+/, "").split(/\s+as\s+/)[0] ?? name).trim())
  }
  const rest = body
    .replace(/\{[\s\S]*\}/, "")
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")
  for (const part of rest) {
    values++
    names.push(part.startsWith("*") ? "*" : "default")
  }
  return { names, typeOnly: whole || (values === 0 && names.length > 0) }
}

const resolve = (from: string, specifier: string): string | null =>
  specifier.startsWith(".") ? path.posix.join(path.posix.dirname(from), specifier) : null

const importsOf = (file: string, code: string): Array<Import> => {
  const found: Array<Import> = []
  const add = (specifier: string, rest: Omit<Import, "specifier" | "file">) =>
    found.push({ specifier, file: resolve(file, specifier), ...rest })
  for (const [, keyword = "", clause = "", specifier = ""] of code.matchAll(
    /^(import|export)\s+(type\s+\*(?:\s+as\s+\w+)?|\*(?:\s+as\s+\w+)?|(?:type\s+)?[\w*{][^"';=()]*?)\s+from\s+"([^"]+)"/gm,
  )) {
    add(specifier, { ...namesOf(clause), lazy: false, reexport: keyword === "export" })
  }
  for (const [, specifier = ""] of code.matchAll(/^import\s+"([^"]+)"/gm)) {
    add(specifier, { names: [], typeOnly: false, lazy: false, reexport: false })
  }
  for (const [, type, specifier = ""] of code.matchAll(/(typeof\s+)?\bimport\(\s*"([^"]+)"/g)) {
    add(specifier, { names: ["*"], typeOnly: type !== undefined, lazy: true, reexport: false })
  }
  return found
}

const declaration =
  /^export\s+(?:declare\s+)?(?:default\s+)?(?:abstract\s+)?(?:async\s+)?(const|let|function\*?|class|interface|type|namespace)\s+(\w+)/gm

const exportsOf = (code: string): Array<Export> => {
  const found = new Map<string, Export>()
  const add = (name: string, type: boolean) => found.set(name, { name, type: type && (found.get(name)?.type ?? true) })
  for (const [, kind = "", name = ""] of code.matchAll(declaration)) add(name, kind === "interface" || kind === "type")
  for (const [, type, list = ""] of code.matchAll(/^export\s+(type\s+)?\{([^}]*)\}(?!\s*from)/gm)) {
    for (const part of list.split(",")) {
      const name =
        part
          .trim()
          .split(/\s+as\s+/)
          .pop()
          ?.replace(/^type\s+/, "") ?? ""
      if (name !== "") add(name, type !== undefined || part.trim().startsWith("type "))
    }
  }
  return [...found.values()]
}

export const parse = (file: string, text: string): SourceFile => {
  const code = withoutComments(text)
  return { file, text, code, imports: importsOf(file, code), exports: exportsOf(code) }
}

/** Every file below `folder` whose name ends in one of `endings`; empty where there is no such folder. */
export const filesBelow = (folder: string, endings: ReadonlyArray<string>): ReadonlyArray<string> => {
  let entries: ReadonlyArray<string>
  try {
    entries = readdirSync(path.join(root, folder), { recursive: true, encoding: "utf8" })
  } catch {
    return []
  }
  return entries
    .map((name) => path.posix.join(folder, name.split(path.sep).join("/")))
    .filter((name) => endings.some((ending) => name.endsWith(ending)) && !name.includes("node_modules/"))
    .sort()
}

export const sourcesBelow = (folder: string): ReadonlyArray<SourceFile> =>
  filesBelow(folder, [".ts"]).map((file) => parse(file, readFileSync(path.join(root, file), "utf8")))
