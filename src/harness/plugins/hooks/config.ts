/**
 * What a `hooks.json` says: which commands run on which event. Pure. A fault takes out the entry that it is in, nothing else.
 */
import { isRecord } from "../../../domain/json.ts"
import { nearest } from "../../../domain/nearest.ts"

const hookEvents = ["SessionStart", "PreToolUse", "PostToolUse", "Stop"] as const
export type HookEvent = (typeof hookEvents)[number]

export interface CommandHook {
  readonly event: HookEvent
  /** Which tools it is for; null: every one. */
  readonly matcher: RegExp | null
  /** For the system's shell. */
  readonly command: string
  /** Milliseconds; null: the default. */
  readonly timeoutMs: number | null
  /** The file that it stands in. */
  readonly file: string
}

export interface HooksFile {
  readonly hooks: ReadonlyArray<CommandHook>
  /** One line each: `path: expected X, got Y`. */
  readonly faults: ReadonlyArray<string>
}

const maxSeconds = 600
const maxMatcherChars = 500
const maxHooks = 200

const shown = (value: unknown): string => {
  if (value === undefined) return "nothing"
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 60 ? `${text.slice(0, 57)}…` : text
}

/** Names of tools as alternatives or as a regular expression over the whole name, in any case; `*` and nothing are all. */
const readMatcher = (value: unknown): { readonly matcher: RegExp | null } | string => {
  if (value === undefined || value === "" || value === "*") return { matcher: null }
  const expected = `a tool's name or a regular expression of at most ${maxMatcherChars} characters`
  if (typeof value !== "string" || value.length > maxMatcherChars) return `expected ${expected}, got ${shown(value)}`
  try {
    return { matcher: new RegExp(`^(?:${value})$`, "i") }
  } catch (error) {
    return `expected ${expected}, got ${shown(value)} (${error instanceof Error ? error.message : String(error)})`
  }
}

type Read = (value: unknown, path: string) => void

/** Reads a parsed file. `file` names it in what is reported. */
export const readHooks = (value: unknown, file: string): HooksFile => {
  const hooks: Array<CommandHook> = []
  const faults: Array<string> = []
  const wrong = (path: string, expected: string, actual: unknown) =>
    void faults.push(`${path}: expected ${expected}, got ${shown(actual)}`)
  const readList = (list: unknown, path: string, read: Read) => {
    if (Array.isArray(list)) for (const [at, item] of list.entries()) read(item, `${path}[${at}]`)
    else wrong(path, "a list", list)
  }
  const readCommand =
    (event: HookEvent, matcher: RegExp | null): Read =>
    (item, path) => {
      if (!isRecord(item)) return wrong(path, 'an object with "command"', item)
      const { command, timeout, type } = item
      if (type !== undefined && type !== "command") return wrong(`${path}.type`, '"command"', type)
      if (typeof command !== "string" || command.trim() === "" || command.includes("\0")) {
        return wrong(`${path}.command`, "a shell command", command)
      }
      const valid = typeof timeout === "number" && timeout > 0 && timeout <= maxSeconds
      if (timeout !== undefined && !valid)
        return wrong(`${path}.timeout`, `seconds above 0, at most ${maxSeconds}`, timeout)
      if (hooks.length >= maxHooks) return wrong(path, `at most ${maxHooks} hooks in a file`, command)
      hooks.push({ event, matcher, command, timeoutMs: valid ? timeout * 1000 : null, file })
    }
  const readGroup =
    (event: HookEvent): Read =>
    (item, path) => {
      if (!isRecord(item)) return wrong(path, 'an object with "hooks"', item)
      const found = readMatcher(item.matcher)
      if (typeof found === "string") return void faults.push(`${path}.matcher: ${found}`)
      // A group of one may leave out its list.
      if (item.hooks === undefined && item.command !== undefined) return readCommand(event, found.matcher)(item, path)
      readList(item.hooks, `${path}.hooks`, readCommand(event, found.matcher))
    }
  if (!isRecord(value)) {
    wrong("the file", "an object", value)
    return { hooks, faults }
  }
  const events = value.hooks === undefined ? value : value.hooks
  if (!isRecord(events)) {
    wrong("hooks", "an object with the events", events)
    return { hooks, faults }
  }
  for (const [name, groups] of Object.entries(events)) {
    const event = hookEvents.find((known) => known === name)
    if (event !== undefined) readList(groups, event, readGroup(event))
    else if (Array.isArray(groups)) {
      faults.push(
        `${name}: expected one of ${hookEvents.join(", ")} (the nearest is "${nearest(name, hookEvents)}"), got an event that is not supported`,
      )
    }
  }
  return { hooks, faults }
}

/** The hooks of an event that are for a tool; `tool` null for events that have none. */
export const hooksFor = (
  hooks: ReadonlyArray<CommandHook>,
  event: HookEvent,
  tool: string | null,
): ReadonlyArray<CommandHook> => {
  const seen = new Set<string>()
  return hooks.filter((hook) => {
    if (hook.event !== event || (tool !== null && hook.matcher !== null && !hook.matcher.test(tool))) return false
    // The same command in two files runs once.
    if (seen.has(hook.command)) return false
    seen.add(hook.command)
    return true
  })
}
