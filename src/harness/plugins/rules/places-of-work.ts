/**
 * In which directories of the workspace a conversation works: those that the calls of file tools name. Pure; taken from the messages, so
 * that it is the same after a crash.
 */
import { dirname, isAbsolute, join, normalize, relative, sep } from "node:path"
import type { Message } from "../../../domain/message.ts"

/** Directories that are looked at, the newest work first. */
const maxDirectories = 48

const pathsOf = new WeakMap<Message, ReadonlyArray<string>>()
const none: ReadonlyArray<string> = []

/** Paths that the calls of a message name. */
const named = (message: Message): ReadonlyArray<string> => {
  if (message.role !== "assistant") return none
  const known = pathsOf.get(message)
  if (known !== undefined) return known
  const found = message.content.flatMap((part) => {
    if (part.type !== "toolCall") return []
    const { path } = part.arguments
    return typeof path === "string" && path !== "" && path.length < 4_096 && !path.includes("\0") ? [path] : []
  })
  pathsOf.set(message, found)
  return found
}

/** The directory itself where the path has no dot in its last name, and every one above it below the root; the deepest first. */
const directoriesOf = (root: string, path: string): ReadonlyArray<string> => {
  const below = isAbsolute(path) ? relative(root, path) : normalize(path)
  if (below === "" || below === "." || below.startsWith("..") || isAbsolute(below)) return []
  const found: Array<string> = []
  for (let at = below.endsWith(sep) ? below.slice(0, -1) : below; at !== "." && at !== ""; at = dirname(at))
    found.push(at)
  // The last name is a file or a directory: a file holds no rules, and asking costs one look.
  return found
}

/** Relative paths below `root`, that of the newest call first; within one call the deepest first. */
export const placesOfWork = (root: string, messages: ReadonlyArray<Message>): ReadonlyArray<string> => {
  const found = new Set<string>()
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at]
    if (message === undefined) continue
    for (const path of named(message)) {
      for (const directory of directoriesOf(root, path)) {
        if (found.size >= maxDirectories) return [...found]
        found.add(join(directory))
      }
    }
  }
  return [...found]
}
