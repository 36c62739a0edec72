/**
 * Shells and interpreters: programs that read a program from their line or their input. A shell's is judged, the code of another language is
 * opaque.
 */
import { type Carried, nothing, opaqueFor } from "./carried.ts"
import { firstOperand } from "./options.ts"
import type { ShellCommand } from "./script.ts"
import type { ShellWord } from "./word.ts"

export const shells = new Set([
  "sh",
  "bash",
  "dash",
  "zsh",
  "ksh",
  "mksh",
  "ash",
  "rbash",
  "fish",
  "csh",
  "tcsh",
  "pwsh",
  "elvish",
  "nu",
])
const bourne = new Set(["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash"])
export const ownInput = new Set(["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"])

/** What a shell or an interpreter without a program file reads from its input. */
const fromInput = ({ input, redirects }: ShellCommand, what: string, isShell: boolean): Carried => {
  if (redirects.some((redirect) => redirect.operator === "<" && redirect.target.value === null))
    return opaqueFor(`${what} reads its program from something that is not known`, !isShell)
  if (input.type === "pipe") return opaqueFor(`${what} reads its program from a pipe`, !isShell)
  if (input.type !== "text") return nothing
  if (!isShell || input.value === null) return opaqueFor(`${what} reads its program from a text`, !isShell)
  return { ...nothing, transparent: true, scripts: [{ text: input.value }] }
}

export const shell = (program: string, command: ShellCommand): Carried => {
  const { words } = command
  const spec = { short: "oO", long: ["rcfile", "init-file"] }
  const { index, sure } = firstOperand(words, 1, spec)
  if (!sure) return opaqueFor(`an argument of ${program} is not known`)
  const given = words.slice(1, index).map((word) => word.value ?? "")
  const isOption = (letter: string) => given.some((one) => /^[-+][a-zA-Z]+$/.test(one) && one.includes(letter))
  const operand = words[index]
  if (
    given.some((one) => one === "--command" || one === "-Command" || one === "-EncodedCommand") ||
    (isOption("c") && !bourne.has(program))
  )
    return opaqueFor(`${program} has another syntax`)
  if (isOption("c")) {
    if (operand === undefined) return nothing
    return operand.value === null
      ? opaqueFor(`the command of ${program} -c is not known`)
      : { ...nothing, transparent: true, scripts: [{ text: operand.value }] }
  }
  const own = operand === undefined || isOption("s") || ownInput.has(operand.value ?? "")
  if (own) return fromInput(command, program, bourne.has(program))
  return operand.value === null ? opaqueFor(`the program of ${program} is not known`) : nothing
}

/** Interpreters: options that take a program as their value. */
const interpreters: ReadonlyArray<readonly [RegExp, RegExp]> = [
  [/^(python|pypy)[\d.]*$/, /^-[a-zA-Z]*c/],
  [/^(node|nodejs|bun)$/, /^(-[a-zA-Z]*[ep]|--eval|--print)/],
  [/^deno$/, /^eval$/],
  [/^perl[\d.]*$/, /^-[a-zA-Z\d]*[eE]/],
  [/^j?ruby[\d.]*$/, /^-[a-zA-Z]*e/],
  [/^php[\d.]*$/, /^-[rBRE]/],
  [/^lua(jit)?[\d.]*$/, /^-e/],
  [
    /^(Rscript|R|julia|elixir|iex|groovy|scala|ghc|runghc|raku|osascript|sclang|guile|racket|clojure)$/,
    /^(-e|--eval|-E)/,
  ],
  [/^(erl)$/, /^-eval/],
  [/^(expect)$/, /^-c/],
  [/^(gdb|lldb)$/, /^(-ex|-o|--eval-command|--batch)/],
  [/^(vim?|nvim|ex|view|rvim)$/, /^(-c|-S|--cmd|\+)/],
  [/^emacs$/, /^(--eval|-eval|-f|--funcall|-l|--load)/],
]

export const interpreter = (program: string, command: ShellCommand): Carried | null => {
  const entry = interpreters.find(([name]) => name.test(program))
  if (entry === undefined) return null
  const { words } = command
  if (words.slice(1).some((word) => word.value !== null && entry[1].test(word.value)))
    return opaqueFor(`code that ${program} runs is not judged`, true)
  const operand = words
    .slice(1)
    .find((word) => word.value === null || !word.value.startsWith("-") || word.value === "-")
  if (operand === undefined || ownInput.has(operand.value ?? "")) return fromInput(command, program, false)
  return nothing
}

const awkRuns = /system\s*\(|getline|\||@load|@include|>/

export const awk = (words: ReadonlyArray<ShellWord>): Carried => {
  const { index } = firstOperand(words, 1, { short: "Fvfile", long: ["field-separator", "assign", "file"] })
  const program = words[index]
  if (program === undefined) return nothing
  if (program.value === null) return opaqueFor("the program of awk is not known", true)
  return awkRuns.test(program.value) ? opaqueFor("the program of awk may run commands or write files", true) : nothing
}
