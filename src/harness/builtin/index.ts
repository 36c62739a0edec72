/**
 * The four harnesses that come with Super-Pi, and the names under which they were known before. What separates them: `code` changes a
 * repository and can undo it, `assistant` works with a person and has neither files nor commands, `librarian` runs with nobody present,
 * `planner` cannot write.
 */
import type { Harness } from "../harness.ts"
import { assistant } from "./assistant.ts"
import { code } from "./code.ts"
import { librarian } from "./librarian.ts"
import { planner } from "./planner.ts"

/** In the order in which listings show them. */
export const builtinHarnesses: ReadonlyArray<Harness> = [code, assistant, librarian, planner]

/** Older ids and short names; they resolve and are not listed. */
export const harnessAliases: Readonly<Record<string, string>> = {
  "super-pi-workspace": code.id,
  "super-pi-auto": code.id,
  "super-pi-agent": assistant.id,
  "super-pi-fast": assistant.id,
  "super-pi-interactive": assistant.id,
  code: code.id,
  assistant: assistant.id,
  librarian: librarian.id,
  planner: planner.id,
}
