/**
 * Reads a shell command: from its text to every simple command that running it may run.
 *
 * The syntax tree comes from `unbash`; nothing here looks for commands in text. What a command carries (`sh -c`, `xargs`, `find -exec`) is
 * read in turn. What cannot be read is named, never guessed.
 */
import type { CommandNode, PipelineNode, Redirection, SyntaxNode, Word } from "unbash"
import { forEachChild, parse } from "unbash"
import { expandBraces } from "./braces.ts"
import { carriedBy } from "./carriers.ts"
import { hiddenIn, hiddenInWord } from "./hidden.ts"
import {
  type Opaque,
  programOf,
  type ShellAssignment,
  type ShellCommand,
  type ShellInput,
  type ShellRedirect,
  type ShellScript,
} from "./script.ts"
import { open, readWord, type ShellWord } from "./word.ts"

const maxChars = 64 * 1024
const maxCommands = 2000
/** Of scripts in scripts: `sh -c "sh -c …"`. */
const maxDepth = 8
const maxBraceWords = 256
/** Words of all commands together, those that are carried counted again. */
const maxWords = 50_000
/** Words that are shown of a carried command. */
const shownWords = 24

interface Place {
  readonly input: ShellInput
  readonly via: ReadonlyArray<string>
  readonly depth: number
  readonly elsewhere: boolean
}

const inherited: ShellInput = { type: "inherited" }

class Reader {
  readonly commands: Array<ShellCommand> = []
  readonly opaque: Array<Opaque> = []
  readonly faults = new Set<string>()
  /** Whether something evaluates variables as expressions, which runs substitutions in their values. */
  evaluates = false
  /** Whether a quoted text has a substitution in it, which only an evaluation would run. */
  substitutesQuoted = false

  script(text: string, place: Place): void {
    if (place.depth > maxDepth) {
      this.faults.add("scripts are nested too deep")
      return
    }
    const hidden = hiddenIn(text)
    if (hidden !== null) this.faults.add(hidden)
    this.visit(parse(text), place, text)
  }

  private left = maxWords

  private visit(node: SyntaxNode, place: Place, text: string): void {
    switch (node.type) {
      case "Script": {
        const own = node.source ?? text
        for (const error of "errors" in node ? (node.errors ?? []) : [])
          this.faults.add(`the syntax is wrong: ${error.message}`)
        for (const statement of node.commands) this.visit(statement, place, own)
        return
      }
      case "Pipeline":
        this.pipeline(node.commands, place, text)
        return
      case "Command":
        this.command(node, place, text)
        return
      case "Redirected": {
        const redirects = node.redirects
        this.add({
          words: [],
          assignments: [],
          redirects: this.redirects(redirects),
          ...this.head(place, text.slice(node.pos, node.end)),
        })
        for (const redirect of redirects) this.visit(redirect, place, text)
        this.visit(node.command, { ...place, input: this.inputOf(redirects, place.input) }, text)
        return
      }
      case "ArithmeticExpansion":
      case "ArithmeticCommand":
      case "ArithmeticFor":
      case "TestCommand":
        this.evaluates = true
        break
      case "ParameterExpansion":
        if (node.operation?.type === "Transform")
          this.opaque.push({ source: node.text, reason: "a value is expanded once more", code: false })
        if (node.index !== undefined || node.operation?.type === "Slice") this.evaluates = true
        break
      case "CommandExpansion":
      case "ProcessSubstitution":
        if (node.script === undefined) this.faults.add(`a substitution cannot be read: ${node.text}`)
        break
      default:
    }
    forEachChild(node, (child) => this.visit(child, place, text))
  }

  private pipeline(commands: ReadonlyArray<CommandNode | PipelineNode>, place: Place, text: string): void {
    for (const [index, command] of commands.entries())
      this.visit(command, index === 0 ? place : { ...place, input: { type: "pipe" } }, text)
  }

  private head(place: Place, source: string): Pick<ShellCommand, "via" | "input" | "role" | "source"> {
    return { via: place.via, input: place.input, role: place.elsewhere ? "candidate" : "command", source }
  }

  private command(node: Extract<SyntaxNode, { readonly type: "Command" }>, place: Place, text: string): void {
    const args = node.args.flatMap(
      (arg): ReadonlyArray<ShellWord> => (arg.type === "Word" ? this.word(arg) : [this.assignmentWord(arg)]),
    )
    const words = node.name === undefined ? [] : [...this.word(node.name), ...args]
    const assignments = node.prefix.flatMap(
      (one): ReadonlyArray<ShellAssignment> =>
        one.type === "Assignment" ? [{ name: one.name, value: this.assigned(one) }] : [],
    )
    const input = this.inputOf(node.redirects, place.input)
    this.add(
      {
        words,
        assignments,
        redirects: this.redirects(node.redirects),
        ...this.head({ ...place, input }, text.slice(node.pos, node.end)),
      },
      place,
    )
    forEachChild(node, (child) => this.visit(child, place, text))
  }

  private word(word: Word): ReadonlyArray<ShellWord> {
    const hidden = hiddenInWord(word)
    if (hidden !== null) this.faults.add(hidden)
    const words = this.expanded(word, { left: maxBraceWords })
    for (const one of words) if (/\$\(|`/.test(one.value ?? "")) this.substitutesQuoted = true
    return words
  }

  private expanded(word: Word, budget: { left: number }): ReadonlyArray<ShellWord> {
    const at = word.parts?.findIndex((part) => part.type === "BraceExpansion") ?? -1
    const brace = word.parts?.[at]
    if (word.parts === undefined || brace === undefined) return [readWord(word)]
    const before = word.parts
      .slice(0, at)
      .map((part) => part.text)
      .join("")
    const after = word.parts
      .slice(at + 1)
      .map((part) => part.text)
      .join("")
    const items = expandBraces(brace.text)
    budget.left -= items?.length ?? 0
    if (items === null || budget.left < 0) return [open(word.text)]
    const parsed = parse(`: ${items.map((item) => before + item + after).join(" ")}`).commands[0]?.command
    if (parsed?.type !== "Command") return [open(word.text)]
    return parsed.args.flatMap((arg) => (arg.type === "Word" ? this.expanded(arg, budget) : [this.assignmentWord(arg)]))
  }

  private assigned({ value }: Extract<SyntaxNode, { readonly type: "Assignment" }>): ShellWord {
    if (value.type !== "Word") {
      for (const element of value.elements) this.word(element)
      return open("(…)")
    }
    return this.word(value)[0] ?? open(value.text)
  }

  private assignmentWord(one: Extract<SyntaxNode, { readonly type: "Assignment" }>): ShellWord {
    const value = this.assigned(one)
    const start = `${one.name}=${value.start}`
    return {
      text: one.text,
      value: value.value === null || one.index !== undefined ? null : start,
      start,
      splits: false,
      glob: null,
    }
  }

  private redirects(all: ReadonlyArray<Redirection>): ReadonlyArray<ShellRedirect> {
    return all.flatMap((one): ReadonlyArray<ShellRedirect> => {
      if (one.type !== "Redirect" || one.target === undefined) return []
      const target = readWord(one.target)
      const isDescriptor = /^[<>]&$/.test(one.operator) && /^(\d+-?|-)$/.test(target.value ?? "")
      return isDescriptor
        ? []
        : [{ operator: one.operator, writes: one.operator !== "<" && one.operator !== "<&", target }]
    })
  }

  private inputOf(all: ReadonlyArray<Redirection>, otherwise: ShellInput): ShellInput {
    let input = otherwise
    for (const one of all) {
      if (one.type === "HereDoc")
        input = {
          type: "text",
          value:
            one.body.parts === undefined || one.body.parts.every((part) => part.type === "Literal")
              ? one.body.text
              : null,
        }
      else if (one.type === "HereString")
        input = { type: "text", value: one.target === undefined ? null : readWord(one.target).value }
      else if (one.operator === "<" || one.operator === "<>") input = { type: "file" }
    }
    return input
  }

  /** Adds a command and what it carries. */
  private add(command: ShellCommand, place?: Place): void {
    this.left -= command.words.length
    if (this.commands.length >= maxCommands || this.left < 0) {
      this.faults.add("it runs too much to be judged")
      return
    }
    const at = this.commands.push(command) - 1
    const program = programOf(command)
    if (command.words.length > 0 && program === null)
      this.opaque.push({
        source: command.source,
        reason: `which program ${command.words[0]?.text ?? ""} is, is not known`,
        code: false,
      })
    if (program !== null && /[^\x20-\x7e]/.test(program))
      this.faults.add(`the program's name has characters outside ASCII: ${program}`)
    if (place === undefined || program === null) return
    const carried = carriedBy(command)
    if (carried === null) return
    for (const reason of carried.opaque)
      this.opaque.push({ source: command.source, reason, code: carried.code === true })
    if (carried.transparent && carried.opaque.length === 0 && command.role === "command")
      this.commands[at] = { ...command, role: "carrier" }
    const inner: Place = { ...place, via: [...command.via, program], depth: place.depth + 1 }
    if (inner.depth > maxDepth) {
      this.faults.add("commands are nested too deep")
      return
    }
    for (const one of carried.commands) {
      this.add(
        {
          words: one.words,
          assignments: one.assignments ?? [],
          redirects: [],
          via: inner.via,
          input: command.input,
          role: one.candidate === true || command.role === "candidate" ? "candidate" : "command",
          source: one.words
            .slice(0, shownWords)
            .map((word) => word.text)
            .join(" "),
        },
        { ...inner, input: command.input },
      )
    }
    for (const { elsewhere = false, text } of carried.scripts)
      this.script(text, { ...inner, input: inherited, elsewhere: elsewhere || command.role === "candidate" })
  }
}

/** What running `text` with bash may run. */
export const readShell = (text: string): ShellScript => {
  if (text.length > maxChars) return { text, commands: [], opaque: [], faults: [`longer than ${maxChars} characters`] }
  const reader = new Reader()
  try {
    reader.script(text, { input: inherited, via: [], depth: 0, elsewhere: false })
  } catch (error) {
    reader.faults.add(`it cannot be parsed: ${error instanceof Error ? error.message : String(error)}`)
  }
  if (reader.evaluates && reader.substitutesQuoted)
    reader.opaque.push({ source: text, reason: "a quoted text with a substitution may be evaluated", code: false })
  const { commands, faults, opaque } = reader
  return { text, commands, opaque, faults: [...faults] }
}
