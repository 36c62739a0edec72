/**
 * Completion of a line of a chat: commands, what they take, and files behind an `@`. The line editor is given one completion at most; what
 * else there is stands in a hint.
 */
import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { Effort, ExecutionMode } from "../domain/document.ts"
import { oneLine } from "../protocols/terminal/sanitize.ts"
import { slashCommands } from "./chat-input.ts"

/** What may be typed in place of `token`, the end of the line. */
export interface Candidates {
  readonly token: string
  readonly words: ReadonlyArray<string>
}

/** Where the words that no table has come from. */
export interface CompletionSources {
  readonly models: () => Promise<ReadonlyArray<string>>
  /** Commands that the conversation expands. */
  readonly others: () => Promise<ReadonlyArray<string>>
  readonly harnesses: () => Promise<ReadonlyArray<string>>
  /** The directory that relative paths start from. */
  readonly directory: () => string
}

const mostFiles = 5000
const hinted = 12

/** The names in a directory that begin with the token's last part, as paths like the token; directories end with a slash. */
const files = async (token: string, directory: string): Promise<ReadonlyArray<string>> => {
  const typed = token.slice(1)
  const cut = typed.lastIndexOf("/") + 1
  const [above, start] = [typed.slice(0, cut), typed.slice(cut)]
  const entries = await readdir(join(directory, above), { withFileTypes: true }).catch(() => [])
  return entries
    .slice(0, mostFiles)
    .filter(({ name }) => name.startsWith(start) && (start.startsWith(".") || !name.startsWith(".")))
    .filter(({ name }) => name === oneLine(name))
    .map((entry) => `@${above}${entry.name}${entry.isDirectory() ? "/" : ""}`)
    .sort()
}

export const candidatesOf = async (line: string, sources: CompletionSources): Promise<Candidates> => {
  const at = /(?:^|\s)(@\S*)$/.exec(line)?.[1]
  if (at !== undefined) return { token: at, words: await files(at, sources.directory()) }
  const command = /^\/(\S*)$/.exec(line)
  const beginning = (token: string, words: ReadonlyArray<string>): Candidates => ({
    token,
    words: [...new Set(words)].filter((word) => word.startsWith(token)).sort(),
  })
  if (command !== null) {
    const own = slashCommands.map(({ name }) => `/${name}`)
    return beginning(line, [...own, "/quit", ...(await sources.others()).map((name) => `/${name}`)])
  }
  const [, name, token = ""] = /^\/(model|mode|effort|harness) +(\S*)$/.exec(line) ?? []
  switch (name) {
    case "model":
      return beginning(token, await sources.models())
    case "mode":
      return beginning(token, ExecutionMode.literals)
    case "effort":
      return beginning(token, Effort.literals)
    case "harness":
      return beginning(token, await sources.harnesses())
    default:
      return { token: "", words: [] }
  }
}

/** What the line editor puts in place of the token, and the hint. */
export interface Completed {
  readonly insert: string | null
  readonly hint: ReadonlyArray<string>
}

/** The one word there is, or as much as all of them begin with. Pure. */
export const complete = ({ token, words }: Candidates): Completed => {
  const [first] = words
  if (first === undefined) return { insert: null, hint: [] }
  if (words.length === 1) return { insert: first.endsWith("/") ? first : `${first} `, hint: [] }
  let common = first
  for (const word of words) while (!word.startsWith(common)) common = common.slice(0, -1)
  if (common.length > token.length) return { insert: common, hint: [] }
  const more = words.length > hinted ? ` and ${words.length - hinted} more` : ""
  return { insert: null, hint: [`${words.slice(0, hinted).join("  ")}${more}`] }
}
