/**
 * The files of `deploy/` as data: YAML, unit files, environment files and Dockerfiles. Small readers: each refuses what it does not know.
 */
import { readFileSync } from "node:fs"
import path from "node:path"
import { parseAllDocuments } from "yaml"

const root = path.resolve(import.meta.dirname, "../..")

export const textOf = (file: string): string => readFileSync(path.join(root, file), "utf8")

/** All documents of a YAML file; throws on the first fault. */
export const yamlOf = (file: string): ReadonlyArray<Readonly<Record<string, unknown>>> =>
  parseAllDocuments(textOf(file), { merge: true, uniqueKeys: true }).map((document) => {
    const [fault] = [...document.errors, ...document.warnings]
    if (fault !== undefined) throw new Error(`${file}: ${fault.message}`)
    return document.toJS()
  })

/** What lies at a path of keys and indexes, or undefined. */
export const at = (value: unknown, ...keys: ReadonlyArray<string | number>): unknown =>
  keys.reduce<unknown>(
    (inner, key) => (typeof inner === "object" && inner !== null ? Reflect.get(inner, key) : undefined),
    value,
  )

/** One value somewhere in a document, with where it is. */
interface Found {
  readonly key: string
  readonly value: unknown
}

/** Every value under a key, at any depth. */
export const everything = (value: unknown): ReadonlyArray<Found> =>
  typeof value !== "object" || value === null
    ? []
    : Object.entries(value).flatMap(([key, inner]) => [{ key, value: inner }, ...everything(inner)])

/** Variables of an environment file, the suggested ones (`# NAME=`) included. */
export const variablesOf = (file: string): ReadonlyArray<string> =>
  textOf(file)
    .split("\n")
    .flatMap((line) => {
      if (line.trim() === "") return []
      const name = /^(?:# )?([A-Z][A-Z0-9_]*)=/.exec(line)?.[1]
      if (name === undefined && !line.startsWith("# ")) throw new Error(`${file}: expected NAME=value, got ${line}`)
      return name ?? []
    })

export interface Instruction {
  readonly name: string
  readonly args: string
  /** Which stage it is in, from 0. */
  readonly stage: number
}

const instructions = /^(FROM|RUN|COPY|ENV|USER|WORKDIR|EXPOSE|VOLUME|STOPSIGNAL|HEALTHCHECK|ENTRYPOINT|CMD) (.+)$/

/** A Dockerfile's instructions, continued lines joined. */
export const dockerfileOf = (file: string): ReadonlyArray<Instruction> => {
  const lines = textOf(file)
    .split("\n")
    .filter((line) => !line.startsWith("#"))
    .join("\n")
    .replace(/\\\n\s*/g, " ")
    .split("\n")
    .filter((line) => line.trim() !== "")
  let stage = -1
  return lines.map((line) => {
    const found = instructions.exec(line)
    if (found === null) throw new Error(`${file}: expected an instruction, got ${line}`)
    const [, name = "", args = ""] = found
    if (name === "FROM") stage += 1
    return { name, args, stage }
  })
}

/** A unit file: values by section and key, in order; a key may come several times. */
export const unitOf = (file: string): ReadonlyMap<string, ReadonlyMap<string, ReadonlyArray<string>>> => {
  const sections = new Map<string, Map<string, Array<string>>>()
  let section: Map<string, Array<string>> | null = null
  for (const line of textOf(file).split("\n")) {
    if (line.trim() === "" || line.startsWith("#")) continue
    const head = /^\[(\w+)\]$/.exec(line)?.[1]
    const pair = /^(\w+)=(.*)$/.exec(line)
    if (head !== undefined) {
      section = new Map()
      sections.set(head, section)
    } else if (pair !== null && section !== null) {
      const [, key = "", value = ""] = pair
      section.set(key, [...(section.get(key) ?? []), value])
    } else throw new Error(`${file}: expected [Section] or Key=value, got ${line}`)
  }
  return sections
}
