/**
 * Lines typed in earlier chats: one per line of a file that only its owner can read.
 */
import { appendFileSync, readFileSync, writeFileSync } from "node:fs"

/** How many lines are kept. */
export const historySize = 1000

/** The newest first, as `node:readline` has it. A missing or unreadable file is an empty history. */
export const loadHistory = (file: string): Array<string> => {
  try {
    const lines = readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line !== "")
    if (lines.length > 2 * historySize)
      writeFileSync(file, `${lines.slice(-historySize).join("\n")}\n`, { mode: 0o600 })
    return lines.slice(-historySize).reverse()
  } catch {
    return []
  }
}

/** Adds a line; a chat goes on without a history where that fails. */
export const appendHistory = (file: string, line: string): void => {
  try {
    appendFileSync(file, `${line}\n`, { mode: 0o600 })
  } catch {
    // A full or read-only disk is reported by the database, not by the history.
  }
}
