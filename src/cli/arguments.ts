/**
 * The argument parser: a pure function from a table of commands and a list of words to what was asked for.
 *
 * Options stand anywhere before `--`; `--name value`, `--name=value`, `-n value`, `-nvalue` and bundles of flags (`-ab`) are accepted;
 * the last of a repeated option wins. Nothing throws: a wrong command line is a `fault` that names the word and the nearest valid one.
 */
import { nearest } from "../domain/nearest.ts"

/** The outcome of reading one option's value. `expected` completes `--name: expected …, got …`. */
export type Reading<A> = { readonly ok: true; readonly value: A } | { readonly ok: false; readonly expected: string }

export interface Option<A> {
  /** Long name without dashes. */
  readonly long: string
  readonly short?: string
  /** Placeholder of the value in help; absent for a flag. */
  readonly value?: string
  /** The value may be left out; `read` then gets "". */
  readonly valueOptional?: boolean
  readonly summary: string
  readonly read: (raw: string) => Reading<A>
}

export interface Positional {
  readonly name: string
  readonly summary: string
  readonly required: boolean
  /** Takes all remaining words. */
  readonly rest?: boolean
}

/** The code of a command. Gives the exit code. */
export interface CommandModule {
  readonly main: (invocation: Invocation) => Promise<number>
}

export interface Command {
  readonly name: string
  readonly summary: string
  /** Further lines of its help. */
  readonly details?: ReadonlyArray<string>
  readonly examples?: ReadonlyArray<string>
  readonly options: ReadonlyArray<Option<unknown>>
  readonly positionals?: ReadonlyArray<Positional>
  readonly commands?: ReadonlyArray<Command>
  /** For our own scripts: no help page lists it and no fault names it. */
  readonly hidden?: boolean
  /** Loads its code; absent for a mere group of commands. */
  readonly load?: () => Promise<CommandModule>
}

/** The commands of a command that a person is told of. */
export const shownCommands = (command: Command): ReadonlyArray<Command> =>
  (command.commands ?? []).filter((one) => one.hidden !== true)

/** A command with the values it was given. */
export interface Invocation {
  readonly command: Command
  /** Names from the root on, for example `["super-pi", "session", "list"]`. */
  readonly path: ReadonlyArray<string>
  readonly get: <A>(option: Option<A>) => A | undefined
  readonly words: ReadonlyArray<string>
}

export type Parsed =
  | { readonly kind: "invocation"; readonly invocation: Invocation }
  | { readonly kind: "help"; readonly command: Command; readonly path: ReadonlyArray<string> }
  | { readonly kind: "version" }
  | { readonly kind: "fault"; readonly message: string }

export const flag = (long: string, summary: string, short?: string): Option<boolean> => ({
  long,
  summary,
  ...(short === undefined ? {} : { short }),
  read: () => ({ ok: true, value: true }),
})

export const text = (long: string, value: string, summary: string, short?: string): Option<string> => ({
  long,
  value,
  summary,
  ...(short === undefined ? {} : { short }),
  read: (raw) => (raw === "" ? { ok: false, expected: `a ${value.toLowerCase()}` } : { ok: true, value: raw }),
})

export const choice = <const A extends string>(
  long: string,
  choices: ReadonlyArray<A>,
  summary: string,
): Option<A> => ({
  long,
  value: choices.join("|"),
  summary,
  read: (raw) => {
    const found = choices.find((one) => one === raw)
    return found === undefined ? { ok: false, expected: `one of ${choices.join(", ")}` } : { ok: true, value: found }
  },
})

export const integer = (
  long: string,
  value: string,
  summary: string,
  range: { readonly min: number; readonly max: number; readonly what: string },
): Option<number> => ({
  long,
  value,
  summary,
  read: (raw) => {
    const number = /^\d{1,16}$/.test(raw) ? Number(raw) : Number.NaN
    return number >= range.min && number <= range.max
      ? { ok: true, value: number }
      : { ok: false, expected: range.what }
  },
})

const help = flag("help", "Show this help", "h")
const version = flag("version", "Show the version", "V")

/** The options that every command has. */
export const everywhere: ReadonlyArray<Option<unknown>> = [help, version]

const allOptions = (command: Command): Array<Option<unknown>> => [
  ...command.options,
  ...(command.commands ?? []).flatMap(allOptions),
]

const written = (option: Option<unknown>): string => `--${option.long}`

interface Scan {
  readonly path: Array<Command>
  readonly given: Map<Option<unknown>, string>
  readonly words: Array<string>
  readonly unknown: Array<string>
  readonly faults: Array<string>
}

/** Splits the words into commands, options and positionals; judges nothing but the shape. */
const scan = (root: Command, argv: ReadonlyArray<string>): Scan => {
  const known = [...everywhere, ...allOptions(root)]
  const byLong = (name: string) => known.find((option) => option.long === name)
  const byShort = (letter: string) => known.find((option) => option.short === letter)
  const isOption = (word: string) =>
    word.startsWith("--")
      ? byLong(word.slice(2).split("=", 1)[0] ?? "") !== undefined
      : /^-[A-Za-z]$/.test(word) && byShort(word.slice(1)) !== undefined
  const out: Scan = { path: [root], given: new Map(), words: [], unknown: [], faults: [] }
  let at = 0
  const takeValue = (option: Option<unknown>, inline: string | undefined) => {
    if (option.value === undefined) {
      if (inline !== undefined) out.faults.push(`${written(option)} takes no value, got "${inline}"`)
      out.given.set(option, "")
      return
    }
    if (inline !== undefined) {
      out.given.set(option, inline)
      return
    }
    const next = argv[at]
    if (next === undefined || next === "--" || isOption(next)) {
      if (option.valueOptional === true) out.given.set(option, "")
      else out.faults.push(`${written(option)} needs a value: ${written(option)} ${option.value}`)
      return
    }
    at++
    out.given.set(option, next)
  }
  while (at < argv.length) {
    const word = argv[at++] ?? ""
    if (word === "--") {
      out.words.push(...argv.slice(at))
      break
    }
    if (word.startsWith("--")) {
      const equals = word.indexOf("=")
      const name = equals < 0 ? word.slice(2) : word.slice(2, equals)
      const option = byLong(name)
      if (option === undefined) out.unknown.push(`--${name}`)
      else takeValue(option, equals < 0 ? undefined : word.slice(equals + 1))
      continue
    }
    if (word.startsWith("-") && word !== "-" && !/\s/.test(word.slice(0, 2))) {
      for (let i = 1; i < word.length; i++) {
        const letter = word[i] ?? ""
        const option = byShort(letter)
        if (option === undefined) {
          out.unknown.push(`-${letter}`)
          break
        }
        if (option.value === undefined) {
          takeValue(option, undefined)
          continue
        }
        const rest = word.slice(i + 1)
        takeValue(option, rest === "" ? undefined : rest.replace(/^=/, ""))
        break
      }
      continue
    }
    const current = out.path[out.path.length - 1] ?? root
    const child = out.words.length === 0 ? current.commands?.find((one) => one.name === word) : undefined
    if (child !== undefined) out.path.push(child)
    else out.words.push(word)
  }
  return out
}

const unknownOption = (word: string, command: Command, where: string): string => {
  const options = [...command.options, ...everywhere]
  const near = word.startsWith("--")
    ? nearest(
        word.slice(2),
        options.map((option) => option.long),
      )
    : nearest(
        word.slice(1),
        options.flatMap((option) => (option.short === undefined ? [] : [option.short])),
      )
  const shown = near === null ? "" : `; did you mean ${word.startsWith("--") ? "--" : "-"}${near}?`
  return `unknown option ${word}${shown} See: ${where} --help`
}

const unknownWord = (word: string, command: Command, where: string): string => {
  const near = nearest(
    word,
    shownCommands(command).map((one) => one.name),
  )
  if (command.load !== undefined && /\s/.test(word)) {
    return `unknown command "${word}"; to ask a question: ${where} run "…"; the nearest command is ${near}. See: ${where} --help`
  }
  return `unknown command "${word}"; did you mean "${near}"? See: ${where} --help`
}

/** Reads a command line against the table of commands. `help` in front of a command is its `--help`. */
export const parse = (root: Command, argv: ReadonlyArray<string>): Parsed => {
  if (argv[0] === "help") return parse(root, [...argv.slice(1), "--help"])
  const { path, given, words, unknown, faults } = scan(root, argv)
  const command = path[path.length - 1] ?? root
  const names = path.map((one) => one.name)
  const where = names.join(" ")
  const fault = (message: string): Parsed => ({ kind: "fault", message })
  const first = words[0]

  if (unknown[0] !== undefined) return fault(unknownOption(unknown[0], command, where))
  if (first !== undefined && (command.commands ?? []).length > 0) return fault(unknownWord(first, command, where))
  if (given.has(help)) return { kind: "help", command, path: names }
  if (given.has(version)) return { kind: "version" }
  if (faults[0] !== undefined) return fault(`${faults[0]}. See: ${where} --help`)
  if (command.load === undefined) {
    const list = shownCommands(command)
      .map((one) => one.name)
      .join(", ")
    return fault(`which ${where}? ${list}. See: ${where} --help`)
  }

  const values = new Map<Option<unknown>, unknown>()
  for (const [option, raw] of given) {
    if (!command.options.includes(option))
      return fault(`${written(option)} does not apply to "${where}". See: ${where} --help`)
    const reading = option.read(raw)
    if (!reading.ok) return fault(`${written(option)}: expected ${reading.expected}, got "${raw}"`)
    values.set(option, reading.value)
  }
  const positionals = command.positionals ?? []
  const missing = positionals[words.length]
  if (missing?.required === true)
    return fault(`${where} needs ${missing.name}: ${missing.summary}. See: ${where} --help`)
  if (positionals[positionals.length - 1]?.rest !== true && words.length > positionals.length) {
    return fault(`unexpected argument "${words[positionals.length] ?? ""}". See: ${where} --help`)
  }
  return {
    kind: "invocation",
    invocation: {
      command,
      path: names,
      words,
      // The map holds, for each option, what its own `read` returned.
      get: <A>(option: Option<A>) => values.get(option) as A | undefined,
    },
  }
}
