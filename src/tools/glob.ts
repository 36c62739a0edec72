/**
 * Glob patterns for file paths: `*` and `?` within a name, `**` over directories, `[a-z]`, `[!a-z]`, `{a,b}` (may nest), `\` escapes.
 * A pattern without a slash matches the name at any depth; one with a slash matches the path from the search root. Pure.
 */

const literal = (char: string): string => (/[.*+?^${}()|[\]\\/]/.test(char) ? `\\${char}` : char)

/** The end of a bracket expression that starts at `start`, or -1 when it never closes. */
const bracketEnd = (pattern: string, start: number): number => {
  let index = start + 1
  if (pattern[index] === "!" || pattern[index] === "^") index++
  if (pattern[index] === "]") index++
  while (index < pattern.length && pattern[index] !== "]") index += pattern[index] === "\\" ? 2 : 1
  return index < pattern.length ? index : -1
}

const bracket = (body: string): string => {
  const negated = body[0] === "!" || body[0] === "^"
  const members = (negated ? body.slice(1) : body).replace(/\\(.)/g, "$1").replace(/[\\\]^[]/g, "\\$&")
  return `(?!\\/)[${negated ? "^" : ""}${members}]`
}

const translate = (pattern: string): string => {
  let out = ""
  let depth = 0
  for (let index = 0; index < pattern.length; index++) {
    const char = pattern.charAt(index)
    const atStart = index === 0 || pattern[index - 1] === "/"
    if (char === "\\" && index + 1 < pattern.length) out += literal(pattern.charAt(++index))
    else if (char === "?") out += "[^/]"
    else if (char === "*") {
      let end = index
      while (pattern[end + 1] === "*") end++
      const stars = end - index + 1
      if (stars >= 2 && atStart && pattern[end + 1] === "/") {
        out += "(?:[^/]+\\/)*"
        index = end + 1
      } else if (stars >= 2 && atStart && end + 1 === pattern.length) {
        out += ".+"
        index = end
      } else {
        out += "[^/]*"
        index = end
      }
    } else if (char === "[") {
      const end = bracketEnd(pattern, index)
      if (end < 0) out += "\\["
      else {
        out += bracket(pattern.slice(index + 1, end))
        index = end
      }
    } else if (char === "{" && pattern.indexOf("}", index) > 0) {
      depth++
      out += "(?:"
    } else if (char === "}" && depth > 0) {
      depth--
      out += ")"
    } else if (char === "," && depth > 0) out += "|"
    else out += literal(char)
  }
  return out + ")".repeat(depth)
}

/** A compiled glob. */
export interface Glob {
  /** Whether it matches a path relative to the search root, with `/` separators. */
  readonly matches: (path: string, isDirectory: boolean) => boolean
}

/** Compiles a pattern; a leading `!` turns the answer around, a trailing `/` matches directories only. */
export const compileGlob = (pattern: string): Glob => {
  const negated = pattern.startsWith("!")
  let body = negated ? pattern.slice(1) : pattern
  const directoriesOnly = body.endsWith("/") && body.length > 1
  if (directoriesOnly) body = body.slice(0, -1)
  const anchored = body.includes("/")
  body = body.replace(/^(\.?\/)+/, "")
  const source = translate(body)
  let regex: RegExp
  try {
    regex = new RegExp(`^(?:${source})$`, "su")
  } catch {
    // For example a range that is out of order: nothing has such a name but the pattern itself.
    regex = new RegExp(`^${[...body].map(literal).join("")}$`, "su")
  }
  const plain = (path: string, isDirectory: boolean) => {
    if (directoriesOnly && !isDirectory) return false
    return regex.test(anchored ? path : path.slice(path.lastIndexOf("/") + 1))
  }
  return { matches: negated ? (path, isDirectory) => !plain(path, isDirectory) : plain }
}
