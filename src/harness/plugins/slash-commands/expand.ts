/**
 * Custom commands: the words of an input put into the template of a file. Pure.
 */

/** Words separated by blanks; quotes keep blanks together, a backslash takes the next character as it is. */
export const splitWords = (source: string): ReadonlyArray<string> => {
  const words: Array<string> = []
  let word: string | null = null
  let quote: string | null = null
  for (let at = 0; at < source.length; at++) {
    const char = source[at] ?? ""
    const next = source[at + 1]
    if (char === "\\" && next !== undefined && quote !== "'") {
      word = (word ?? "") + next
      at++
    } else if (quote !== null) {
      if (char === quote) quote = null
      else word = (word ?? "") + char
    } else if (char === '"' || char === "'") {
      quote = char
      word ??= ""
    } else if (/\s/.test(char)) {
      if (word !== null) words.push(word)
      word = null
    } else word = (word ?? "") + char
  }
  if (word !== null) words.push(word)
  return words
}

const placeholder = /\\?\$(ARGUMENTS\b|[1-9](?!\d))/g

/**
 * `$ARGUMENTS` is everything behind the command's name, `$1` to `$9` single words (nothing where there are fewer); `\$1` stays `$1`. What is
 * put in is not looked at again. Where a template names no argument, they come behind it.
 */
export const expand = (template: string, given: string): string => {
  const words = splitWords(given)
  let used = false
  const text = template.replace(placeholder, (found, name: string) => {
    if (found.startsWith("\\")) return found.slice(1)
    used = true
    return name === "ARGUMENTS" ? given : (words[Number(name) - 1] ?? "")
  })
  return used || given === "" ? text : `${text}\n\nArguments: ${given}`
}

export interface Typed {
  /** In lower case. */
  readonly name: string
  readonly rest: string
}

/** The command that a text begins with, or null: a path at its start is none. */
export const readTyped = (source: string): Typed | null => {
  const found = /^\/([A-Za-z][\w-]*(?::[\w-]+)*)(?:\s+([\s\S]*))?$/.exec(source.trim())
  return found === null ? null : { name: (found[1] ?? "").toLowerCase(), rest: (found[2] ?? "").trim() }
}

/** The text meant by one that is escaped (`//plan`, `\/plan`), or null. */
export const unescaped = (source: string): string | null => {
  const found = /^(\s*)(?:\/|\\)(\/[A-Za-z][\w:-]*(?:\s[\s\S]*)?)$/.exec(source)
  return found === null ? null : `${found[1]}${found[2]}`
}
