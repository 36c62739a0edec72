/**
 * The line editor of a chat: `node:readline` on a terminal (history with a search, completion, pasting), plain lines from anything else.
 *
 * Owns stdin while it is open. Calls back; keeps no state of the chat. Keys pass `typedKeys` before the editor sees them: while a search is
 * open they are the search's.
 */
import { createInterface, type Interface } from "node:readline"
import { Transform } from "node:stream"
import { StringDecoder } from "node:string_decoder"
import { filterPaste, noPaste, pastedBreak, pasteOff, pasteOn } from "../protocols/terminal/paste.ts"
import { oneLine } from "../protocols/terminal/sanitize.ts"
import { displayWidth } from "../protocols/terminal/width.ts"
import type { Completed } from "./chat-complete.ts"
import { appendHistory, historySize, loadHistory } from "./chat-history.ts"
import { noSearch, type Search, searchKeys, searchLine } from "./chat-search.ts"

export interface EditorHandlers {
  /** `rows`: how many rows of the terminal the entered line took with its prompt. */
  readonly onLine: (line: string, rows: number) => void
  /** Ctrl-C; while nothing runs it clears what is typed first. */
  readonly onInterrupt: () => void
  readonly onEscape: () => void
  readonly isRunning: () => boolean
  readonly onEnd: () => void
  /** Of the line up to the cursor. */
  readonly complete: (line: string) => Promise<Completed & { readonly token: string }>
  /** Lines to be shown right above the input. */
  readonly hint: (lines: ReadonlyArray<string>) => void
}

export interface Editor {
  /** The readline interface where the cursor can be moved, for the screen above it; else null. */
  readonly drawn: Interface | null
  readonly close: () => void
}

const prompt = "› "
const ctrlR = "\u0012"
const clearLine = "\u0005\u0015"

interface RawInput extends Transform {
  setRawMode?: (on: boolean) => unknown
}

/** Stdin as the editor gets it: pasted line breaks marked, and what `divert` takes left out; passes the raw mode on. */
const typedKeys = (stdin: NodeJS.ReadStream, divert: (keys: string) => string): RawInput => {
  const decoder = new StringDecoder("utf8")
  let paste = noPaste
  const marked: RawInput = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const filtered = filterPaste(paste, decoder.write(chunk))
      paste = filtered.paste
      done(null, divert(filtered.out))
    },
  })
  marked.setRawMode = (on) => stdin.setRawMode(on)
  return stdin.pipe(marked)
}

/** The search among earlier lines. */
const makeSearch = (history: () => ReadonlyArray<string>, hint: EditorHandlers["hint"]) => {
  let search: Search | null = null
  return (keys: string): string => {
    const lines = history()
    const at = search === null ? keys.indexOf(ctrlR) : 0
    if (at < 0) return keys
    const passed = search === null ? keys.slice(0, at) : ""
    const own = search === null ? keys.slice(at + 1) : keys
    const next = searchKeys(search ?? noSearch, own, lines)
    if (next.kind === "search") {
      search = next.search
      hint([oneLine(searchLine(search, lines))])
      return passed
    }
    search = null
    hint([])
    return next.kind === "take" ? `${passed}${clearLine}${next.line.replace(/\p{Cc}/gu, " ")}${next.keys}` : passed
  }
}

export const openEditor = (
  options: { readonly cursor: boolean; readonly historyFile: string },
  handlers: EditorHandlers,
): Editor => {
  const { stdin, stdout } = process
  const drawn = options.cursor && stdin.isTTY === true
  const earlier = drawn ? loadHistory(options.historyFile) : []
  let hinting = false
  const hint = (lines: ReadonlyArray<string>) => {
    hinting = lines.length > 0
    handlers.hint(lines)
  }
  const search = makeSearch(() => earlier, handlers.hint)
  const typed = drawn ? typedKeys(stdin, search) : null
  let completing = false
  const completer = (line: string, done: (error: null, found: [Array<string>, string]) => void) => {
    // What was typed meanwhile is not what was asked about.
    if (completing) return done(null, [[], line])
    completing = true
    const end = (insert: string | null, token: string) => {
      completing = false
      const same = editor.line.slice(0, editor.cursor) === line
      done(null, [insert === null || !same ? [] : [insert], token])
    }
    void handlers.complete(line).then(
      ({ hint: lines, insert, token }) => {
        hint(lines)
        end(insert, token)
      },
      () => end(null, line),
    )
  }
  const editor = typed
    ? createInterface({
        input: typed,
        output: stdout,
        terminal: true,
        prompt,
        completer,
        history: [...earlier],
        historySize,
        removeHistoryDuplicates: true,
        escapeCodeTimeout: 50,
      })
    : createInterface({ input: stdin, terminal: false, crlfDelay: Number.POSITIVE_INFINITY })
  // However the process ends, the terminal gets its pasting back.
  const restore = () => void stdout.write(pasteOff)
  if (drawn) {
    stdout.write(pasteOn)
    process.once("exit", restore)
  }
  editor.on("line", (line) => {
    if (drawn && line.trim() !== "") {
      appendHistory(options.historyFile, line)
      if (earlier[0] !== line) earlier.unshift(line)
    }
    handlers.onLine(line, Math.floor(displayWidth(prompt + line) / (stdout.columns || 80)) + 1)
  })
  editor.on("SIGINT", () => {
    if (editor.line === "" || handlers.isRunning()) return handlers.onInterrupt()
    editor.write(null, { ctrl: true, name: "e" })
    editor.write(null, { ctrl: true, name: "u" })
  })
  typed?.on("keypress", (_, key: { readonly name?: string; readonly meta?: boolean } | undefined) => {
    if (hinting && key?.name !== "tab") hint([])
    // The editor itself does nothing with Alt-Enter.
    if (key?.meta === true && (key.name === "return" || key.name === "enter")) editor.write(pastedBreak)
    else if (key?.name === "escape") handlers.onEscape()
  })
  let closed = false
  editor.on("close", () => {
    if (!closed) handlers.onEnd()
  })
  return {
    drawn: drawn ? editor : null,
    close: () => {
      closed = true
      editor.close()
      stdin.pause()
      if (drawn) {
        stdin.unpipe()
        process.off("exit", restore)
        restore()
      }
    },
  }
}
