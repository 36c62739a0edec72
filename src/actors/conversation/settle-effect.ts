/**
 * What somebody says about a call in doubt: checked against its row, which is read here, inside the actor, so that of two answers that come
 * together the second one meets the first.
 */
import { Effect } from "effect"
import { callOf, settledAs } from "../../domain/effect.ts"
import { InvalidRequest, NotFound } from "../../domain/failure.ts"
import type { Task } from "../../domain/task.ts"
import type { StoreService } from "../../storage/store.ts"
import { keep, postpone } from "../kernel/index.ts"
import { orStorageFailure } from "./failures.ts"
import type { ConversationMessage } from "./messages.ts"
import type { Change, Shell } from "./shell.ts"

type Settle = Extract<ConversationMessage, { readonly type: "settle" }>

export const settleDoubt = (
  store: StoreService,
  shell: Shell,
  { answer, reply, taskId }: Settle,
): Effect.Effect<Change> => {
  // What the recovery leaves in doubt is not known yet.
  if (shell.data.state === "recovering") return Effect.succeed(postpone)
  const conversation = shell.data.conversation.id
  const answered = (tell: () => void): Effect.Effect<Change> => Effect.as(Effect.sync(tell), keep<Shell>(shell))
  return Effect.matchEffect(orStorageFailure(store.task(taskId)), {
    onFailure: (failure) => answered(() => reply.fail(failure)),
    onSuccess: (task) => {
      const refused =
        task === null || task.conversation !== conversation || callOf(task) === null
          ? new NotFound({ what: `call ${taskId}` })
          : task.inDoubt || settledAs(task)?.answer === answer
            ? null
            : notInDoubt(task)
      if (refused !== null) return answered(() => reply.fail(refused))
      if (task === null || !task.inDoubt) return answered(() => reply.succeed(undefined))
      return shell.handle({ type: "settleEffect", task, answer, reply })
    },
  })
}

const notInDoubt = (task: Task): InvalidRequest => {
  const said = settledAs(task)
  const actual = said === null ? `one that is ${task.outcome?.status ?? task.status}` : `one settled as ${said.answer}`
  return new InvalidRequest({ path: "taskId", expected: "a call that is in doubt", actual: `${actual} (${task.id})` })
}
