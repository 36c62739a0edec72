/**
 * Patterns of commands, as `permissions.allow` and `permissions.deny` list them:
 *
 *   pattern = { NAME=value } word { word } [ ":*" ]
 *
 * Words are separated by spaces; quotes keep spaces in a word; `*` in a word stands for any characters of that word. A last word `*` is the
 * same as `:*`: any further arguments. `Bash(…)` around a pattern is taken off.
 *
 * 1. Allow is narrow: exactly these words in this order, and further arguments only with `:*`. Nothing whose value is not known matches
 *    but behind `:*`, and not there either where it could be an option that makes the program do something else.
 * 2. Deny is wide: further arguments always match, options match in any order, cluster and length (`-rf`, `-fr`, `-r -f`, `--recursive
 *    --force`), the program's directory and case do not matter, and what is not known may match.
 */
import { Either } from "effect"
import { escapeOf } from "./escapes.ts"
import { canonicalOption, maybeOption, optionsIn, optionsOf } from "./options.ts"
import { programOf, type ShellCommand } from "./script.ts"
import type { ShellWord } from "./word.ts"

export interface CommandPattern {
  /** As it is written. */
  readonly text: string
  /** Assignments that may come with the command. */
  readonly assignments: ReadonlyArray<{ readonly name: string; readonly value: RegExp }>
  readonly words: ReadonlyArray<{ readonly text: string; readonly shape: RegExp }>
  /** Whether further arguments are allowed. */
  readonly more: boolean
}

/** A pattern where `*` is any characters. */
export const wildcard = (text: string, flags = "s"): RegExp =>
  new RegExp(`^${text.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replace(/\*+/g, ".*")}$`, flags)

/** Words between spaces, quotes taken off; null where a quote is not closed. */
const split = (text: string): ReadonlyArray<string> | null => {
  const words: Array<string> = []
  let word: string | null = null
  let quote: string | null = null
  for (const character of text) {
    if (quote !== null) {
      if (character === quote) quote = null
      else word += character
    } else if (character === "'" || character === '"') {
      quote = character
      word ??= ""
    } else if (/\s/.test(character)) {
      if (word !== null) words.push(word)
      word = null
    } else word = (word ?? "") + character
  }
  if (word !== null) words.push(word)
  return quote === null ? words : null
}

const assigned = /^([A-Za-z_]\w*)=(.*)$/s

/** A pattern, or what was expected of it instead. */
export const parsePattern = (text: string): Either.Either<CommandPattern, string> => {
  const bare = /^\s*[Bb]ash\((.*)\)\s*$/s.exec(text)?.[1] ?? text
  const more = /(:\*|\s\*|^\s*\*)\s*$/.test(bare)
  const body = bare.replace(/(:\*|(^|\s)\*)\s*$/, "")
  const all = split(body)
  if (all === null) return Either.left("a pattern with its quotes closed")
  if (/[;|&<>`\n]|\$\(/.test(body))
    return Either.left("a pattern of one simple command, without operators of the shell")
  const from = all.findIndex((word) => !assigned.test(word))
  const words = from === -1 ? [] : all.slice(from)
  if (words.length === 0 && bare.trim() !== "*") return Either.left('a command such as "git status" or "npm test:*"')
  if (words[0]?.startsWith("-")) return Either.left("a pattern that begins with a program")
  const assignments = (from === -1 ? all : all.slice(0, from)).map((word) => {
    const [, name = "", value = ""] = assigned.exec(word) ?? []
    return { name, value: wildcard(value) }
  })
  return Either.right({ text, assignments, words: words.map((word) => ({ text: word, shape: wildcard(word) })), more })
}

/** Directories of programs that a name without a directory stands for. */
const standard = /^(\/usr(\/local)?)?\/s?bin\/[^/]+$/

const matchesProgram = (pattern: CommandPattern, word: ShellWord): boolean => {
  const { shape = /^/, text = "" } = pattern.words[0] ?? {}
  if (word.value === null) return false
  if (text.includes("/") || !word.value.includes("/")) return shape.test(word.value)
  return standard.test(word.value) && shape.test(word.value.slice(word.value.lastIndexOf("/") + 1))
}

/** A way out of a directory, which a star does not stand for. */
const climbs = /(^|\/)\.\.(\/|$)/

/** Whether the pattern allows the command: true, or why it does not although it looks like it, or false. */
export const allows = (pattern: CommandPattern, command: ShellCommand): true | false | string => {
  const [program, ...args] = command.words
  if (program === undefined) return false
  if (pattern.words.length === 0) return escapeFrom(command, args) ?? true
  if (!matchesProgram(pattern, program)) return false
  const expected = pattern.words.slice(1)
  for (const [index, { shape, text }] of expected.entries()) {
    const value = args[index]?.value
    if (value === undefined || value === null || !shape.test(value)) return false
    if (climbs.test(value) && !climbs.test(text)) return false
  }
  const rest = args.slice(expected.length)
  if (rest.length === 0)
    return (
      escapeFrom(
        command,
        args.filter((_, index) => expected[index]?.text.includes("*")),
      ) ?? true
    )
  return pattern.more ? (escapeFrom(command, rest) ?? true) : false
}

const escapeFrom = (command: ShellCommand, free: ReadonlyArray<ShellWord>): string | null => {
  const program = programOf(command)
  return program === null ? null : escapeOf(program, command.words, free)
}

/** Whether a deny pattern matches: for sure, maybe (something is not known), or not. */
export type DenyMatch = "yes" | "maybe" | "no"

const fold = (text: string): string => text.toLowerCase().replace(/\.exe$/, "")

/** A word that is a subcommand rather than a path or a value. */
const isPlain = (text: string): boolean => /^[a-z][\w:.-]*$/i.test(text) && !text.includes(".")

/** `//`, `/./` and a slash at the end say nothing. */
const tidy = (text: string): string =>
  text.includes("/") ? text.replace(/\/(\.?\/)+/g, "/").replace(/(.)\/\.?$/, "$1") : text

/** Operands of the pattern that are plain come first and in order, as subcommands do; others are anywhere. */
const matchOperands = (
  wanted: ReadonlyArray<string>,
  operands: ReadonlyArray<ShellWord>,
  isOpen: boolean,
): DenyMatch => {
  let at = 0
  let result: DenyMatch = "yes"
  for (const text of wanted) {
    const shape = wildcard(tidy(text), "is")
    const fits = (word: ShellWord) => word.value !== null && shape.test(tidy(word.value))
    if (isPlain(text)) {
      const word = operands[at++]
      if (word === undefined) {
        if (!isOpen) return "no"
        result = "maybe"
      } else if (word.value === null || operands.slice(0, at).some((one) => one.splits)) result = "maybe"
      else if (!fits(word)) return "no"
    } else if (!operands.some(fits)) {
      if (!isOpen && operands.every((word) => word.value !== null)) return "no"
      result = "maybe"
    }
  }
  return result
}

/** Whether a long option of the command is the beginning of the pattern's. */
const hasOption = (wanted: string, given: ReadonlySet<string>): boolean =>
  given.has(wanted) ||
  (wanted.startsWith("--") &&
    [...given].some((one) => one.startsWith("--") && one.length > 4 && wanted.startsWith(one)))

export const denies = (pattern: CommandPattern, command: ShellCommand): DenyMatch => {
  if (command.words.length === 0) return "no"
  if (pattern.words.length === 0) return "yes"
  const [first, ...rest] = pattern.words
  const value = command.words[0]?.value ?? null
  const program = programOf(command)
  if (first === undefined) return "no"
  if (value === null || program === null) return "maybe"
  const name = wildcard(fold(first.text), "s")
  if (!name.test(fold(program)) && !name.test(fold(value))) return "no"
  const { open, operands, options } = optionsOf(fold(program), command.words)
  const wantedOptions = rest.filter(({ text }) => text.startsWith("-") && text !== "-")
  let result = matchOperands(
    rest.filter((one) => !wantedOptions.includes(one)).map(({ text }) => text),
    operands,
    open,
  )
  for (const { text } of wantedOptions) {
    if (result === "no") return "no"
    const wanted = text.startsWith("--") ? [canonicalOption(text)] : optionsIn(text)
    const whole = wanted[0] ?? text
    const single = wanted.length > 1 ? wanted.slice(1) : wanted
    if (options.has(whole) || single.every((one) => hasOption(one, options))) continue
    if (text.includes("*") && command.words.some((word) => word.value !== null && wildcard(text).test(word.value)))
      continue
    if (text.includes("=") && command.words.some((word) => word.value === text)) continue
    if (!open && !command.words.slice(1).some((word) => word.value === null && maybeOption(word))) return "no"
    result = "maybe"
  }
  return result
}
