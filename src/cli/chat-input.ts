/**
 * What a line typed in a chat means. Pure.
 */

import { nearest } from "../domain/nearest.ts"
import { restorePaste } from "../protocols/terminal/paste.ts"

export interface SlashCommand {
  readonly name: string
  readonly argument?: string
  readonly summary: string
}

export const slashCommands: ReadonlyArray<SlashCommand> = [
  { name: "help", summary: "this list" },
  { name: "exit", summary: "leaves (so do /quit, Ctrl-D and a second Ctrl-C)" },
  { name: "new", summary: "begins another conversation" },
  { name: "sessions", summary: "the newest conversations" },
  { name: "resume", argument: "NUMBER", summary: "goes on with another conversation" },
  {
    name: "model",
    argument: "NAME",
    summary: "asks another model from the next request on; without a name, lists them",
  },
  { name: "effort", argument: "LEVEL", summary: "none, minimal, low, medium, high or max" },
  { name: "mode", argument: "MODE", summary: "plan, accept-edits or auto; without one, shows the present one" },
  { name: "harness", argument: "HARNESS", summary: "what it is and can do; with a name, becomes another one" },
  { name: "fork", argument: "ENTRY", summary: "goes on in a fork, from an entry or from here" },
  { name: "reset", argument: "NOTE", summary: "begins a new context, from a note or from nothing" },
  { name: "queue", argument: "NUMBER", summary: "what is queued; with a number, takes that one back" },
  { name: "status", summary: "conversation, model, state, tokens and cost" },
  { name: "context", summary: "what the model gets: messages, tokens, tools" },
  { name: "output", argument: "NUMBER", summary: "all that the newest call said, or the one that many calls before" },
  { name: "cancel", summary: "cancels the running turn (so does Ctrl-C)" },
  {
    name: "compact",
    argument: "TEXT",
    summary: "makes the context short now; the text says what the summary should look at",
  },
  { name: "retry", summary: "runs again what was parked after crashes" },
  {
    name: "undo",
    argument: "ID",
    summary:
      "takes back what the last run changed, or what came since a checkpoint; ? lists them, a ! behind it forces",
  },
  { name: "tree", summary: "the live supervision tree of the node" },
]

const noOthers: ReadonlySet<string> = new Set()

const names = slashCommands.map((command) => command.name)

export type ChatLine =
  | { readonly kind: "nothing" }
  /** The line goes on: the text so far. */
  | { readonly kind: "more"; readonly text: string }
  | { readonly kind: "prompt"; readonly text: string }
  /** Joins the running turn after its present batch of tools; starts one where none runs. */
  | { readonly kind: "steer"; readonly text: string }
  | { readonly kind: "command"; readonly name: string; readonly argument: string }
  | { readonly kind: "fault"; readonly message: string }

/**
 * Reads a line behind the `before` of lines that ended with a backslash. `others` are commands, in lower case, that the conversation expands
 * itself: they are prompts here.
 */
export const readChatLine = (before: string, line: string, others: ReadonlySet<string> = noOthers): ChatLine => {
  const restored = restorePaste(line)
  if (restored.endsWith("\\") && !restored.endsWith("\\\\"))
    return { kind: "more", text: `${before}${restored.slice(0, -1)}\n` }
  const text = (before + restored).trim()
  if (text === "") return { kind: "nothing" }
  if (text.startsWith("!") && text.length > 1) return { kind: "steer", text: text.slice(1).trim() }
  const command = /^\/([A-Za-z-]+)(?:\s+([\s\S]*))?$/.exec(text)
  if (command === null) return { kind: "prompt", text }
  const name = (command[1] ?? "").toLowerCase()
  const known = name === "quit" ? "exit" : name === "resume" && command[2] === undefined ? "sessions" : name
  if (names.includes(known)) return { kind: "command", name: known, argument: (command[2] ?? "").trim() }
  if (others.has(name)) return { kind: "prompt", text }
  // A path at the start of a prompt is no command.
  const near = nearest(name, [...names, "quit", ...others])
  return { kind: "fault", message: `unknown command /${name}; did you mean /${near}? /help lists them` }
}

/** Whether a line is for the chat itself, by its name alone. */
export const isChatCommand = (line: string): boolean => readChatLine("", line).kind === "command"

export const chatHelp = (): Array<string> => {
  const rows = slashCommands.map(
    ({ name, argument, summary }) => [`/${name}${argument === undefined ? "" : ` ${argument}`}`, summary] as const,
  )
  const width = Math.max(...rows.map(([left]) => left.length))
  return [
    ...rows.map(([left, right]) => `${left.padEnd(width)}  ${right}`),
    "/plan, /goal, /boost, /skill:NAME and those of .agents/commands are commands of the harness; // at the start is one / of a text.",
    "While a turn runs: a line is queued and asked next; a line that starts with ! joins the running turn.",
    "While a question is open: a number or a letter answers it, Esc rejects it; so does Ctrl-C.",
    "A line that ends with \\ goes on with the next one, and so does one after Alt-Enter; what is pasted stays one input.",
    "Tab completes commands, models, modes and @files; Ctrl-R looks for a line that was typed before.",
    "Ctrl-C cancels the turn, a second one leaves; a turn that was left goes on when the database is opened next.",
  ]
}
