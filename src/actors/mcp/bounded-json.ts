/**
 * JSON of a server, of a length and a depth that everything behind can take: what walks values by recursion has an end to its stack. Pure.
 */

/** Objects and lists in each other. */
const maxDepth = 100

const depthOf = (json: string): number => {
  let depth = 0
  let deepest = 0
  let inText = false
  for (let at = 0; at < json.length; at++) {
    const char = json[at]
    if (inText) {
      if (char === "\\") at++
      else if (char === '"') inText = false
    } else if (char === '"') inText = true
    else if (char === "{" || char === "[") deepest = Math.max(deepest, ++depth)
    else if (char === "}" || char === "]") depth--
  }
  return deepest
}

/** The value as JSON, or null where it is none, is longer than `maxChars`, or deeper than 100. */
export const boundedJson = (value: unknown, maxChars: number): string | null => {
  try {
    const json: string | undefined = JSON.stringify(value)
    return json === undefined || json.length > maxChars || depthOf(json) > maxDepth ? null : json
  } catch {
    // Too deep for the one who writes it.
    return null
  }
}
