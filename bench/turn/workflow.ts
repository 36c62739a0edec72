/**
 * The peer: @effect/workflow on a single SQLite runner, the same turn as one workflow of four activities (take the input, ask, call the tool,
 * ask again), each activity's result durable. It keeps no transcript.
 */
import { ClusterWorkflowEngine, SingleRunner } from "@effect/cluster"
import { SqliteClient } from "@effect/sql-sqlite-node"
import { Activity, Workflow } from "@effect/workflow"
import { Effect, Layer, ManagedRuntime, Schema } from "effect"
import type { OpenEngine } from "./engine.ts"
import { answerText, promptText, toolArguments, toolOutput } from "./turn.ts"

const Turn = Workflow.make({
  name: "Turn",
  payload: { conversation: Schema.Number, turn: Schema.Number, prompt: Schema.String },
  success: Schema.String,
  idempotencyKey: ({ conversation, turn }) => `${conversation}/${turn}`,
})

const step = (name: string, result: string) =>
  Activity.make({ name, success: Schema.String, execute: Effect.succeed(result) })

const TurnLayer = Turn.toLayer(({ prompt }) =>
  Effect.gen(function* () {
    yield* step("input", prompt)
    yield* step("request", JSON.stringify(toolArguments))
    yield* step("tool", toolOutput)
    return yield* step("answer", answerText)
  }),
)

export const openWorkflow: OpenEngine = async (path) => {
  const cluster = ClusterWorkflowEngine.layer.pipe(
    Layer.provideMerge(SingleRunner.layer({ runnerStorage: "memory" })),
    Layer.provide(SqliteClient.layer({ filename: path })),
  )
  const runtime = ManagedRuntime.make(TurnLayer.pipe(Layer.provideMerge(cluster)))
  await runtime.runPromise(Effect.void)
  return {
    begin: async () => {},
    turn: async (conversation, turn) => {
      const answer = await runtime.runPromise(Turn.execute({ conversation, turn, prompt: promptText(turn) }))
      if (answer !== answerText) throw new Error(`the workflow answered ${JSON.stringify(answer)}`)
    },
    close: () => runtime.dispose(),
  }
}
