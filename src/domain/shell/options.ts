/**
 * Options and operands of a command, by the conventions that most programs follow.
 */
import type { ShellWord } from "./word.ts"

/** Options of a program that take the next word as their value. */
export interface OptionSpec {
  /** Letters. */
  readonly short?: string
  /** Names without dashes. */
  readonly long?: ReadonlyArray<string>
}

const takesNext = (value: string, { long = [], short = "" }: OptionSpec): boolean => {
  if (value.startsWith("--")) return !value.includes("=") && long.includes(value.slice(2))
  const at = [...value.slice(1)].findIndex((letter) => short.includes(letter))
  return at !== -1 && at === value.length - 2
}

/** Index of the first operand from `from` on; `sure` is false where a word that is not known could shift it. */
export const firstOperand = (
  words: ReadonlyArray<ShellWord>,
  from: number,
  spec: OptionSpec,
): { readonly index: number; readonly sure: boolean } => {
  let sure = true
  let index = from
  for (let word = words[index]; word !== undefined; word = words[index]) {
    if (word.splits) sure = false
    if (word.value === null) {
      if (!word.start.startsWith("-")) return { index, sure: sure && word.start !== "" }
      index++
      continue
    }
    if (word.value === "--") return { index: index + 1, sure }
    if (!word.value.startsWith("-") || word.value === "-") return { index, sure }
    if (takesNext(word.value, spec)) {
      if (words[index + 1]?.splits === true) sure = false
      index++
    }
    index++
  }
  return { index, sure }
}

/** Options before the subcommand that take a value, for programs with subcommands. */
const globalOptions: Readonly<Record<string, OptionSpec>> = {
  git: {
    short: "Cc",
    long: ["git-dir", "work-tree", "namespace", "exec-path", "super-prefix", "config-env", "attr-source"],
  },
  docker: { short: "Hcl", long: ["config", "context", "host", "log-level", "tlscacert", "tlscert", "tlskey"] },
  podman: { short: "c", long: ["connection", "url", "root", "runroot", "log-level", "identity"] },
  kubectl: { short: "ns", long: ["namespace", "context", "kubeconfig", "cluster", "user", "server", "token", "as"] },
  helm: { short: "n", long: ["namespace", "kube-context", "kubeconfig"] },
  npm: { short: "Cw", long: ["prefix", "workspace", "userconfig", "registry", "cache"] },
  pnpm: { short: "CF", long: ["dir", "filter"] },
  yarn: { long: ["cwd"] },
  cargo: { short: "CZ", long: ["config", "color"] },
  go: { short: "C" },
  terraform: {},
  gh: { short: "R", long: ["repo", "hostname"] },
  aws: { long: ["profile", "region", "endpoint-url", "output", "query"] },
  gcloud: { long: ["project", "account", "configuration", "format"] },
  systemctl: { short: "HMpt", long: ["host", "machine", "type", "state", "property"] },
}

export interface Options {
  /** Each once, canonical: `-r` for `-R` and `--recursive`, `-f` for `--force`. */
  readonly options: ReadonlySet<string>
  readonly operands: ReadonlyArray<ShellWord>
  /** Whether a word that is not known could be an option, or more words. */
  readonly open: boolean
}

const synonyms: Readonly<Record<string, string>> = { "-R": "-r", "--recursive": "-r", "--force": "-f" }
const abbreviated = ["--recursive", "--force", "--delete", "--hard"]

/** GNU programs take the beginning of a long option for the option. */
const fullName = (option: string): string =>
  option.length < 5 ? option : (abbreviated.find((name) => name.startsWith(option)) ?? option)

export const canonicalOption = (option: string): string => {
  const full = option.startsWith("--") ? fullName(option.split("=")[0] ?? option) : option
  return synonyms[full] ?? full
}

/** `-rf` is `-r` and `-f`, and `-rf` as well: some programs have long options with one dash. */
export const optionsIn = (value: string): ReadonlyArray<string> =>
  value.startsWith("--") || value.length === 2
    ? [canonicalOption(value)]
    : [value, ...[...value.slice(1)].map((letter) => canonicalOption(`-${letter}`))]

/** Whether the word may be an option when it runs. */
export const maybeOption = (word: ShellWord): boolean =>
  word.value === null
    ? word.start === "" || word.start.startsWith("-")
    : word.value.startsWith("-") && word.value !== "-"

export const optionsOf = (program: string, words: ReadonlyArray<ShellWord>): Options => {
  const spec = globalOptions[program] ?? {}
  const options = new Set<string>()
  const operands: Array<ShellWord> = []
  let isOpen = false
  let ended = false
  for (let index = 1; index < words.length; index++) {
    const word = words[index]
    if (word === undefined) break
    if (word.splits || (word.value === null && maybeOption(word) && !ended)) isOpen = true
    if (ended || word.value === null || !maybeOption(word)) {
      operands.push(word)
      continue
    }
    if (word.value === "--") {
      ended = true
      continue
    }
    for (const option of optionsIn(word.value)) options.add(option)
    if (operands.length === 0 && takesNext(word.value, spec)) index++
  }
  return { options, operands, open: isOpen }
}
