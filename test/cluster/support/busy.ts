/**
 * Conversations that are made busy, seen to be so, and held to their promises at the end. What they do is read from the database: no request
 * reaches a node that could wake anything.
 */
import { contextFaults } from "../../../stress/context-faults.ts"
import { readEffects } from "../../../stress/database.ts"
import { answersOf, faultsAtRest } from "../../../stress/invariants.ts"
import type { RpcSocket } from "./rpc-socket.ts"
import type { System } from "./system.ts"
import { until, untilTrue } from "./until.ts"
import type { Work } from "./work.ts"

export interface Busy {
  readonly conversation: number
  readonly work: Work
}

interface Submitted {
  readonly submission: number
  readonly prompt: string
  readonly answer: string
}

interface State {
  readonly state: string
  readonly partial: { readonly text: string } | null
  readonly queued: ReadonlyArray<number>
  readonly questions: ReadonlyArray<{ readonly question_id: number }>
}

/** Everything that was acknowledged, by the conversation that it was said to. */
export type Promises = Map<number, Array<Submitted>>

export const openConversations = async (
  system: System,
  clients: ReadonlyArray<RpcSocket>,
  count: number,
): Promise<ReadonlyArray<number>> => {
  const found: Array<number> = []
  const open = async (client: RpcSocket, from: number): Promise<void> => {
    for (let at = from; at < count; at += clients.length) {
      const { conversation_id } = await client.call<{ conversation_id: number }>("session.open", {
        agent: { cwd: system.workspace, questions: "wait" },
        requestId: `open-${at}`,
      })
      found.push(conversation_id)
    }
  }
  await Promise.all(clients.map(open))
  return found
}

/** Submits; what was acknowledged is written down. */
export const submit = async (
  client: RpcSocket,
  conversation: number,
  { answer, prompt }: Pick<Submitted, "answer" | "prompt">,
  promises: Promises,
): Promise<void> => {
  const receipt = await client.call<{ submission_id: number }>("session.submit", {
    conversationId: conversation,
    content: prompt,
    requestId: prompt,
  })
  const known = promises.get(conversation) ?? []
  promises.set(conversation, [...known, { submission: receipt.submission_id, prompt, answer }])
}

/** Starts a piece of work and waits until its conversation is busy the way that it is about. */
export const keepBusy = async (
  system: System,
  client: RpcSocket,
  { conversation, work }: Busy,
  promises: Promises,
): Promise<void> => {
  const mode = work.kind === "asks" ? "accept-edits" : "auto"
  await client.call("session.configure", { conversationId: conversation, agent: { mode } })
  await submit(client, conversation, work, promises)
  let last: State | null = null
  const becomes = (holds: (state: State) => boolean) =>
    untilTrue(
      () => `conversation ${conversation} ${work.kind}: ${JSON.stringify(last)}`,
      async () => {
        const state = await client.call<State>("session.state", { conversationId: conversation })
        last = state
        return holds(state)
      },
      { every: 50 },
    )
  const streams = ({ partial, state }: State) => state === "streaming_llm" && (partial?.text ?? "") !== ""
  switch (work.kind) {
    case "streams":
      return becomes(streams)
    case "calls":
      return untilTrue(`the call of ${work.key} begins`, () => readEffects(system.effects).has(work.tokens[0] ?? ""))
    case "delegates":
      return becomes(({ state }) => state === "awaiting_children")
    case "sleeps":
      return becomes(({ state }) => state === "sleeping_backoff")
    case "asks":
      return becomes(({ questions }) => questions.length > 0)
    case "queues":
      await becomes(streams)
      if (work.followUp !== null) await submit(client, conversation, work.followUp, promises)
      return becomes(({ queued }) => queued.length > 0)
  }
}

/** All of them at once, each through the next of the clients. */
export const keepAllBusy = async (
  system: System,
  clients: ReadonlyArray<RpcSocket>,
  busy: ReadonlyArray<Busy>,
  promises: Promises,
): Promise<void> => {
  const begin = (sleeping: boolean) =>
    Promise.all(
      busy
        .filter(({ work }) => (work.kind === "sleeps") === sleeping)
        .map((one, at) => keepBusy(system, clients[at % clients.length] as RpcSocket, one, promises)),
    )
  await begin(false)
  await begin(true)
}

/** How many of the conversations have nothing open. */
export const restingOf = async (system: System, conversations: ReadonlyArray<number>): Promise<number> => {
  const open = await system.database.rows<{ conversation: number }>(
    `SELECT DISTINCT conversation FROM submissions WHERE status IN ('queued', 'placed') AND conversation = ANY($1::bigint[])`,
    [conversations],
  )
  return conversations.length - open.length
}

/**
 * For each conversation, when it was first seen to have committed something under another epoch, in ms after `since`. Seen by asking the
 * database again and again.
 */
export const recoveries = async (
  system: System,
  conversations: ReadonlyArray<number>,
  {
    epoch,
    since,
    start,
  }: { readonly epoch: number; readonly since: ReadonlyMap<number, number>; readonly start: number },
): Promise<ReadonlyMap<number, number>> => {
  const at = new Map<number, number>()
  await untilTrue(
    () => `these go on elsewhere: ${conversations.filter((id) => !at.has(id)).join(", ")}`,
    async () => {
      const found = await system.database.progress(conversations)
      const now = performance.now()
      for (const { conversation, epoch: taken, seq } of found) {
        if (taken === epoch || at.has(conversation)) continue
        if (seq > (since.get(conversation) ?? 0)) at.set(conversation, Math.round(now - start))
      }
      return at.size === conversations.length
    },
    { every: 10 },
  )
  return at
}

/** Allows what the conversations ask, through any node. */
export const answerQuestions = async (client: RpcSocket, conversations: ReadonlyArray<number>): Promise<void> => {
  for (const conversation of conversations) {
    const [asked] = await until(`conversation ${conversation} asks`, async () => {
      const open = await client.call<ReadonlyArray<{ question: { question_id: number } }>>("session.questions", {
        conversationId: conversation,
      })
      return open.length > 0 ? open : null
    })
    await client.call("ui.respond", {
      questionId: asked?.question.question_id,
      answer: "allow_once",
      requestId: `allow-${asked?.question.question_id}`,
    })
  }
}

/** Every broken promise, one line each: nothing acknowledged is missing, all of it is answered once and well, no unsafe call ran twice. */
export const brokenPromises = async (
  system: System,
  promises: Promises,
  works: ReadonlyArray<Pick<Work, "certain" | "tokens">>,
): Promise<ReadonlyArray<string>> => {
  const world = await system.database.world()
  const effects = readEffects(system.effects)
  const answers = answersOf(world.entries)
  const submissions = new Map(world.submissions.map((row) => [Number(row.id), row]))
  const faults: Array<string> = []
  const answered = new Map<number, number>()
  for (const [conversation, list] of promises) {
    for (const { answer, prompt, submission } of list) {
      const row = submissions.get(submission)
      if (row === undefined || Number(row.conversation) !== conversation) {
        faults.push(`submission ${submission} (${prompt}) was acknowledged and is not there`)
        continue
      }
      if (row.status !== "done" || row.answer === null) {
        faults.push(`submission ${submission} (${prompt}) is ${row.status}: ${row.reason} ${row.detail}`)
        continue
      }
      const by = answered.get(row.answer)
      if (by !== undefined) faults.push(`submissions ${by} and ${submission} have one answer`)
      answered.set(row.answer, submission)
      const text = answers.get(row.answer)?.text
      if (text !== answer) faults.push(`submission ${submission} (${prompt}) is answered ${JSON.stringify(text)}`)
    }
    const asked = world.submissions.filter((row) => Number(row.conversation) === conversation && row.kind === "input")
    if (asked.length !== list.length) {
      faults.push(`conversation ${conversation} has ${asked.length} inputs, ${list.length} were sent`)
    }
  }
  for (const { certain, tokens } of works) {
    for (const token of tokens) {
      const starts = effects.get(token)?.starts ?? 0
      if (starts > 1) faults.push(`unsafe call ${token} ran ${starts} times`)
      if (starts === 0 && certain.includes(token)) faults.push(`unsafe call ${token} never ran`)
    }
  }
  return [...faults, ...faultsAtRest(world, effects, contextFaults)]
}
