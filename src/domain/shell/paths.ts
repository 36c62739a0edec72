/**
 * Paths that a command names: redirections, arguments, programs. Only what is written can be seen: a program may open other files, and a
 * value that is not known is known by its beginning alone.
 */
import { programOf, type ShellCommand, type ShellScript } from "./script.ts"
import type { ShellWord } from "./word.ts"

export interface NamedPath {
  /** Absolute, below the home directory (`~/…`), or relative to the directory in which the command starts. */
  readonly path: string
  /** Whether it is the beginning of what is named, rather than all of it. */
  readonly partial: boolean
  /** A pattern of file names, where it is one. */
  readonly glob: string | null
  readonly writes: boolean
  /** The word, for people. */
  readonly text: string
}

/** Their arguments are texts. */
const speakers = new Set([
  "echo",
  "printf",
  "true",
  "false",
  ":",
  "exit",
  "return",
  "expr",
  "seq",
  "sleep",
  "kill",
  "export",
  "alias",
])

/** Their first operand is a pattern or a program. */
const patternFirst = new Set([
  "grep",
  "egrep",
  "fgrep",
  "rg",
  "ag",
  "ack",
  "sed",
  "awk",
  "gawk",
  "mawk",
  "jq",
  "yq",
  "perl",
  "tr",
  "pgrep",
  "pkill",
])

/** Standard streams and the like: nothing is kept there. */
const streams = /^\/dev\/(null|zero|full|u?random|tty|std(in|out|err)|fd\/\d+)$/

const standardProgram = /^(\/usr(\/local)?|\/opt\/homebrew)?\/s?bin\/[^/]+$/

/** `~name` is a directory beside the home directory, as a rule; `~+` is the working directory, `~-` the former one. */
const homes = (path: string): string => {
  if (!path.startsWith("~") || path === "~" || path.startsWith("~/")) return path
  const [name = "", ...rest] = path.slice(1).split("/")
  if (name === "+") return [".", ...rest].join("/")
  return ["~", "..", name === "-" ? "" : name, ...rest].join("/")
}

/** The path in a word: behind the `=` of an option, the `@` of curl, `file:` of a URL. */
const pathIn = (text: string): string | null => {
  const value = /^-{1,2}[\w-]+=(.*)$/s.exec(text)?.[1] ?? /^[A-Za-z_]\w*=(.*)$/s.exec(text)?.[1] ?? text
  const bare = value.replace(/^@/, "").replace(/^file:(\/\/(localhost)?(?=\/))?/, "")
  if (bare === "" || bare.startsWith("-") || /^[a-z][a-z0-9+.-]*:\/\//i.test(bare) || bare.length > 4096) {
    const attached = /^-[A-Za-z](~?\/.*|\.\.\/?.*)$/s.exec(bare)?.[1]
    return attached ?? null
  }
  return streams.test(bare) || bare.includes("\n") ? null : bare
}

const named = (word: ShellWord, writes: boolean): ReadonlyArray<NamedPath> => {
  if (word.value !== null) {
    const path = pathIn(word.value)
    return path === null ? [] : [{ path: homes(path), partial: false, glob: null, writes, text: word.text }]
  }
  const start = pathIn(word.start)
  const directory = start === null ? "" : start.slice(0, start.lastIndexOf("/") + 1)
  if (directory === "" && word.glob === null) return []
  const glob = word.glob === null ? null : homes(pathIn(word.glob) ?? word.glob)
  return [{ path: directory === "" ? "." : homes(directory), partial: true, glob, writes, text: word.text }]
}

const argumentsOf = (command: ShellCommand): ReadonlyArray<ShellWord> => {
  const program = programOf(command)
  const [first, ...args] = command.words
  if (program === null || first === undefined) return command.words
  const own = first.value?.includes("/") && !standardProgram.test(first.value) ? [first] : []
  if (speakers.has(program)) return own
  if (!patternFirst.has(program)) return [...own, ...args]
  const pattern = args.find((word) => word.value !== null && !word.value.startsWith("-"))
  const hasOwnOption = args.some((word) => /^-[a-zA-Z]*[ef]$/.test(word.value ?? ""))
  return [...own, ...args.filter((word) => hasOwnOption || word !== pattern)]
}

/** Directories into which the command goes; each may be the one in which the next command runs. */
const bases = (script: ShellScript): ReadonlyArray<string> =>
  script.commands.flatMap((command) => {
    const program = programOf(command)
    const to =
      program === "cd" || program === "pushd"
        ? command.words.find((word, at) => at > 0 && !word.value?.startsWith("-"))
        : undefined
    return to === undefined || to.value === null || to.value.startsWith("~") ? [] : [to.value]
  })

/** Every path that the command names, in every directory in which it may be meant. */
export const pathsIn = (script: ShellScript): ReadonlyArray<NamedPath> => {
  const paths = script.commands.flatMap((command) => [
    ...command.redirects.flatMap(({ target, writes }) => named(target, writes)),
    ...argumentsOf(command).flatMap((word) => named(word, true)),
    ...command.assignments.flatMap(({ value }) => (/^[~/]|^\.\./.test(value.start) ? named(value, false) : [])),
  ])
  const elsewhere = bases(script)
  if (elsewhere.length === 0) return paths
  return paths.flatMap((one) => {
    const isRelative = !/^[/~]/.test(one.path)
    return isRelative ? [one, ...elsewhere.map((base) => ({ ...one, path: `${base}/${one.path}` }))] : [one]
  })
}
