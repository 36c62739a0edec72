/**
 * The structured output of a connection's newest direct calls, for requests that are repeated: a transcript does not keep it. Within
 * {@link maxChars}; the oldest is forgotten first, and what is longer than an eighth of that is not kept at all.
 */
import type { Json } from "../../../domain/json.ts"

/** Characters of JSON that are kept for one connection. */
const maxChars = 256 * 1024

export interface RecentOutputs {
  readonly keep: (key: string, output: Json) => void
  /** Null where there was none, or it is forgotten. */
  readonly of: (key: string) => Json
}

export const makeRecentOutputs = (limit = maxChars): RecentOutputs => {
  const kept = new Map<string, string>()
  let chars = 0
  const forget = (key: string): void => {
    chars -= kept.get(key)?.length ?? 0
    kept.delete(key)
  }
  return {
    keep: (key, output) => {
      if (output === null) return
      const json = JSON.stringify(output)
      if (json.length > limit / 8) return
      forget(key)
      kept.set(key, json)
      chars += json.length
      for (const oldest of kept.keys()) {
        if (chars <= limit) break
        forget(oldest)
      }
    },
    of: (key) => {
      const json = kept.get(key)
      return json === undefined ? null : (JSON.parse(json) as Json)
    },
  }
}
