/**
 * Arguments with which a program does something else than its name says: runs another program, loads code, or writes a file of the caller's
 * choice. A pattern with `:*` does not cover them; one that names the argument itself does.
 *
 * From public reports on agents whose allow lists named harmless programs, and from GTFOBins.
 */
import { maybeOption } from "./options.ts"
import { known, type ShellWord } from "./word.ts"

interface Escapes {
  /** Letters of short options, alone or in a cluster. */
  readonly short?: string
  /** Long options, with their dashes; a value behind `=` does not matter, nor does a shortened name. */
  readonly long?: ReadonlyArray<string>
  /** Arguments as a whole. */
  readonly argument?: RegExp
  /** The first operand, as a whole. */
  readonly first?: RegExp
  /** More operands than this write a file. */
  readonly operands?: number
  /** What the program that it is given, its first operand or behind `-e`, may be. */
  readonly script?: (text: string) => boolean
}

const sedAddress = /^\s*((\d+|\$|\/[^/]*\/)(,\s*(\d+|\$|\+\d+|\/[^/]*\/))?\s*)?!?\s*/
const sedCommand = /^([pdqn=]?|s([/|#,@:])((?!\2)[^\\]|\\.)*\2((?!\2)[^\\]|\\.)*\2[gpiI\d]*)\s*$/

/** Scripts of sed that only print: addresses with p, d, q, n or =, and substitutions without the flags that run or write. */
const sedPrints = (script: string): boolean =>
  script.length < 1000 && script.split(";").every((one) => sedCommand.test(one.replace(sedAddress, "")))

const awk: Escapes = {
  short: "fil",
  long: ["--file", "--include", "--load", "--exec"],
  argument: /system\s*\(|getline|\||@load|@include|>/,
}
const editor: Escapes = { argument: /^./ }
const packages: Escapes = {
  short: "C",
  long: ["--prefix", "--cwd", "--dir", "--script-shell", "--node-options", "--userconfig", "--globalconfig", "--shell"],
}
const transfer: Escapes = {
  short: "oOKTdFJ",
  long: [
    "--output",
    "--remote-name",
    "--output-dir",
    "--config",
    "--upload-file",
    "--data",
    "--data-binary",
    "--data-raw",
    "--data-urlencode",
    "--form",
    "--json",
    "--post-data",
    "--post-file",
    "--body-data",
    "--body-file",
    "--output-document",
    "--input-file",
    "--use-askpass",
    "--execute",
    "--dump-header",
    "--cookie-jar",
    "--trace",
    "--trace-ascii",
    "--engine",
    "--netrc-file",
    "--proxy",
    "--unix-socket",
  ],
}

const table: Readonly<Record<string, Escapes>> = {
  git: {
    short: "cCO",
    long: [
      "--config-env",
      "--config",
      "--exec-path",
      "--git-dir",
      "--work-tree",
      "--upload-pack",
      "--receive-pack",
      "--output",
      "--output-directory",
      "--ext-diff",
      "--textconv",
      "--open-files-in-pager",
      "--exec",
      "--extcmd",
      "--template",
      "--separate-git-dir",
      "--no-index",
    ],
    argument: /^(ext|fd)::|^-(x|o).*/,
    first:
      /^(config|difftool|mergetool|filter-branch|daemon|instaweb|send-email|web--browse|hook|credential|fast-export|archive)$/,
  },
  find: { argument: /^-(delete|fprint0?|fprintf|fls)$/ },
  fd: { short: "xX", long: ["--exec", "--exec-batch"] },
  fdfind: { short: "xX", long: ["--exec", "--exec-batch"] },
  rg: { short: "z", long: ["--pre", "--hostname-bin", "--search-zip"] },
  sort: { short: "oTS", long: ["--output", "--compress-program", "--temporary-directory", "--files0-from"] },
  uniq: { operands: 1 },
  sed: { short: "iIf", long: ["--in-place", "--file"], script: sedPrints },
  awk,
  gawk: awk,
  mawk: awk,
  nawk: awk,
  tar: {
    short: "IFPC",
    long: [
      "--checkpoint-action",
      "--to-command",
      "--use-compress-program",
      "--rsh-command",
      "--info-script",
      "--new-volume-script",
      "--absolute-names",
      "--directory",
    ],
  },
  zip: { short: "T", long: ["--test", "--unzip-command"], argument: /^-TT/ },
  unzip: { short: "d" },
  curl: transfer,
  wget: transfer,
  rsync: { short: "e", long: ["--rsh", "--rsync-path", "--write-batch", "--log-file"] },
  ssh: { short: "oFSJDLRwI", argument: /^-E/ },
  scp: { short: "oFSJD" },
  sftp: { short: "oFSbD" },
  man: { short: "PHC", long: ["--pager", "--html", "--config-file", "--preprocessor"] },
  less: { short: "oOkK", long: ["--log-file", "--LOG-FILE", "--lesskey-file"], argument: /^\+/ },
  more: { argument: /^\+/ },
  vi: editor,
  vim: editor,
  nvim: editor,
  ex: editor,
  ed: editor,
  emacs: editor,
  nano: { short: "sT", long: ["--speller"] },
  npm: packages,
  pnpm: packages,
  yarn: packages,
  bun: packages,
  npx: { short: "cp", long: ["--call", "--package", "--node-options", "--script-shell"] },
  node: {
    short: "eprC",
    long: [
      "--eval",
      "--print",
      "--require",
      "--import",
      "--loader",
      "--experimental-loader",
      "--env-file",
      "--inspect",
      "--inspect-brk",
      "--test-reporter-destination",
      "--cpu-prof",
      "--heap-prof",
      "--redirect-warnings",
    ],
  },
  pytest: { short: "pco", long: ["--rootdir", "--confcutdir", "--junitxml", "--basetemp", "--override-ini"] },
  go: {
    short: "oC",
    long: [
      "-exec",
      "--exec",
      "-toolexec",
      "--toolexec",
      "-overlay",
      "-modfile",
      "-o",
      "-ldflags",
      "-gcflags",
      "-vettool",
      "--vettool",
    ],
    argument: /^-(exec|toolexec|overlay|modfile|ldflags|vettool)(=|$)/,
  },
  cargo: { short: "ZC", long: ["--config", "--target-dir", "--manifest-path", "--out-dir", "--artifact-dir"] },
  make: {
    short: "fCIE",
    long: ["--file", "--makefile", "--directory", "--eval", "--include-dir"],
    argument: /^[A-Za-z_][\w.]*[:+?!]?=/,
  },
  gmake: {
    short: "fCIE",
    long: ["--file", "--makefile", "--directory", "--eval"],
    argument: /^[A-Za-z_][\w.]*[:+?!]?=/,
  },
  jq: { short: "fL", long: ["--from-file", "--rawfile", "--slurpfile", "--library-path"], argument: /\$ENV|\benv\b/ },
  yq: { short: "i", long: ["--inplace", "--from-file", "--split-exp"], argument: /\bload|env\b/ },
  date: { short: "sf", long: ["--set", "--file"] },
  hostname: { short: "FbB", long: ["--file"], operands: 0 },
  file: { short: "mCf", long: ["--magic-file", "--compile", "--files-from"] },
  tree: { short: "oR" },
  xxd: { short: "r", operands: 1 },
  split: { long: ["--filter"] },
  diff: { short: "o", long: ["--output", "--from-file", "--to-file"] },
  iconv: { short: "o", long: ["--output"] },
  tcpdump: { short: "zwZ", long: ["--postrotate-command"] },
  nmap: { short: "o", long: ["--script", "--datadir"] },
  openssl: { argument: /^-(engine|provider|provider-path|out|writerand)$/ },
  base64: { short: "o", long: ["--output"] },
  ps: { argument: /^[a-z]*e[a-z]*$/ },
  docker: { short: "vH", long: ["--volume", "--mount", "--privileged", "--host", "--pid", "--cap-add", "--device"] },
  tsc: { long: ["--outDir", "--outFile", "--build", "--project", "--generateTrace"] },
  eslint: {
    short: "co",
    long: [
      "--config",
      "--rulesdir",
      "--plugin",
      "--resolve-plugins-relative-to",
      "--output-file",
      "--format",
      "--parser",
    ],
  },
  prettier: { long: ["--plugin", "--config", "--plugin-search-dir", "--write"] },
  jest: {
    short: "c",
    long: [
      "--config",
      "--globalSetup",
      "--setupFiles",
      "--runner",
      "--testRunner",
      "--reporters",
      "--outputFile",
      "--rootDir",
    ],
  },
  vitest: { short: "cr", long: ["--config", "--root", "--outputFile", "--reporter", "--globalSetup", "--dir"] },
}

/** The options of `value` that are letters: `-rf` has `r` and `f`. Those behind a letter with a value are not told apart from more letters. */
const letters = (value: string): string => (/^-[^-]/.test(value) ? value.slice(1) : "")

const longMatches = (value: string, names: ReadonlyArray<string>): string | undefined => {
  if (!value.startsWith("-")) return undefined
  const name = value.split("=")[0] ?? value
  return names.find((one) => one === name || (name.startsWith("--") && name.length > 4 && one.startsWith(name)))
}

/** Scripts among the arguments: behind `-e`, else the first operand. */
const scriptsIn = (free: ReadonlyArray<ShellWord>): ReadonlyArray<ShellWord> => {
  const behind = free.flatMap((word, index) => {
    if (word.value === "-e" || word.value === "--expression") return free.slice(index + 1, index + 2)
    const attached = /^(?:-[nErsuz]*e|--expression=)(.+)$/s.exec(word.value ?? "")?.[1]
    return attached === undefined ? [] : [known(attached)]
  })
  return behind.length > 0 ? behind : free.filter((word) => !word.value?.startsWith("-")).slice(0, 1)
}

const says = (program: string, argument: string): string => `${argument} lets ${program} run programs or write files`

/** What is wrong with arguments that a pattern leaves free, or null. `words` are all of the command's. */
export const escapeOf = (
  program: string,
  words: ReadonlyArray<ShellWord>,
  free: ReadonlyArray<ShellWord>,
): string | null => {
  const escapes = Object.hasOwn(table, program) ? table[program] : undefined
  if (escapes === undefined) return null
  const { argument, first, long = [], script, short = "" } = escapes
  if (
    program === "git" &&
    free.some((word) => word.value?.startsWith("-u")) &&
    words.some((word) => word.value === "clone")
  )
    return says("git clone", "-u")
  const inner =
    script === undefined ? undefined : scriptsIn(free).find((word) => word.value === null || !script(word.value))
  if (inner !== undefined) return says(program, inner.text)
  let operands = 0
  let ended = false
  for (const word of free) {
    if (word.value === null) {
      if (!ended && maybeOption(word)) return `${word.text} may become an option of ${program}`
      if (argument?.test(word.start)) return says(program, word.text)
      operands += word.splits ? 2 : 1
    } else if (word.value === "--" && !ended) ended = true
    else {
      const { value } = word
      const isOption = !ended && value.startsWith("-") && value !== "-"
      const letter = isOption && [...letters(value)].some((one) => short.includes(one))
      if (letter || (isOption && longMatches(value, long) !== undefined) || argument?.test(value))
        return says(program, value)
      if (!isOption && operands === 0 && first?.test(value)) return says(program, value)
      if (!isOption) operands++
    }
    if (escapes.operands !== undefined && operands > escapes.operands) return `${program} writes to ${word.text}`
  }
  return null
}
