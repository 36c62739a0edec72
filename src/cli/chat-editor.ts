/**
 * The line editor of a chat: `node:readline` on a terminal (history, pasting), plain lines from anything else.
 *
 * Owns stdin while it is open. Calls back; keeps no state of the chat.
 */
import { createInterface, type Interface } from "node:readline"
import { Transform } from "node:stream"
import { StringDecoder } from "node:string_decoder"
import { filterPaste, noPaste, pasteOff, pasteOn } from "../protocols/terminal/paste.ts"
import { displayWidth } from "../protocols/terminal/width.ts"
import { appendHistory, historySize, loadHistory } from "./chat-history.ts"

export interface EditorHandlers {
  /** `rows`: how many rows of the terminal the entered line took with its prompt. */
  readonly onLine: (line: string, rows: number) => void
  /** Ctrl-C; while nothing runs it clears what is typed first. */
  readonly onInterrupt: () => void
  readonly onEscape: () => void
  readonly isRunning: () => boolean
  readonly onEnd: () => void
}

export interface Editor {
  /** The readline interface where the cursor can be moved, for the screen above it; else null. */
  readonly drawn: Interface | null
  readonly close: () => void
}

const prompt = "› "

interface RawInput extends Transform {
  setRawMode?: (on: boolean) => unknown
}

/** Stdin with pasted line breaks marked; passes the raw mode on. */
const markPastes = (stdin: NodeJS.ReadStream): RawInput => {
  const decoder = new StringDecoder("utf8")
  let paste = noPaste
  const marked: RawInput = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const filtered = filterPaste(paste, decoder.write(chunk))
      paste = filtered.paste
      done(null, filtered.out)
    },
  })
  marked.setRawMode = (on) => stdin.setRawMode(on)
  return stdin.pipe(marked)
}

export const openEditor = (
  options: { readonly cursor: boolean; readonly historyFile: string },
  handlers: EditorHandlers,
): Editor => {
  const { stdin, stdout } = process
  const drawn = options.cursor && stdin.isTTY === true
  const typed = drawn ? markPastes(stdin) : null
  const editor = typed
    ? createInterface({
        input: typed,
        output: stdout,
        terminal: true,
        prompt,
        history: loadHistory(options.historyFile),
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
    if (drawn && line.trim() !== "") appendHistory(options.historyFile, line)
    handlers.onLine(line, Math.floor(displayWidth(prompt + line) / Math.max(1, stdout.columns ?? 80)) + 1)
  })
  editor.on("SIGINT", () => {
    if (editor.line === "" || handlers.isRunning()) return handlers.onInterrupt()
    editor.write(null, { ctrl: true, name: "e" })
    editor.write(null, { ctrl: true, name: "u" })
  })
  typed?.on("keypress", (_, key: { readonly name?: string } | undefined) => {
    if (key?.name === "escape") handlers.onEscape()
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
