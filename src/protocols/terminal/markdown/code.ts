/**
 * A light syntax colour for code blocks, line by line: comments, strings, numbers and keywords of the common languages. What it does not
 * know stays plain. Pure.
 */
import type { Row, Span } from "../spans.ts"
import type { Tone } from "../style.ts"

/** What a line begins inside of: the text that ends it, and its tone. Null outside. */
export type Carry = { readonly until: string; readonly tone: Tone } | null

interface Language {
  readonly comments: ReadonlyArray<string>
  /** Openings and ends of what goes over several lines, with its tone. */
  readonly blocks: ReadonlyArray<readonly [open: string, close: string, tone: Tone]>
  readonly quotes: string
  readonly keywords: ReadonlySet<string>
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "))

const language = (
  comments: ReadonlyArray<string>,
  blocks: Language["blocks"],
  quotes: string,
  keywords: string,
): Language => ({ comments, blocks, quotes, keywords: words(keywords) })

const slashes: Language["blocks"] = [["/*", "*/", "dim"]]

const script = language(
  ["//"],
  [...slashes, ["`", "`", "good"]],
  "\"'",
  "as async await break case catch class const continue debugger default delete do else enum export extends false finally for from function get if implements import in instanceof interface let namespace new null of private protected public readonly return satisfies set static super switch this throw true try type typeof undefined var void while with yield",
)

const curly = language(
  ["//"],
  slashes,
  "\"'",
  "abstract as async auto await bool boolean break byte case catch chan char class const continue crate default defer delete do double dyn else enum explicit extends extern false final finally float fn for foreach func go goto if impl implements import in inline instanceof int interface internal is lateinit let long loop match mod move mut namespace new nil null nullptr object operator override package private protected pub public range readonly ref return sealed select self short sizeof static string struct super switch template this throw throws trait true try type typedef typename union unsafe unsigned use using val var virtual void volatile when where while yield",
)

const python = language(
  ["#"],
  [
    ['"""', '"""', "good"],
    ["'''", "'''", "good"],
  ],
  "\"'",
  "and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield",
)

const shell = language(
  ["#"],
  [],
  "\"'",
  "case cd do done echo elif else esac exit export fi for function if in local read return set shift source then trap unset until while",
)

const ruby = language(
  ["#"],
  [],
  "\"'",
  "alias and begin break case class def defmodule defp do else elsif end ensure false fn for if import in module next nil not or raise redo require rescue return self super then true undef unless until use when while with yield",
)

const sql = language(
  ["--"],
  slashes,
  "'",
  "add all alter and as asc begin between by case check column commit constraint create cross default delete desc distinct drop else end exists foreign from full group having if in index inner insert into is join key left like limit not null on or order outer primary references right rollback select set table then transaction union unique update using values view when where with",
)

const data = language(["#", "//"], slashes, "\"'", "true false null yes no on off")
const markup = language([], [["<!--", "-->", "dim"]], "\"'", "")
const lisp = language([";"], [], '"', "def defn defmacro defun fn if let loop recur cond do lambda nil true false")

/** By the names that are written behind a fence. */
const languages: Readonly<Record<string, Language>> = {
  ...Object.fromEntries(
    ["js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "javascript", "typescript"].map((name) => [name, script]),
  ),
  ...Object.fromEntries(
    [
      "c",
      "h",
      "cc",
      "cpp",
      "c++",
      "cs",
      "csharp",
      "d",
      "dart",
      "go",
      "golang",
      "java",
      "kotlin",
      "kt",
      "php",
      "rs",
      "rust",
      "scala",
      "swift",
      "zig",
      "css",
      "scss",
      "proto",
      "objc",
    ].map((name) => [name, curly]),
  ),
  ...Object.fromEntries(["py", "python", "python3", "gdscript"].map((name) => [name, python])),
  ...Object.fromEntries(
    ["sh", "bash", "zsh", "fish", "shell", "console", "dockerfile", "docker", "make", "makefile"].map((name) => [
      name,
      shell,
    ]),
  ),
  ...Object.fromEntries(
    ["rb", "ruby", "ex", "exs", "elixir", "erl", "perl", "pl", "r", "julia"].map((name) => [name, ruby]),
  ),
  sql,
  postgres: sql,
  sqlite: sql,
  ...Object.fromEntries(
    ["json", "jsonc", "json5", "yaml", "yml", "toml", "ini", "hcl", "tf", "nix"].map((name) => [name, data]),
  ),
  ...Object.fromEntries(["html", "xml", "svg", "vue", "svelte"].map((name) => [name, markup])),
  ...Object.fromEntries(["clj", "clojure", "lisp", "scheme", "el", "racket"].map((name) => [name, lisp])),
  lua: language(
    ["--"],
    [],
    "\"'",
    "and break do else elseif end false for function goto if in local nil not or repeat return then true until while",
  ),
  haskell: language(
    ["--"],
    [["{-", "-}", "dim"]],
    '"',
    "case class data deriving do else if import in instance let module newtype of then type where",
  ),
}

const diffTone = (line: string): ReadonlyArray<Tone> => {
  if (line.startsWith("@@")) return ["accent"]
  if (line.startsWith("+++") || line.startsWith("---")) return ["strong"]
  return line.startsWith("+") ? ["good"] : line.startsWith("-") ? ["error"] : []
}

const atom = /[\p{L}_$][\p{L}\p{N}_$]*|\d[\d_a-fA-FxobXOB.]*/uy

const literal = (text: string, quote: string, from: number): number => {
  for (let at = from; at < text.length; at++) {
    if (text[at] === "\\") at++
    else if (text[at] === quote) return at + 1
  }
  return text.length
}

/** The spans of one line of code, and what the next one begins inside of. */
export const codeSpans = (
  line: string,
  name: string,
  before: Carry,
): { readonly spans: Row; readonly carry: Carry } => {
  const span = (from: number, to: number, tones: ReadonlyArray<Tone>): Span => ({
    text: line.slice(from, to),
    tones,
    at: from,
    whole: true,
  })
  if (name === "diff" || name === "patch") return { spans: [span(0, line.length, diffTone(line))], carry: null }
  const known = Object.hasOwn(languages, name) ? languages[name] : undefined
  if (known === undefined) return { spans: [span(0, line.length, [])], carry: null }
  const spans: Array<Span> = []
  let plain = 0
  let at = 0
  let carry = before
  const put = (to: number, tone: Tone) => {
    if (at > plain) spans.push(span(plain, at, []))
    if (to > at) spans.push(span(at, to, [tone]))
    at = to
    plain = to
  }
  while (at < line.length) {
    if (carry !== null) {
      const end = line.indexOf(carry.until, at)
      put(end < 0 ? line.length : end + carry.until.length, carry.tone)
      if (end >= 0) carry = null
      continue
    }
    const block = known.blocks.find(([open]) => line.startsWith(open, at))
    if (block !== undefined) {
      const [open, close, tone] = block
      const end = line.indexOf(close, at + open.length)
      put(end < 0 ? line.length : end + close.length, tone)
      if (end < 0) carry = { until: close, tone }
      continue
    }
    const char = line[at] ?? ""
    const comment = known.comments.some(
      (one) => line.startsWith(one, at) && (at === 0 || /[\s;{}()]/.test(line[at - 1] ?? "")),
    )
    if (comment) put(line.length, "dim")
    else if (known.quotes.includes(char)) put(literal(line, char, at + 1), "good")
    else {
      atom.lastIndex = at
      const [word] = atom.exec(line) ?? []
      if (word === undefined) at++
      else if (/^\d/.test(word)) put(at + word.length, "warning")
      else if (known.keywords.has(known === sql ? word.toLowerCase() : word)) put(at + word.length, "keyword")
      else at += word.length
    }
  }
  if (at > plain) spans.push(span(plain, at, []))
  return { spans, carry }
}
