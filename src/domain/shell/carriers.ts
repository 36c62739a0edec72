/**
 * Programs that run another program: what they carry is judged as well, or it is opaque.
 *
 * The list cannot be complete. A program that is not on it and runs its arguments needs a permission of its own in `accept-edits`; in
 * `auto` a deny pattern does not see through it.
 */
import { type Carried, nothing, opaqueFor } from "./carried.ts"
import { awk, interpreter, ownInput, shell, shells } from "./interpreters.ts"
import { firstOperand, type OptionSpec } from "./options.ts"
import type { ShellCommand } from "./script.ts"
import { programOf } from "./script.ts"
import { known, open, type ShellWord } from "./word.ts"

interface Prefix extends OptionSpec {
  /** Operands before the command: the duration of `timeout`. */
  readonly operands?: number
  readonly transparent?: boolean
  /** Whether `NAME=value` may come before the command. */
  readonly assigns?: boolean
  /** Options with which nothing is run. */
  readonly only?: ReadonlyArray<string>
}

/** Programs of the form `program [options] [operands] command…`. */
const prefixes: Readonly<Record<string, Prefix>> = {
  nohup: { transparent: true },
  setsid: { transparent: true },
  command: { transparent: true, only: ["-v", "-V"] },
  builtin: { transparent: true },
  exec: { short: "a", transparent: true },
  noglob: { transparent: true },
  nice: { short: "n", long: ["adjustment"], transparent: true },
  ionice: { short: "cnpPu", long: ["class", "classdata"], transparent: true },
  timeout: { short: "sk", long: ["signal", "kill-after"], operands: 1, transparent: true },
  gtimeout: { short: "sk", long: ["signal", "kill-after"], operands: 1, transparent: true },
  stdbuf: { short: "ioe", long: ["input", "output", "error"], transparent: true },
  time: { short: "fo", long: ["format", "output"], transparent: true },
  gtime: { short: "fo", long: ["format", "output"], transparent: true },
  env: { short: "uC", long: ["unset", "chdir"], assigns: true, transparent: true },
  busybox: { transparent: true },
  toybox: { transparent: true },
  unbuffer: { transparent: true },
  caffeinate: { short: "tw", transparent: true },
  chrt: { operands: 1 },
  taskset: { operands: 1 },
  numactl: { short: "CNmp" },
  sudo: {
    short: "aCcDghpRrTtUu",
    long: ["user", "group", "prompt", "host", "close-from", "chdir", "chroot", "role", "type", "other-user"],
    assigns: true,
  },
  doas: { short: "uC" },
  run0: { short: "ugD", assigns: true },
  pkexec: { long: ["user"] },
  chroot: { long: ["userspec", "groups"], operands: 1 },
  unshare: { short: "RwSGl", long: ["root", "wd", "setuid", "setgid"] },
  nsenter: { short: "tSGrw", long: ["target"] },
  setpriv: { long: ["reuid", "regid", "groups"] },
  setarch: { operands: 1 },
  prlimit: { short: "p" },
  cpulimit: { short: "lpe" },
  strace: { short: "oepsabESOPUuXI" },
  ltrace: { short: "oepsanuFl" },
  perf: { operands: 1 },
  valgrind: {},
  gdb: { short: "x" },
  rlwrap: { short: "afHDpP" },
  "xvfb-run": { short: "efnps" },
  "dbus-run-session": {},
  "systemd-run": { short: "pEtuMH", long: ["property", "setenv", "unit", "slice", "uid", "gid"] },
  "systemd-inhibit": {},
  fakeroot: { short: "lisb" },
  faketime: { operands: 1 },
  firejail: {},
  bwrap: {},
  proxychains: { short: "f" },
  proxychains4: { short: "f" },
  torsocks: { short: "uPap" },
  "ssh-agent": { short: "at" },
  dotenv: { short: "efv" },
  "cross-env": { assigns: true },
  direnv: { operands: 2 },
  entr: {},
  setuidgid: { operands: 1 },
  softlimit: {},
  chpst: { short: "uUbe/nlmdopfcrt0" },
}

const assignment = /^([A-Za-z_]\w*)=(.*)$/s

const prefixed = (spec: Prefix, { words }: ShellCommand): Carried => {
  const transparent = spec.transparent === true
  const { index, sure } = firstOperand(words, 1, spec)
  const given = words.slice(1, index).map((word) => word.value)
  if (spec.only?.some((option) => given.includes(option))) return nothing
  const assignments: Array<ShellCommand["assignments"][number]> = []
  let from = index + (spec.operands ?? 0)
  for (let word = words[from]; spec.assigns === true && word !== undefined; word = words[++from]) {
    const match = assignment.exec(word.value ?? word.start)
    if (match === null) break
    const [, name = "", value = ""] = match
    assignments.push({ name, value: word.value === null ? open(word.text) : known(value) })
  }
  const inner = words.slice(from)
  if (!sure)
    return {
      ...nothing,
      commands: [{ words: inner, assignments, candidate: true }],
      opaque: ["an argument before the command is not known"],
    }
  if (inner.length === 0 && assignments.length === 0) return nothing
  return {
    ...nothing,
    transparent: transparent && inner.length > 0,
    commands: inner.length === 0 ? [] : [{ words: inner, assignments }],
  }
}

const findRuns = new Set(["-exec", "-execdir", "-ok", "-okdir"])

/** `{}` and whatever else is put in place of a word is known when it runs. */
const replaced = (words: ReadonlyArray<ShellWord>, marker: string): ReadonlyArray<ShellWord> =>
  words.map((word) => {
    const at = word.value?.indexOf(marker) ?? -1
    return at === -1 ? word : open(word.text, word.value?.slice(0, at), false)
  })

/** As many commands of one find are read. */
const maxFindCommands = 32

const find = (words: ReadonlyArray<ShellWord>): Carried => {
  const commands: Array<{ readonly words: ReadonlyArray<ShellWord> }> = []
  for (let index = 1; index < words.length; index++) {
    if (!findRuns.has(words[index]?.value ?? "")) continue
    if (commands.length === maxFindCommands) return { ...nothing, commands, opaque: ["find runs too many commands"] }
    const end = words.findIndex((word, at) => at > index && (word.value === ";" || word.value === "+"))
    const inner = words.slice(index + 1, end === -1 ? undefined : end)
    if (inner.length > 0) commands.push({ words: replaced(inner, "{}") })
  }
  return { ...nothing, commands }
}

const xargs = (words: ReadonlyArray<ShellWord>): Carried => {
  const spec = {
    short: "adEIiLlnPs",
    long: ["arg-file", "delimiter", "max-args", "max-lines", "max-procs", "replace", "max-chars"],
  }
  const { index, sure } = firstOperand(words, 1, spec)
  const inner = words.slice(index)
  if (!sure)
    return { ...nothing, commands: [{ words: inner, candidate: true }], opaque: ["an argument of xargs is not known"] }
  if (inner.length === 0) return nothing
  const given = words.slice(1, index).map((word) => word.value ?? "")
  const at = given.findIndex((one) => /^-[a-z0-9]*I/.test(one) || one.startsWith("--replace") || one.startsWith("-i"))
  const attached = /^(?:-[a-z0-9]*I|-i|--replace=)(.+)$/.exec(given[at] ?? "")?.[1]
  const marker = at === -1 ? null : (attached ?? (/I$/.test(given[at] ?? "") ? given[at + 1] : undefined) ?? "{}")
  return {
    ...nothing,
    commands: [{ words: marker === null ? [...inner, open("…")] : replaced(inner, marker) }],
  }
}

/** All words from `from` on as one text, or null where it is not known. */
const textFrom = (words: ReadonlyArray<ShellWord>, from: number): string | null => {
  const rest = words.slice(from)
  return rest.some((word) => word.value === null) ? null : rest.map((word) => word.value).join(" ")
}

const scriptFrom = (
  words: ReadonlyArray<ShellWord>,
  from: number,
  what: string,
  transparent: boolean,
  elsewhere = false,
): Carried => {
  if (words.length <= from) return nothing
  const text = textFrom(words, from)
  return text === null
    ? opaqueFor(`the command of ${what} is not known`)
    : { ...nothing, transparent, scripts: [{ text, elsewhere }] }
}

/** Any word may be where the command begins. */
const candidates = (words: ReadonlyArray<ShellWord>, from: number): Carried => ({
  ...nothing,
  commands: words
    .slice(from, from + 24)
    .flatMap((word, index) =>
      word.value?.startsWith("-") ? [] : [{ words: words.slice(from + index), candidate: true }],
    ),
})

const gitAlias = /^alias\.[^=]+=!(.*)$/s

const git = (words: ReadonlyArray<ShellWord>): Carried => {
  const scripts: Array<{ readonly text: string }> = []
  const opaque: Array<string> = []
  for (const [index, word] of words.entries()) {
    const setting =
      word.value === "-c"
        ? words[index + 1]
        : word.value?.startsWith("-calias.")
          ? known(word.value.slice(2))
          : undefined
    if (setting === undefined) continue
    if (setting.value === null) opaque.push("a setting of git -c is not known")
    const alias = gitAlias.exec(setting.value ?? "")
    if (alias !== null) scripts.push({ text: alias[1] ?? "" })
  }
  const at = (name: string) => words.findIndex((word) => word.value === name)
  const foreach = at("submodule") === -1 ? -1 : at("foreach")
  const run = at("bisect") === -1 ? -1 : at("run")
  if (foreach !== -1) {
    const { index } = firstOperand(words, foreach + 1, {})
    const text = textFrom(words, index)
    if (text === null) opaque.push("the command of git submodule foreach is not known")
    else if (text !== "") scripts.push({ text })
  }
  const execs = words.flatMap((word, index) => {
    if (word.value?.startsWith("--exec=")) return [known(word.value.slice(7))]
    if (word.value === "--exec" || (word.value === "-x" && at("rebase") !== -1))
      return words.slice(index + 1, index + 2)
    return []
  })
  for (const one of execs) {
    if (one.value === null) opaque.push("the command of git --exec is not known")
    else scripts.push({ text: one.value })
  }
  return { transparent: false, commands: run === -1 ? [] : [{ words: words.slice(run + 1) }], scripts, opaque }
}

const trap = (words: ReadonlyArray<ShellWord>): Carried => {
  const { index } = firstOperand(words, 1, {})
  const action = words[index]
  if (action === undefined || action.value === "" || action.value === "-") return nothing
  return action.value === null
    ? opaqueFor("the command of trap is not known")
    : { ...nothing, transparent: true, scripts: [{ text: action.value }] }
}

const source = (command: ShellCommand): Carried => {
  const file = command.words[1]
  if (file === undefined) return nothing
  return file.value === null || ownInput.has(file.value)
    ? opaqueFor("a script that is not known is read into this shell")
    : nothing
}

/** The script behind an option such as `su -c`. */
const optionScript = (words: ReadonlyArray<ShellWord>, option: RegExp, what: string): Carried => {
  const at = words.findIndex((word) => word.value !== null && option.test(word.value))
  return at === -1 ? nothing : scriptFrom(words.slice(0, at + 2), at + 1, what, false)
}

const containers = new Set([
  "docker",
  "podman",
  "nerdctl",
  "kubectl",
  "oc",
  "lxc",
  "incus",
  "multipass",
  "vagrant",
  "distrobox",
  "toolbox",
  "wsl",
])
const packageRunners = new Set([
  "npx",
  "bunx",
  "pnpx",
  "uvx",
  "pipx",
  "uv",
  "poetry",
  "pipenv",
  "conda",
  "mamba",
  "hatch",
  "pdm",
  "nix",
  "nix-shell",
  "nix-run",
  "bundle",
  "mise",
  "asdf",
  "rtx",
  "volta",
  "dotenvx",
  "op",
  "doppler",
  "aws-vault",
  "infisical",
  "chamber",
  "just",
  "rustup",
])
const packageManagers = new Set(["npm", "pnpm", "yarn", "bun"])

/** What a command carries; null where its program runs nothing that is written on its line. */
export const carriedBy = (command: ShellCommand): Carried | null => {
  const program = programOf(command)
  const { words } = command
  if (program === null) return null
  if (shells.has(program)) return shell(program, command)
  if (program === "env") {
    const split = words.findIndex((word) => word.value !== null && /^(-[a-zA-Z0]*S|--split-string)/.test(word.value))
    if (split !== -1) {
      const attached = /^(?:-[a-zA-Z0]*S|--split-string=)(.+)$/s.exec(words[split]?.value ?? "")?.[1]
      const rest = attached === undefined ? words.slice(split + 1) : [known(attached), ...words.slice(split + 1)]
      return scriptFrom(rest, 0, "env -S", true)
    }
  }
  const prefix = Object.hasOwn(prefixes, program) ? prefixes[program] : undefined
  if (prefix !== undefined) return prefixed(prefix, command)
  switch (program) {
    case "eval":
      return scriptFrom(words, 1, "eval", true)
    case "xargs":
    case "gxargs":
      return xargs(words)
    case "find":
    case "gfind":
      return find(words)
    case "git":
      return git(words)
    case "trap":
      return trap(words)
    case "source":
    case ".":
      return source(command)
    case "awk":
    case "gawk":
    case "mawk":
    case "nawk":
      return awk(words)
    case "alias":
      return {
        ...nothing,
        scripts: words
          .slice(1)
          .flatMap((word) =>
            word.value?.includes("=") ? [{ text: word.value.slice(word.value.indexOf("=") + 1) }] : [],
          ),
      }
    case "su":
    case "runuser":
    case "script":
      return optionScript(words, /^(-[a-z]*c|--command|--session-command)$/, program)
    case "flock": {
      const byOption = optionScript(words, /^(-c|--command)$/, program)
      return byOption.scripts.length + byOption.opaque.length > 0
        ? byOption
        : prefixed({ short: "wE", operands: 1 }, command)
    }
    case "watch": {
      const { index, sure } = firstOperand(words, 1, { short: "n", long: ["interval"] })
      return sure ? scriptFrom(words, index, "watch", false) : opaqueFor("an argument of watch is not known")
    }
    case "parallel":
      return { ...candidates(words, 1), opaque: ["the commands of parallel are not known"] }
    case "ssh": {
      const { index, sure } = firstOperand(words, 1, { short: "BbcDEeFIiJLlmOopPQRSWw" })
      return sure ? scriptFrom(words, index + 1, "ssh", false, true) : opaqueFor("an argument of ssh is not known")
    }
    case "mapfile":
    case "readarray":
      return optionScript(words, /^-C$/, program)
    default:
  }
  if (containers.has(program) || packageRunners.has(program)) return candidates(words, 1)
  if (packageManagers.has(program)) return candidates(words, 2)
  return interpreter(program, command)
}
