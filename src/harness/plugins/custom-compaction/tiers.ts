/**
 * Which model writes a summary, and what it is asked to keep. Pure.
 */
import type { Message } from "../../../domain/message.ts"
import { toolCallsOf } from "../../../domain/message.ts"

/** A model for conversations up to a size. */
export interface Tier {
  /** In tokens; absent: any size. */
  readonly upToTokens?: number | undefined
  readonly model: string
}

/** Fast models by the service of the conversation's model, in the order in which they are tried. */
const fastModels: Readonly<Record<string, ReadonlyArray<string>>> = {
  google: ["google/gemini-3.1-flash-lite-preview", "google/gemini-3-flash-preview"],
  anthropic: ["anthropic/claude-haiku-4-5"],
  openai: ["openai/gpt-5-mini"],
}

/**
 * The models to try, best first: the tiers that hold `tokens`, the smallest first; then `model`; then, where neither is given, the fast
 * models of the service of `own`.
 */
export const candidates = (
  tokens: number,
  own: string,
  options: { readonly model?: string | undefined; readonly tiers: ReadonlyArray<Tier> },
): ReadonlyArray<string> => {
  const size = ({ upToTokens }: Tier) => upToTokens ?? Number.POSITIVE_INFINITY
  const fitting = options.tiers
    .filter((tier) => tokens <= size(tier))
    .sort((a, b) => size(a) - size(b))
    .map((tier) => tier.model)
  const named = options.model === undefined ? fitting : [...fitting, options.model]
  if (named.length > 0 || options.tiers.length > 0) return [...new Set(named)]
  return (fastModels[own.split("/", 1)[0] ?? ""] ?? []).filter((model) => model !== own)
}

const keep = `Keep every decision with its reason, word for word where it was a person's.
Keep what each tool changed and what it found: the call, its path or command, and the result that the work still depends on; leave out output that was only looked at.
Say of a call whose result is not below that it is still open.`

/** At most so many files are named: the summary names the others itself where they matter. */
const maxFiles = 50

/** Files that were written or edited, in the order of their first change. */
const changedFiles = (messages: ReadonlyArray<Message>): ReadonlyArray<string> => {
  const paths = new Set<string>()
  for (const message of messages) {
    if (message.role !== "assistant") continue
    for (const { arguments: args, name } of toolCallsOf(message)) {
      if ((name === "write" || name === "edit") && typeof args.path === "string") paths.add(args.path)
    }
  }
  return [...paths].slice(0, maxFiles)
}

/** What the writer is asked to look at: what must stay, the wishes of the options, and those of whoever asked for the compaction. */
export const summaryInstructions = (
  messages: ReadonlyArray<Message>,
  ...wishes: ReadonlyArray<string | null | undefined>
): string => {
  const files = changedFiles(messages)
  const changed = files.length === 0 ? [] : [`Files changed so far: ${files.join(", ")}`]
  const asked = wishes.flatMap((wish) => (wish?.trim() ? [wish.trim()] : []))
  return [keep, ...changed, ...asked].join("\n")
}
