/**
 * Conversations that all talk at once, each with one turn after the other.
 */
import type { TurnEngine } from "./engine.ts"

export interface Shape {
  readonly conversations: number
  /** Turns of each conversation. */
  readonly turns: number
}

/** Milliseconds of every turn, in the order in which they ended. */
export const talk = async (engine: TurnEngine, { conversations, turns }: Shape): Promise<ReadonlyArray<number>> => {
  const times: Array<number> = []
  const one = async (conversation: number): Promise<void> => {
    for (let turn = 0; turn < turns; turn++) {
      const start = performance.now()
      await engine.turn(conversation, turn)
      times.push(performance.now() - start)
    }
  }
  await Promise.all(Array.from({ length: conversations }, (_, index) => one(index + 1)))
  return times
}
