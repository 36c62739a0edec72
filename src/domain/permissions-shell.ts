/**
 * What the lists of commands say of one shell command. Pure; the rules:
 *
 * 1. A deny pattern that matches any command in it, wherever it is written, blocks.
 * 2. What may match a deny pattern, because something is not known, asks; so does whatever cannot be read while there is anything to deny.
 * 3. It is allowed only where every command in it is, by a pattern or because it changes nothing (`cd`, `true`, `test`).
 */
import { allows, type CommandPattern, denies } from "./shell/pattern.ts"
import { programOf, type ShellCommand, type ShellScript } from "./shell/script.ts"

/** Why a command is not simply allowed. `pattern` is the deny pattern. */
export interface ShellFinding {
  readonly level: "ask" | "block"
  readonly pattern: string | null
  readonly reason: string
}

const short = (source: string): string => (source.length > 120 ? `${source.slice(0, 117)}…` : source)

const quoted = ({ source, via }: ShellCommand): string =>
  via.length === 0 ? `\`${short(source)}\`` : `\`${short(source)}\` (run by ${via.join(", ")})`

/** What `deny` says: null where nothing in the command may match it. */
export const judgeDenied = (script: ShellScript, deny: ReadonlyArray<CommandPattern>): ShellFinding | null => {
  if (deny.length === 0) return null
  let maybe: ShellFinding | null = null
  for (const command of script.commands) {
    for (const pattern of deny) {
      const match = denies(pattern, command)
      if (match === "yes")
        return {
          level: "block",
          pattern: pattern.text,
          reason: `${quoted(command)} matches the denied "${pattern.text}"`,
        }
      if (match === "maybe" && maybe === null)
        maybe = {
          level: "ask",
          pattern: pattern.text,
          reason: `${quoted(command)} may match the denied "${pattern.text}"`,
        }
    }
  }
  if (maybe !== null) return maybe
  const unknown = script.opaque[0]
  if (unknown === undefined) return null
  const reason = `${unknown.reason} in \`${short(unknown.source)}\`, so that the denied commands cannot be ruled out`
  return { level: "ask", pattern: null, reason }
}

const settings =
  /^[-+][euxvfhmnCEBTP]*o?$|^(errexit|nounset|xtrace|pipefail|noglob|noclobber|errtrace|functrace|verbose|posix)$/

/** Programs of the shell itself that change nothing outside of it. */
const neutral = (command: ShellCommand): boolean => {
  const program = command.words[0]?.value
  if (command.words.some((word) => /\$\(|`/.test(word.value ?? ""))) return false
  const args = command.words.slice(1)
  switch (program) {
    case "true":
    case "false":
    case ":":
    case "pwd":
    case "exit":
    case "return":
    case "break":
    case "continue":
    case "wait":
      return args.every((word) => word.value !== null && !word.value.startsWith("-p"))
    case "cd":
      return args.every((word) => word.value !== null)
    case "test":
    case "[":
      return !args.some((word) => word.value === "-v" || word.value === "-R" || (word.value === null && word.splits))
    case "set":
      return args.every((word) => word.value !== null && settings.test(word.value))
    default:
      return false
  }
}

/** Variables of the environment that change no program's behaviour in a way that matters here. */
const harmless =
  /^(NODE_ENV|CI|FORCE_COLOR|NO_COLOR|CLICOLOR|CLICOLOR_FORCE|TERM|COLUMNS|LINES|LANG|LANGUAGE|LC_[A-Z]+|TZ|RUST_BACKTRACE|RUST_LOG|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE|GOOS|GOARCH|CGO_ENABLED|GIT_TERMINAL_PROMPT|NODE_NO_WARNINGS|VERBOSE|QUIET)$/

/** Names with a small letter are variables of the script, save for those that programs look at. */
const ownVariable = /^(?!(https?|ftp|all|no)_proxy$|npm_config_|cdpath$|fpath$|path$|prompt)[A-Za-z_]*[a-z]\w*$/

const assignmentFault = (command: ShellCommand, pattern: CommandPattern | null): string | null => {
  const bad = command.assignments.find(({ name, value }) => {
    if (harmless.test(name)) return false
    if (command.words.length === 0 && ownVariable.test(name)) return false
    const allowed = pattern?.assignments.find((one) => one.name === name)
    return allowed === undefined || value.value === null || !allowed.value.test(value.value)
  })
  return bad === undefined ? null : `the assignment of ${bad.name} is not allowed`
}

/** Why the command is not allowed by the list, or null. */
const gap = (command: ShellCommand, allow: ReadonlyArray<CommandPattern>): string | null => {
  if (command.role !== "command" || command.words.length === 0 || neutral(command)) {
    const fault = assignmentFault(command, null)
    return fault === null ? null : `${quoted(command)}: ${fault}`
  }
  let why = `${quoted(command)} is not in permissions.allow`
  for (const pattern of allow) {
    const result = allows(pattern, command)
    if (result === false) continue
    const fault = result === true ? assignmentFault(command, pattern) : result
    if (fault === null) return null
    why = `${quoted(command)} is not allowed by "${pattern.text}": ${fault}`
  }
  return why
}

/** Whether the directory of a command may be another one than the workspace's, and it reads its configuration there. */
const movesGit = (script: ShellScript, allow: ReadonlyArray<CommandPattern>): boolean => {
  const named = (name: string) => (command: ShellCommand) => programOf(command) === name
  const moves = script.commands.find((command) => named("cd")(command) || named("pushd")(command))
  return (
    moves !== undefined &&
    moves.words.length > 1 &&
    script.commands.some(named("git")) &&
    !allow.some((pattern) => allows(pattern, moves) === true)
  )
}

/** What `allow` says: null where every command is allowed. */
export const judgeAllowed = (script: ShellScript, allow: ReadonlyArray<CommandPattern>): ShellFinding | null => {
  const ask = (reason: string): ShellFinding => ({ level: "ask", pattern: null, reason })
  const fault = script.faults[0]
  if (fault !== undefined) return ask(`the command cannot be judged: ${fault}`)
  for (const command of script.commands) {
    const why = gap(command, allow)
    if (why !== null) return ask(why)
  }
  const unknown = script.opaque.find((one) => !one.code)
  if (unknown !== undefined) return ask(`${unknown.reason}: \`${short(unknown.source)}\``)
  if (movesGit(script, allow)) return ask("git in another directory may run what that directory's configuration says")
  return null
}

/** Patterns that allow, or deny, exactly what the command is: what an answer "always" keeps. Empty where no pattern says it. */
export const patternsOf = (script: ShellScript, allow: ReadonlyArray<CommandPattern>): ReadonlyArray<string> => {
  if (script.faults.length > 0 || script.opaque.length > 0) return []
  const patterns: Array<string> = []
  for (const command of script.commands) {
    if (gap(command, allow) === null) continue
    const assigned = command.assignments.map(({ name, value }) =>
      value.value === null ? null : `${name}=${quote(value.value)}`,
    )
    const words = [...assigned, ...command.words.map(({ value }) => (value === null ? null : quote(value)))]
    if (words.some((word) => word === null)) return []
    patterns.push(words.join(" "))
  }
  return [...new Set(patterns)]
}

/** A word of a pattern; null where a pattern cannot say it. */
const quote = (value: string): string | null => {
  if (/[;|&<>`\n*]|\$\(/.test(value) || (value.includes("'") && value.includes('"'))) return null
  if (value !== "" && !/[\s'"]/.test(value)) return value
  return value.includes("'") ? `"${value}"` : `'${value}'`
}
