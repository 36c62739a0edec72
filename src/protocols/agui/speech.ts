/**
 * One step of the renderer: what is said while a view becomes the next one. It keeps the order that the protocol demands:
 *
 * 1. Whatever is said is inside a run: one that lasts, or, where the conversation rests, a brief one for what this step says.
 * 2. Text and thinking lie between their start and their end, one of them at a time; a call's arguments between its start and its end.
 * 3. A run ends once, with nothing left open in it.
 */
import { answerId, type Cut, resultId, thinkingId } from "./messages.ts"
import type { AguiEvent, ContentPart, Interrupt, TokenUsage } from "./protocol.ts"
import { protocolVersion } from "./protocol.ts"
import type { Ending, Item, OpenCall, View } from "./view.ts"

/** When the step happens. */
interface Moment {
  /** Names the run that it begins. */
  readonly run: string
  /** Milliseconds since the epoch; null: nobody knows. */
  readonly time: number | null
}

type RunEnd = Ending | { readonly type: "interrupt"; readonly interrupts: ReadonlyArray<Interrupt> }

export class Speech {
  view: View
  readonly items: Array<Item> = []
  private readonly moment: Moment
  private brief = false

  constructor(view: View, moment: Moment) {
    this.view = view
    this.moment = moment
  }

  patch(change: Partial<View>): void {
    this.view = { ...this.view, ...change }
  }

  /** The end of the step. */
  done(): readonly [View, ReadonlyArray<Item>] {
    if (this.brief) this.finish({ type: "success", stopReason: null, entry: null })
    return [this.view, this.items]
  }

  say(event: AguiEvent): void {
    this.begin(false)
    this.push(event)
  }

  private push(event: AguiEvent): void {
    const { time } = this.moment
    this.items.push(time === null ? event : Object.assign(event, { timestamp: time }))
  }

  /** Opens a run where none is. Without `lasts` it ends with the step. */
  begin(lasts: boolean): void {
    const { options, run } = this.view
    if (run !== null) {
      if (lasts) this.brief = false
      return
    }
    this.brief = !lasts && options.runId === null
    const id = options.runId ?? this.moment.run
    this.push({ type: "RUN_STARTED", threadId: options.threadId, runId: id, protocolVersion })
    this.patch({ run: { id, usage: undefined }, subagents: new Set(), ended: new Set() })
  }

  count(usage: TokenUsage): void {
    const { run } = this.view
    if (run !== null) this.patch({ run: { id: run.id, usage: [...(run.usage ?? []), usage] } })
  }

  /** Ends the run that is open, if one is. */
  finish(end: RunEnd): void {
    const { options, run } = this.view
    if (run === null) return
    this.brief = false
    this.closeContent()
    this.endCalls()
    for (const subagentRunId of this.view.subagents) {
      this.push({ type: "SUBAGENT_FINISHED", subagentRunId, outcome: { type: "suspended" } })
    }
    const usage = run.usage === undefined ? {} : { usage: summed(run.usage) }
    const head = { threadId: options.threadId, runId: run.id, ...usage }
    if (end.type === "error") this.push({ type: "RUN_ERROR", message: end.message, code: end.code, ...usage })
    else if (end.type === "interrupt") {
      const outcome = { type: end.type, interrupts: [...end.interrupts] }
      this.push({ type: "RUN_FINISHED", outcome, ...head })
    } else if (end.type === "cancelled") this.push({ type: "RUN_FINISHED", outcome: { type: end.type }, ...head })
    else {
      const { entry, stopReason } = end
      const result = stopReason === null ? {} : { result: { stopReason, entryId: entry } }
      this.push({ type: "RUN_FINISHED", outcome: { type: "success" }, ...result, ...head })
    }
    this.patch({ run: null, subagents: new Set(), outcome: null, ending: null, over: options.runId !== null })
  }

  /** Ends the text or the thinking that is open. */
  closeContent(): void {
    const { open, turn } = this.view
    if (open === null) return
    if (open === "text") this.say({ type: "TEXT_MESSAGE_END", messageId: answerId(turn.id) })
    else {
      this.say({ type: "REASONING_MESSAGE_END", messageId: thinkingId(turn.id) })
      this.say({ type: "REASONING_END", messageId: thinkingId(turn.id) })
    }
    this.patch({ open: null })
  }

  /** More of the turn's text. */
  text(delta: string): void {
    if (delta === "") return
    const { turn } = this.view
    this.sayText(delta)
    this.patch({ turn: { ...turn, text: turn.text + delta } })
  }

  thinking(delta: string): void {
    if (delta === "") return
    const { turn } = this.view
    this.sayThinking(delta)
    this.patch({ turn: { ...turn, thinking: turn.thinking + delta } })
  }

  private sayText(delta: string): void {
    const messageId = answerId(this.view.turn.id)
    if (this.view.open !== "text") {
      this.closeContent()
      this.say({ type: "TEXT_MESSAGE_START", messageId, role: "assistant" })
      this.patch({ open: "text" })
    }
    this.say({ type: "TEXT_MESSAGE_CONTENT", messageId, delta })
  }

  private sayThinking(delta: string): void {
    const messageId = thinkingId(this.view.turn.id)
    if (this.view.open !== "thinking") {
      this.closeContent()
      this.say({ type: "REASONING_START", messageId })
      this.say({ type: "REASONING_MESSAGE_START", messageId, role: "reasoning" })
      this.patch({ open: "thinking" })
    }
    this.say({ type: "REASONING_MESSAGE_CONTENT", messageId, delta })
  }

  /** More of a call's arguments. A call whose arguments are complete takes no more. */
  call(id: string, name: string, delta: string): void {
    if (this.view.results.has(id)) return
    const known = this.view.calls.get(id)
    if (known?.ended === true) return
    if (known === undefined) this.startCall(id, name)
    if (delta !== "") this.say({ type: "TOOL_CALL_ARGS", toolCallId: id, delta })
    this.setCall(id, { name, args: (known?.args ?? "") + delta, ended: false, committed: known?.committed ?? false })
  }

  /** A call with its whole arguments, where they were not said piece by piece. */
  wholeCall(id: string, name: string, args: unknown): void {
    if ((this.view.calls.get(id)?.args ?? "") === "") this.call(id, name, JSON.stringify(args) ?? "null")
  }

  private startCall(id: string, name: string): void {
    this.closeContent()
    const parentMessageId = answerId(this.view.turn.id)
    this.say({ type: "TOOL_CALL_START", toolCallId: id, toolCallName: name, parentMessageId })
  }

  private setCall(id: string, call: OpenCall): void {
    this.patch({ calls: new Map(this.view.calls).set(id, call) })
  }

  /** The arguments of a call are complete. */
  endCall(id: string): void {
    const call = this.view.calls.get(id)
    if (call === undefined || call.ended) return
    this.say({ type: "TOOL_CALL_END", toolCallId: id })
    this.setCall(id, { ...call, ended: true })
  }

  private endCalls(): void {
    for (const id of this.view.calls.keys()) this.endCall(id)
  }

  dropCall(id: string): void {
    this.endCall(id)
    const calls = new Map(this.view.calls)
    calls.delete(id)
    this.patch({ calls })
  }

  /** The result of a call; said once. */
  result(id: string, name: string, content: string | Array<ContentPart>, metadata: Record<string, unknown>): void {
    if (this.view.results.has(id)) return
    if (!this.view.calls.has(id)) this.call(id, name, "")
    this.dropCall(id)
    this.say({
      type: "TOOL_CALL_RESULT",
      messageId: resultId(id),
      toolCallId: id,
      content,
      role: "tool",
      metadata,
    })
    this.patch({ results: new Set(this.view.results).add(id) })
  }

  /** The messages as they are committed, in place of what the client has; then again what was said of the answer that is not. */
  messages(cut: Cut): void {
    this.begin(false)
    this.closeContent()
    this.endCalls()
    const { calls, turn } = this.view
    this.items.push({ type: "MESSAGES_DUE", cut, current: turn.id })
    if (turn.committed) return
    if (turn.thinking !== "") this.sayThinking(turn.thinking)
    if (turn.text !== "") this.sayText(turn.text)
    const said = [...calls].filter(([, call]) => !call.committed)
    this.patch({ calls: new Map([...calls].filter(([, call]) => call.committed)) })
    for (const [id, { args, name }] of said) this.call(id, name, args)
  }
}

/** One entry a model. */
const summed = (usages: ReadonlyArray<TokenUsage>): Array<TokenUsage> => {
  const sums = new Map<string, TokenUsage>()
  for (const usage of usages) {
    const key = `${usage.provider}/${usage.model}`
    const before = sums.get(key)
    sums.set(key, before === undefined ? usage : plus(before, usage))
  }
  return [...sums.values()]
}

const plus = (a: TokenUsage, b: TokenUsage): TokenUsage => ({
  ...a,
  inputTokens: (a.inputTokens ?? 0) + (b.inputTokens ?? 0),
  outputTokens: (a.outputTokens ?? 0) + (b.outputTokens ?? 0),
  totalTokens: (a.totalTokens ?? 0) + (b.totalTokens ?? 0),
  reasoningTokens: (a.reasoningTokens ?? 0) + (b.reasoningTokens ?? 0),
  cachedInputTokens: (a.cachedInputTokens ?? 0) + (b.cachedInputTokens ?? 0),
  cacheWriteInputTokens: (a.cacheWriteInputTokens ?? 0) + (b.cacheWriteInputTokens ?? 0),
})
