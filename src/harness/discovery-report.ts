/**
 * Reports of what discovery had to skip: each once per conversation, again only when its file has changed.
 */
import { Effect } from "effect"
import { Bounded } from "./bounded.ts"
import type { HookContext } from "./plugin.ts"

export interface Report {
  readonly level: "info" | "warning" | "error"
  /** Names the file, what was expected and what came. */
  readonly message: string
  /** The file's version, so that a change is reported anew. */
  readonly version: string
}

type Teller = Pick<HookContext<unknown>, "conversation" | "notify" | "places">

/** A conversation, also where one process has several databases. */
export const conversationKey = ({ conversation, places }: Pick<Teller, "conversation" | "places">): string =>
  `${places.dataDir}\0${conversation}`

const conversations = 1_000
const perConversation = 500

export class Reports {
  readonly #told = new Bounded<string, Set<string>>(conversations)

  /** Tells what was not told before. */
  tell(reports: ReadonlyArray<Report>, context: Teller): Effect.Effect<void> {
    if (reports.length === 0) return Effect.void
    return Effect.suspend(() => {
      const key = conversationKey(context)
      const told = this.#told.get(key) ?? new Set()
      this.#told.set(key, told)
      const fresh = reports.filter(({ message, version }) => {
        const what = `${version}\0${message}`
        if (told.has(what) || told.size >= perConversation) return false
        told.add(what)
        return true
      })
      return Effect.forEach(fresh, ({ level, message }) => context.notify(level, message), { discard: true })
    })
  }
}
