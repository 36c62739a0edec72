/**
 * The peer on PostgreSQL: DBOS Transact, the same turn as one workflow of three steps (ask, call the tool, ask again). The input is durable as the
 * workflow's argument, each step's result as its own row, the answer as the workflow's result. It keeps no transcript.
 */
import { DBOS } from "@dbos-inc/dbos-sdk"
import type { OpenEngine } from "./engine.ts"
import { answerText, promptText, toolArguments, toolOutput } from "./turn.ts"

const runTurn = DBOS.registerWorkflow(
  async (_prompt: string): Promise<string> => {
    await DBOS.runStep(async () => ({ name: "noop", args: toolArguments }), { name: "request" })
    await DBOS.runStep(async () => toolOutput, { name: "tool" })
    return await DBOS.runStep(async () => answerText, { name: "answer" })
  },
  { name: "turn" },
)

/** On a database of a PostgreSQL server, without tables yet. One at a time in a process. */
export const openDbos: OpenEngine = async (url) => {
  DBOS.setConfig({ name: "bench", systemDatabaseUrl: url, logLevel: "error" })
  await DBOS.launch()
  return {
    begin: async () => {},
    turn: async (conversation, turn) => {
      const answer = await DBOS.withNextWorkflowID(`${conversation}/${turn}`, () => runTurn(promptText(turn)))
      if (answer !== answerText) throw new Error(`DBOS answered ${JSON.stringify(answer)}`)
    },
    close: () => DBOS.shutdown(),
  }
}
