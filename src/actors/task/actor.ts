/**
 * The actor of one task that runs: its phases one after another, or its abort handler. It owns nothing that lasts: every step goes through the
 * ledger, and when it is stopped the Effect of its phase is interrupted. It ends with its last word to the ledger, or its `Down`.
 */
import { Effect } from "effect"
import type { Json } from "../../domain/json.ts"
import { traced } from "../../domain/traced.ts"
import type { StoreService } from "../../storage/store.ts"
import { type ActorRef, ask, type Behavior, behavior, tell } from "../kernel/index.ts"
import type { RunMode, TaskRow } from "./board.ts"
import type { PhaseEnd, PhaseTask, TaskCode } from "./define.ts"
import type { RunEnd } from "./events.ts"
import { TaskMemory } from "./memory.ts"
import type { LedgerMessage } from "./messages.ts"
import { PhaseRuntime } from "./phase-runtime.ts"
import type { Step } from "./step.ts"

export interface TaskRun {
  /** Numbers the runs of a ledger. */
  readonly run: number
  readonly mode: RunMode
  readonly row: TaskRow
  readonly code: TaskCode<never>
  readonly store: StoreService
  readonly ledger: ActorRef<LedgerMessage>
}

/** What the live tree shows. */
interface Showing {
  phase: string
}

export const taskActor = (options: TaskRun): Behavior<Showing, "go"> =>
  behavior<Showing, "go">({
    name: "task",
    init: () => ({ phase: "starting" }),
    receive: (showing, _go, self) =>
      (options.mode === "phase" ? phases(options, showing) : undo(options, showing)).pipe(
        Effect.zipRight(self.stop()),
        Effect.as(showing),
      ),
    describe: ({ phase }) => `${options.row.kind} ${phase}`,
  })

const phases = (options: TaskRun, showing: Showing): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { code, ledger, run, store } = options
    const memory = new TaskMemory(store, options.row)
    const { id } = options.row
    for (let row: TaskRow | null = options.row; row !== null; ) {
      showing.phase = phaseOf(row)
      const runtime = new PhaseRuntime(row, store, memory)
      const end: PhaseEnd = yield* code.run(seenOf(row), runtime).pipe(traced("super_pi.task", attributesOf(row)))
      if (end.type !== "step") return yield* tell(ledger, { type: "runEnded", run, id, end })
      row = yield* commitStep(options, end.step, runtime)
    }
  })

/** The row from which this actor goes on, or null when it is done. */
const commitStep = (
  { ledger, row, run }: TaskRun,
  step: Step<Json, Json, Json>,
  { spawned }: PhaseRuntime,
): Effect.Effect<TaskRow | null> =>
  ask<LedgerMessage, TaskRow | null>(
    ledger,
    (reply) => ({ type: "step", run, id: row.id, step, children: spawned, reply }),
    { timeoutMs: Number.POSITIVE_INFINITY },
  ).pipe(Effect.orDie)

const undo = (options: TaskRun, showing: Showing): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { code, ledger, row, run, store } = options
    showing.phase = "abort"
    const runtime = new PhaseRuntime(row, store, new TaskMemory(store, row))
    const end = code.undo === null ? null : yield* code.undo(seenOf(row), runtime)
    yield* tell(ledger, { type: "runEnded", run, id: row.id, end: asEnd(end) })
  })

const asEnd = (end: PhaseEnd | null): RunEnd => (end === null || end.type === "step" ? { type: "undone" } : end)

const seenOf = ({ checkpoint, conversation, id, input, owner }: TaskRow): PhaseTask<Json, Json> => ({
  id,
  conversation,
  owner,
  input,
  checkpoint,
})

const phaseOf = ({ checkpoint }: TaskRow): string =>
  typeof checkpoint === "object" && checkpoint !== null && "phase" in checkpoint ? String(checkpoint.phase) : "?"

const attributesOf = (row: TaskRow) => ({ "task.id": row.id, "task.kind": row.kind, "task.phase": phaseOf(row) })
