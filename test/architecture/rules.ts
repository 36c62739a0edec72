/**
 * The rules of the house as pure functions from source files to faults; a fault is one line that says where and what.
 */
import type { Import, SourceFile } from "./source.ts"

/** What each folder of `src/` may import beside itself. Files directly in `src/` and `src/cli/` assemble, and may import all. */
const layers: Readonly<Record<string, ReadonlyArray<string>>> = {
  domain: [],
  observability: ["domain"],
  storage: ["domain"],
  models: ["domain"],
  tools: ["domain"],
  harness: ["domain", "storage", "models", "tools"],
  actors: ["domain", "observability", "storage", "models", "tools", "harness"],
  supervisors: ["domain", "observability", "storage", "models", "tools", "harness", "actors"],
  protocols: ["domain", "observability"],
}

/** The message contracts of the actors: all that protocols may see of them. */
const contracts = ["src/actors/contract.ts", "src/actors/sessions.ts", "src/actors/cluster.ts"]

/** Packages that rules in `src/domain` may use: pure ones. */
const purePackages = ["effect", "partial-json", "rfc6902", "unbash"]

const layerOf = (file: string): string | null => /^src\/([^/]+)\//.exec(file)?.[1] ?? null

const mayImport = (from: string, to: string): boolean => {
  const layer = layerOf(from)
  if (layer === null || layer === "cli") return true
  const target = layerOf(to)
  if (target === layer) return true
  if (layer === "protocols" && contracts.includes(to)) return true
  return target !== null && (layers[layer] ?? []).includes(target)
}

export const importDirection = (files: ReadonlyArray<SourceFile>): ReadonlyArray<string> =>
  files.flatMap(({ file, imports }) =>
    imports
      .filter((one) => one.file?.startsWith("src/") && !mayImport(file, one.file))
      .map((one) => `${file}: may not import ${one.file} (${layerOf(file)} may import ${allowed(layerOf(file))})`),
  )

const allowed = (layer: string | null): string => {
  const list = [...(layers[layer ?? ""] ?? []), ...(layer === "protocols" ? contracts : [])]
  return list.length === 0 ? "nothing of the project" : list.join(", ")
}

export const unknownFolders = (files: ReadonlyArray<SourceFile>): ReadonlyArray<string> =>
  files
    .map(({ file }) => layerOf(file))
    .filter((layer, index, all) => layer !== null && all.indexOf(layer) === index)
    .filter((layer) => layer !== "cli" && !((layer as string) in layers))
    .map((layer) => `src/${layer}: no rule says what this folder may import`)

export const domainIsPure = (files: ReadonlyArray<SourceFile>): ReadonlyArray<string> => {
  const ambient = /\b(process\.|Date\.now|new Date\(\)|Math\.random|setTimeout|setInterval|console\.|fetch\()/
  return files
    .filter(({ file }) => layerOf(file) === "domain")
    .flatMap(({ file, imports, code }) => [
      ...imports
        .filter((one) => one.file === null && !purePackages.includes(packageOf(one.specifier)))
        .map((one) => `${file}: domain is pure and may not import ${one.specifier}`),
      ...(ambient.test(code) ? [`${file}: domain is pure and may not use ${ambient.exec(code)?.[1]}`] : []),
    ])
}

const packageOf = (specifier: string): string =>
  specifier.startsWith("@") ? specifier.split("/").slice(0, 2).join("/") : (specifier.split("/")[0] ?? specifier)

/** Every package that is imported is a dependency, or a peer: for its types, or by the one entry that is for it. */
export const declaredPackages = (
  files: ReadonlyArray<SourceFile>,
  dependencies: ReadonlyArray<string>,
  peers: ReadonlyArray<string>,
): ReadonlyArray<string> =>
  files.flatMap(({ file, imports }) =>
    imports
      .filter((one) => one.file === null && !one.specifier.startsWith("node:") && !(one.lazy && one.typeOnly))
      .map((one) => ({ name: packageOf(one.specifier), typeOnly: one.typeOnly }))
      .filter(({ name }) => !dependencies.includes(name))
      .filter(({ name, typeOnly }) => !(peers.includes(name) && (typeOnly || file === `src/${name}.ts`)))
      .map(({ name }) => `${file}: imports ${name}, which is not a dependency of package.json`),
  )

export const heads = (files: ReadonlyArray<SourceFile>): ReadonlyArray<string> =>
  files
    .filter(({ text }) => !/^(#![^\n]*\n)?\s*(\/\*\*|\/\/)/.test(text))
    .map(({ file }) => `${file}: starts without a head comment that says what it is`)

const lineOf = (code: string, index: number): number => code.slice(0, index).split("\n").length

/** Escapes from the type system: `any` and silenced errors never, a double assertion only with its reason in a comment. */
export const typeEscapes = (files: ReadonlyArray<SourceFile>): ReadonlyArray<string> =>
  files.flatMap(({ file, text, code }) => {
    const lines = text.split("\n")
    const reasoned = (line: number) =>
      /\/\/|\*\//.test(lines[line - 1] ?? "") || /\/\/|\*\//.test(lines[line - 2] ?? "")
    return [
      ...[...text.matchAll(/@ts-(ignore|nocheck)/g)].map((one) => `${file}:${lineOf(text, one.index)}: @ts-${one[1]}`),
      ...[...code.matchAll(/\bas any\b|:\s*any\b|<any>|Array<any>/g)].map(
        (one) => `${file}:${lineOf(code, one.index)}: any`,
      ),
      ...[...code.matchAll(/\bas unknown as\b|\bas never\b/g)]
        .filter((one) => !reasoned(lineOf(code, one.index)))
        .map(
          (one) => `${file}:${lineOf(code, one.index)}: ${one[0]} without a reason in a comment on or above the line`,
        ),
    ]
  })

export const maximumLines = 400

/** A file holds one noun. A longer one says in its head why it stays whole, with the words `Long because`. */
export const lengths = (files: ReadonlyArray<SourceFile>): ReadonlyArray<string> =>
  files
    .map(({ file, text }) => ({ file, text, lines: text.split("\n").length - 1 }))
    .filter(({ text, lines }) => lines > maximumLines && !/long because/i.test(text.slice(0, text.indexOf("*/"))))
    .map(
      ({ file, lines }) => `${file}: ${lines} lines, over ${maximumLines}, and its head does not say "Long because …"`,
    )

const key = (file: string, name: string) => `${file}#${name}`

/**
 * Exports that no other file takes. Tests, benches and examples count as takers; entries are for the world. A type may stay exported where
 * its own file uses it (its users name it through inference), and so may the vocabulary of `src/domain`.
 */
export const unusedExports = (
  files: ReadonlyArray<SourceFile>,
  takers: ReadonlyArray<SourceFile>,
  isEntry: (file: string) => boolean,
): ReadonlyArray<string> => {
  const taken = new Set<string>()
  for (const { imports } of [...files, ...takers]) {
    for (const one of imports) for (const name of one.names) if (one.file !== null) taken.add(key(one.file, name))
  }
  return files
    .filter(({ file }) => !isEntry(file) && !taken.has(key(file, "*")))
    .flatMap(({ file, exports, code }) =>
      exports
        .filter(({ name }) => !taken.has(key(file, name)))
        .filter(({ name, type }) => {
          const uses = [...code.matchAll(new RegExp(`(?<![\\w$.])${name}(?![\\w$])`, "g"))].length
          const declared = exports.filter((one) => one.name === name).length
          return !(type || layerOf(file) === "domain") || uses <= declared
        })
        .map(({ name }) => `${file}: exports ${name}, which nobody imports`),
    )
}

/** Cycles of imports that exist at run time; each is shown once, from its first file on. */
export const cycles = (files: ReadonlyArray<SourceFile>): ReadonlyArray<string> => {
  const eager = (one: Import) => one.file !== null && !one.typeOnly && !one.lazy
  const edges = new Map(
    files.map(({ file, imports }) => [file, imports.filter(eager).map((one) => one.file as string)]),
  )
  const done = new Set<string>()
  const found: Array<string> = []
  const visit = (file: string, trail: ReadonlyArray<string>): void => {
    const at = trail.indexOf(file)
    if (at >= 0) found.push(`import cycle: ${[...trail.slice(at), file].join(" → ")}`)
    if (at >= 0 || done.has(file)) return
    for (const next of edges.get(file) ?? []) visit(next, [...trail, file])
    done.add(file)
  }
  for (const { file } of files) visit(file, [])
  return found
}
