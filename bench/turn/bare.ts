/**
 * Ours without what surrounds it: the engine path of a turn from its submission to its answer. The conversation machine decides, the store
 * commits (four times), the machine goes on; no actor, no job, no sandbox, no watcher.
 */
import { Effect, Exit, Scope } from "effect"
import { IdReserve } from "../../src/actors/conversation/ids.ts"
import { load } from "../../src/actors/conversation/load.ts"
import type { Action, Data, Env, MachineEvent } from "../../src/actors/conversation/machine/data.ts"
import { defaultPolicy } from "../../src/actors/conversation/machine/data.ts"
import { decide } from "../../src/actors/conversation/machine/decide.ts"
import { text } from "../../src/domain/message.ts"
import { noUsage } from "../../src/domain/usage.ts"
import { makeSqliteStore } from "../../src/storage/sqlite/store.ts"
import type { StoreService } from "../../src/storage/store.ts"
import type { OpenEngine } from "./engine.ts"
import { answerText, promptText, toolArguments, toolOutput } from "./turn.ts"

/** One conversation: its machine's data, driven by hand. */
class Driven {
  data: Data
  /** The newest answer. */
  answer = ""
  private calls = 0
  private readonly store: StoreService
  private readonly ids: IdReserve
  /** What is still to be told to the machine, oldest first. */
  private readonly events: Array<MachineEvent> = []

  constructor(store: StoreService, data: Data) {
    this.store = store
    this.data = data
    this.ids = new IdReserve(store)
  }

  /** Tells the machine something, then everything that follows from it. */
  tell(event: MachineEvent): Effect.Effect<void, unknown> {
    this.events.push(event)
    return Effect.whileLoop({
      while: () => this.events.length > 0,
      body: () => this.next(),
      step: () => {},
    })
  }

  private next(): Effect.Effect<void, unknown> {
    const event = this.events.shift()
    if (event === undefined) return Effect.void
    if (this.ids.covers(this.data, event)) return this.decide(event)
    return Effect.zipRight(this.ids.cover(this.data, event), this.decide(event))
  }

  private decide(event: MachineEvent): Effect.Effect<void, unknown> {
    const { ids, store } = this
    const env: Env = {
      ...{ now: Date.now(), ids, node: "bench", fence: store.epoch, random: Math.random, policy: defaultPolicy },
    }
    const decision = decide(this.data, event, env)
    if (decision.type === "postpone") return Effect.dieMessage(`${event.type} was postponed`)
    const adopt = () => {
      this.data = decision.data
      for (const action of decision.actions) this.perform(action)
    }
    return decision.commit === null ? Effect.sync(adopt) : Effect.map(store.commit(decision.commit), adopt)
  }

  /** What the world answers, at once. */
  private perform(action: Action): void {
    switch (action.type) {
      case "prepare": {
        const { token } = action
        this.events.push({ type: "prepared", token, model: "instant/model", window: 1_000_000_000, system: null })
        return
      }
      case "request": {
        const { token } = action
        const { entries } = this.data.context
        const last = entries.at(entries.length - 1)?.model[0]
        const call = { type: "toolCall", id: `call_${this.calls++}`, name: "noop", arguments: toolArguments } as const
        const finished =
          last?.role === "tool"
            ? { content: [text(answerText)], stopReason: "stop" as const, usage: noUsage }
            : { content: [call], stopReason: "tool_calls" as const, usage: noUsage }
        this.events.push({ type: "responded", token, finished })
        return
      }
      case "prepareCalls": {
        const { calls, token } = action
        const verdicts = calls.map(
          ({ arguments: args }) => ({ type: "run", args, replay: "safe", execution: "parallel" }) as const,
        )
        this.events.push({ type: "callsPrepared", token, verdicts })
        return
      }
      case "runTool":
        this.events.push({ type: "toolEnded", task: action.slot.task.id, result: { output: [text(toolOutput)] } })
        return
      case "self":
        this.events.push(action.event)
        return
      case "publish":
        if (action.event.type === "turn_completed") this.answer = action.event.text
        return
      default:
        return
    }
  }
}

const silent = { succeed: () => {}, fail: () => {} }

export const openBare: OpenEngine = async (path) => {
  const scope = await Effect.runPromise(Scope.make())
  const store = await Effect.runPromise(Scope.extend(makeSqliteStore({ path }), scope))
  const driven = new Map<number, Driven>()

  const open = Effect.gen(function* () {
    const [id] = yield* store.mint("conversation", 1)
    if (id === undefined) return yield* Effect.dieMessage("no id")
    const now = Date.now()
    const row = { id, parent: null, owner: null, principal: "local", title: "bench", createdAt: now, updatedAt: now }
    yield* store.commit({ conversations: [row] })
    const loaded = yield* load(store, id)
    if (loaded === null) return yield* Effect.dieMessage("no conversation")
    const one = new Driven(store, loaded.data)
    yield* one.tell({ type: "recover", stored: loaded.stored, replayOf: () => "unsafe", reconciles: () => false })
    return one
  })

  return {
    begin: async (count) => {
      for (let conversation = 1; conversation <= count; conversation++) {
        driven.set(conversation, await Effect.runPromise(open))
      }
    },
    turn: async (conversation, turn) => {
      const one = driven.get(conversation)
      if (one === undefined) throw new RangeError(`conversation ${conversation} was not begun`)
      const content = [text(promptText(turn))]
      const requestId = `turn-${turn}`
      one.answer = ""
      await Effect.runPromise(one.tell({ type: "submit", content, whenBusy: "followUp", requestId, reply: silent }))
      if (one.answer !== answerText) throw new Error(`turn ${turn} answered ${JSON.stringify(one.answer)}`)
    },
    close: () => Effect.runPromise(Scope.close(scope, Exit.void)),
  }
}
