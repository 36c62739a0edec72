/**
 * What is asked of the storage before the machine admits, withdraws or cancels: whether a `requestId` was admitted before, and what became of
 * a submission that is not queued any more.
 */
import { Effect } from "effect"
import { type Failure, InvalidRequest, NotFound, Refused } from "../../domain/failure.ts"
import type { Store } from "../../storage/store.ts"
import { Store as StoreTag } from "../../storage/store.ts"
import { keep } from "../kernel/index.ts"
import { orStorageFailure } from "./failures.ts"
import type { MachineEvent, Reply, SubmissionRow } from "./machine/data.ts"
import type { Change, Shell } from "./shell.ts"

type EventOf<Type extends MachineEvent["type"]> = Extract<MachineEvent, { readonly type: Type }>

/** Answers with a row or a failure, and changes nothing. */
const answered = <A>(shell: Shell, reply: Reply<A>, row: Effect.Effect<A, Failure>): Effect.Effect<Change> =>
  Effect.match(row, {
    onFailure: (failure) => {
      reply.fail(failure)
      return keep<Shell>(shell)
    },
    onSuccess: (found) => {
      reply.succeed(found)
      return keep<Shell>(shell)
    },
  })

/** A `requestId` that was admitted before answers with the same submission; as an input and as a write it is a mistake. */
export const admitOnce = (
  shell: Shell,
  message: EventOf<"submit"> | EventOf<"write">,
): Effect.Effect<Change, never, Store> => {
  const { requestId } = message
  if (requestId === null) return shell.handle(message)
  const kind = message.type === "submit" ? "input" : "write"
  return Effect.flatMap(StoreTag, (store) =>
    Effect.matchEffect(orStorageFailure(store.submissionByRequest(shell.data.conversation.id, requestId)), {
      onFailure: (failure) => answered(shell, message.reply, Effect.fail(failure)),
      onSuccess: (known) => {
        if (known === null) return shell.handle(message)
        const same = known.kind === kind
        return answered(shell, message.reply, same ? Effect.succeed(known) : otherKind(requestId, known.kind))
      },
    }),
  )
}

const otherKind = (requestId: string, kind: string): Effect.Effect<never, InvalidRequest> =>
  Effect.fail(
    new InvalidRequest({
      path: "requestId",
      expected: "one that is new, or that made the same submission",
      actual: `${JSON.stringify(requestId)}, which made ${kind === "input" ? "an input" : "a write"}`,
    }),
  )

/** Withdraws what is queued. What was withdrawn before is answered the same again; anything else is refused. */
export const withdraw = (shell: Shell, message: EventOf<"withdraw">): Effect.Effect<Change, never, Store> => {
  const id = message.submission
  const { conversation, queue, state } = shell.data
  if (state === "recovering" || queue.some((row) => row.id === id)) return shell.handle(message)
  const found = Effect.flatMap(StoreTag, (store) => orStorageFailure(store.submission(id)))
  const known = Effect.flatMap(found, (row): Effect.Effect<SubmissionRow, Failure> => {
    if (row === null || row.conversation !== conversation.id) return new NotFound({ what: `submission ${id}` })
    if (row.status === "unanswered" && row.reason === "withdrawn") return Effect.succeed(row)
    const detail = `submission ${id} is ${row.status}; only what is queued can be withdrawn`
    return new Refused({ rule: "submission_status", detail })
  })
  return Effect.flatMap(Effect.context<Store>(), (context) =>
    answered(shell, message.reply, Effect.provide(known, context)),
  )
}

/** Cancels; of one submission only where it is queued or in a run. One that has ended is nothing to cancel. */
export const cancel = (shell: Shell, message: EventOf<"cancel">): Effect.Effect<Change, never, Store> => {
  const { reply, submission: id } = message
  const { conversation, parked, queue, run, state } = shell.data
  const open = [...queue, ...(run?.submissions ?? []), ...(parked?.submissions ?? [])]
  if (id === undefined || state === "recovering" || open.some((row) => row.id === id)) return shell.handle(message)
  const known = Effect.flatMap(StoreTag, (store) => orStorageFailure(store.submission(id)))
  return Effect.flatMap(Effect.either(known), (row) => {
    if (row._tag === "Left") return answered(shell, reply, Effect.fail(row.left))
    const found = row.right !== null && row.right.conversation === conversation.id
    const ended = Effect.succeed({ cancelled: false })
    return answered(shell, reply, found ? ended : new NotFound({ what: `submission ${id}` }))
  })
}
