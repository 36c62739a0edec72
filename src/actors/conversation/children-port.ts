/**
 * The port to a conversation's subagents, and what the shell does with it: stopping them and looking after them. Each child that is over
 * comes back as a `childEnded`; what is told twice counts once.
 */
import { Effect } from "effect"
import type { TaskId } from "../../domain/ids.ts"
import type { SubagentEnd, SubagentInput } from "../../domain/subagent.ts"
import type { Send } from "./jobs.ts"
import type { Action, Reply } from "./machine/data.ts"

export interface Children {
  /** Cancels what a child does and all below it; gives how it ended once it is idle. */
  readonly stop: (input: SubagentInput) => Effect.Effect<SubagentEnd>
  /** How a child ended, or null while it goes on. One whose job is gone is stopped. */
  readonly look: (task: TaskId, job: number, input: SubagentInput) => Effect.Effect<SubagentEnd | null>
}

const nobody: Reply<void> = { succeed: () => {}, fail: () => {} }

type Tend = Extract<Action, { readonly type: "stopChildren" | "checkChildren" }>

/** Does what the action says for each child beside the machine; gives the Effects to fork. */
export const tend = (action: Tend, port: Children | undefined, send: Send): ReadonlyArray<Effect.Effect<void>> => {
  if (port === undefined) return []
  return action.children.map(({ input, job, task }) =>
    Effect.flatMap(
      action.type === "stopChildren" ? port.stop(input) : port.look(task.id, job, input),
      (end): Effect.Effect<void> =>
        end === null ? Effect.void : send({ type: "childEnded", task: task.id, end, reply: nobody }),
    ),
  )
}
