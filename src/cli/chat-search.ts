/**
 * The search for a line that was typed before (Ctrl-R), key by key. Pure.
 */

export interface Search {
  readonly query: string
  /** Index of the found line in the history (the newest first), or -1. */
  readonly at: number
}

export const noSearch: Search = { query: "", at: -1 }

/** The next older line behind `from` that holds the query, or -1. */
const older = (history: ReadonlyArray<string>, query: string, from: number): number =>
  query === "" ? -1 : history.findIndex((line, index) => index > from && line.includes(query))

export type Searched =
  | { readonly kind: "search"; readonly search: Search }
  /** The search is over: the line of the editor, and the keys that it gets then. */
  | { readonly kind: "take"; readonly line: string; readonly keys: string }
  | { readonly kind: "leave" }

const ctrlR = "\u0012"
const backspaces: ReadonlyArray<string> = ["\u007f", "\b"]

/** What a chunk of typed keys does to a search. Enter takes the line and enters it; another control key takes it and is passed on. */
export const searchKeys = (before: Search, chunk: string, history: ReadonlyArray<string>): Searched => {
  let search = before
  const keys = [...chunk]
  for (const [index, key] of keys.entries()) {
    if (key === ctrlR) {
      const at = older(history, search.query, search.at)
      if (at >= 0) search = { ...search, at }
    } else if (backspaces.includes(key)) {
      const query = [...search.query].slice(0, -1).join("")
      search = { query, at: older(history, query, -1) }
    } else if (key === "\u0003" || key === "\u0007" || (key === "\u001b" && index === keys.length - 1)) {
      return { kind: "leave" }
    } else if (key < " ") {
      const line = history[search.at]
      return line === undefined ? { kind: "leave" } : { kind: "take", line, keys: keys.slice(index).join("") }
    } else {
      const query = search.query + key
      const stays = search.at >= 0 && (history[search.at] ?? "").includes(query)
      search = { query, at: stays ? search.at : older(history, query, search.at) }
      if (search.at < 0) search = { query, at: older(history, query, -1) }
    }
  }
  return { kind: "search", search }
}

/** What stands above the input meanwhile. */
export const searchLine = ({ at, query }: Search, history: ReadonlyArray<string>): string => {
  const found = history[at]
  return `search "${query}"${found === undefined ? (query === "" ? "" : ": nothing") : `: ${found}`}`
}
