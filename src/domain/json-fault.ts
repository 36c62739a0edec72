/**
 * Where a text stops being JSON. `JSON.parse` says so only for some faults, and differently in each Node.js version.
 */

/** Offset of the first character that no JSON text could have there; the text's length when it ends too early; null for valid JSON. */
export const jsonFaultAt = (text: string): number | null => {
  let at = 0
  let furthest = 0
  const fail = (offset = at): false => {
    furthest = Math.max(furthest, offset)
    return false
  }
  const space = () => {
    while (at < text.length && " \t\n\r".includes(text[at] ?? "")) at++
  }
  const string = (): boolean => {
    if (text[at] !== '"') return fail()
    at++
    while (at < text.length) {
      const char = text[at] ?? ""
      if (char === '"') {
        at++
        return true
      }
      if (char < " ") return fail()
      if (char === "\\") {
        const escape = text[at + 1] ?? ""
        if (escape === "u") {
          for (let i = at + 2; i < at + 6; i++) if (!/[0-9a-fA-F]/.test(text[i] ?? "")) return fail(i)
          at += 6
          continue
        }
        if (escape === "" || !'"\\/bfnrt'.includes(escape)) return fail(at + 1)
        at += 2
        continue
      }
      at++
    }
    return fail()
  }
  const word = (literal: string): boolean => {
    for (const char of literal) {
      if (text[at] !== char) return fail()
      at++
    }
    return true
  }
  const digits = (): boolean => {
    const start = at
    while (/[0-9]/.test(text[at] ?? "")) at++
    return at > start || fail()
  }
  const number = (): boolean => {
    if (text[at] === "-") at++
    if (text[at] === "0") at++
    else if (!digits()) return false
    if (text[at] === ".") {
      at++
      if (!digits()) return false
    }
    if (text[at] === "e" || text[at] === "E") {
      at++
      if (text[at] === "+" || text[at] === "-") at++
      return digits()
    }
    return true
  }
  /** One container or scalar; containers keep a stack of their own, so depth costs no recursion. */
  const stack: Array<"]" | "}"> = []
  const value = (): boolean => {
    for (;;) {
      space()
      const char = text[at]
      if (char === "{" || char === "[") {
        const close = char === "{" ? "}" : "]"
        at++
        space()
        if (text[at] !== close) {
          stack.push(close)
          if (close === "}" && !key()) return false
          continue
        }
        at++
      } else if (char === '"') {
        if (!string()) return false
      } else if (char === "t" || char === "f" || char === "n") {
        if (!word(char === "t" ? "true" : char === "f" ? "false" : "null")) return false
      } else if (!number()) return false
      for (;;) {
        const close = stack[stack.length - 1]
        if (close === undefined) return true
        space()
        if (text[at] === ",") {
          at++
          space()
          if (close === "}" && !key()) return false
          break
        }
        if (text[at] !== close) return fail()
        at++
        stack.pop()
      }
    }
  }
  const key = (): boolean => {
    if (!string()) return false
    space()
    if (text[at] !== ":") return fail()
    at++
    return true
  }
  if (!value()) return furthest
  space()
  return at < text.length ? at : null
}

/** Line and column of an offset, both from 1; columns count UTF-16 units. */
export const lineAndColumn = (text: string, offset: number): { readonly line: number; readonly column: number } => {
  const before = text.slice(0, offset)
  const lines = before.split("\n")
  return { line: lines.length, column: (lines[lines.length - 1] ?? "").length + 1 }
}
