/**
 * The floor: the rows of the same turn written directly with `better-sqlite3`, nothing in between.
 */
import { openTurnFloor } from "../store/turn-floor.ts"
import type { OpenEngine } from "./engine.ts"
import { answerText, promptText, toolArguments, toolOutput } from "./turn.ts"

export const openFloor: OpenEngine = async (path) => {
  const floor = openTurnFloor(path, "NORMAL", {
    prompt: promptText,
    toolName: "noop",
    toolArguments,
    toolOutput,
    answer: answerText,
  })
  return {
    begin: async (count) => {
      for (let conversation = 1; conversation <= count; conversation++) floor.begin(conversation)
    },
    turn: floor.turn,
    close: async () => floor.close(),
  }
}
