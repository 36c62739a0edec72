/**
 * What a watcher knows of a conversation after each event: a snapshot, carried on by its tail. Pure.
 *
 * Carried on are the state, the turn, the model, the mode, the partial answer, running calls, the queue, the retry, a parked run,
 * compactions, questions, subagents, the plan, the tokens, the title and the choices. No event tells of the rest (`entries`, the attempts of a
 * compaction, how far an output is kept, subagents whose job waits): it is as old as the snapshot.
 */
import type { Event, MachineState, SessionState, ToolView } from "./event.ts"
import type { QuestionView } from "./question.ts"

type EventOf<Type extends Event["type"]> = Extract<Event, { readonly type: Type }>

/** What a question asks, as the snapshot lists it. */
export const askedBy = (event: EventOf<"permission_request"> | EventOf<"ui_request">): QuestionView => {
  const { call_id, created_at, expires_at, question_id, title } = event
  const head = { question_id, call_id, title, created_at, expires_at }
  if (event.type === "ui_request") return { kind: "choice", questions: event.questions, ...head }
  const { arguments: args, options, reason, tool } = event
  return { kind: "permission", tool, arguments: args, reason, options, ...head }
}

type Subagents = NonNullable<SessionState["subagents"]>

const withSubagents = (session: SessionState, subagents: Subagents): SessionState => {
  const { subagents: _, ...rest } = session
  return subagents.length === 0 ? rest : Object.assign({ subagents }, rest)
}

const withTools = (session: SessionState, tools: ReadonlyArray<ToolView>): SessionState => ({ ...session, tools })

const entered = (session: SessionState, state: MachineState, turn: SessionState["turn_id"]): SessionState => {
  const next = { ...session, state, turn_id: turn, retry: state === "sleeping_backoff" ? session.retry : null }
  return state === "idle" ? withSubagents({ ...next, tools: [], partial: null }, []) : next
}

const said = (session: SessionState, text: string, thinking: string): SessionState => {
  const { partial } = session
  return {
    ...session,
    partial: { text: (partial?.text ?? "") + text, thinking: (partial?.thinking ?? "") + thinking },
  }
}

/** What is known after `event`. */
export const followed = (session: SessionState, event: Event): SessionState => {
  if (event.type === "snapshot") return event.session
  return { ...change(session, event), seq_no: event.seq_no }
}

const change = (session: SessionState, event: Exclude<Event, { readonly type: "snapshot" }>): SessionState => {
  switch (event.type) {
    case "submission_updated": {
      const others = session.queued.filter((id) => id !== event.submission_id)
      const queued = event.status === "queued" ? [...others, event.submission_id] : others
      return { ...session, queued }
    }
    case "turn_started":
      return {
        ...session,
        turn_id: event.turn_id,
        model: event.model === "" ? session.model : event.model,
        parked: null,
        partial: null,
        tools: [],
      }
    case "turn_completed":
    case "turn_error":
    case "turn_cancelled":
      return { ...session, parked: null, partial: null, tools: [] }
    case "text_delta":
      return said(session, event.text, "")
    case "thinking_delta":
      return said(session, "", event.text)
    case "message_completed":
      return event.role === "assistant" ? { ...session, partial: null } : session
    case "stream_reset":
      return { ...session, partial: null }
    case "retry_scheduled":
      return { ...session, retry: { attempt: event.attempt, at: event.at_ms, reason: event.reason } }
    case "tool_started": {
      const { arguments: args, call_id, name, task_id } = event
      const others = session.tools.filter((tool) => tool.call_id !== call_id)
      return withTools(session, [...others, { task_id, call_id, name, arguments: args, output: "" }])
    }
    case "tool_output":
      return withTools(
        session,
        session.tools.map((tool) =>
          tool.call_id === event.call_id ? { ...tool, output: tool.output + event.delta } : tool,
        ),
      )
    case "tool_completed":
    case "tool_blocked":
      return withTools(
        session,
        session.tools.filter((tool) => tool.call_id !== event.call_id),
      )
    case "state_changed":
      return entered(session, event.to, event.turn_id)
    case "mode_changed":
      return { ...session, mode: event.mode }
    case "session_changed": {
      const { cwd, effort, harness, mode, model, structured, title } = event
      const { effort: _, structured: __, ...rest } = session
      const kept = effort === undefined ? {} : { effort }
      return { ...rest, ...kept, ...(structured === undefined ? {} : { structured }), cwd, harness, mode, model, title }
    }
    case "usage_updated":
      return { ...session, usage: event.total }
    case "compaction_started": {
      const { reason, task_id } = event
      const others = session.compactions.filter((one) => one.task !== task_id)
      return { ...session, compactions: [...others, { task: task_id, reason, attempt: 1, retry: null }] }
    }
    case "compaction_completed": {
      const { error, reason, status, task_id } = event
      const failure = status === "failed" ? { task: task_id, reason, error: error ?? "" } : session.compaction_failure
      const compactions = session.compactions.filter((one) => one.task !== task_id)
      return { ...session, compactions, compaction_failure: status === "completed" ? null : failure }
    }
    case "permission_request":
    case "ui_request": {
      const others = session.questions.filter((one) => one.question_id !== event.question_id)
      return { ...session, questions: [...others, askedBy(event)] }
    }
    case "question_settled":
      return { ...session, questions: session.questions.filter((one) => one.question_id !== event.question_id) }
    case "plan_updated":
      return Object.assign({ plan: event.items }, withoutPlan(session))
    case "subagent_started": {
      const { role, subagent_id, task_id } = event
      const others = (session.subagents ?? []).filter((one) => one.task_id !== task_id)
      return withSubagents(session, [...others, { task_id, subagent_id, role, running: true }])
    }
    case "subagent_finished":
      return withSubagents(
        session,
        (session.subagents ?? []).filter((one) => one.task_id !== event.task_id),
      )
    case "toolcall_delta":
    case "notice":
      return session
  }
}

const withoutPlan = ({ plan: _, ...rest }: SessionState): SessionState => rest
