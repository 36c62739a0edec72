/**
 * Which of two models a request goes to: the planning model until the work begins, the implementation model from then on. Pure: it is read
 * off the transcript, so that a run that goes on after a crash goes on with the same model. Rules:
 * 1. In mode `plan` it is the planning model.
 * 2. Once the run has called a tool that edits, or a turn of it was written by the implementation model, it is that one: a run never goes back.
 * 3. Where the newest prompt in the transcript said mode `plan` and the mode is another one now, the plan is made: implementation.
 * 4. Otherwise it is the planning model.
 */
import type { ExecutionMode } from "../../../domain/document.ts"
import { type AssistantMessage, type Message, toolCallsOf } from "../../../domain/message.ts"
import { saysPlanMode } from "../../prompt.ts"

export type Phase = "planning" | "implementation"

export interface Route {
  readonly phase: Phase
  /** Why, for people. */
  readonly rule:
    | "mode plan"
    | "the run has edited"
    | "the run is being implemented"
    | "plan mode was left"
    | "nothing was edited yet"
}

export interface RouteInput {
  readonly messages: ReadonlyArray<Message>
  /** Turns of the run, the one being prepared included. */
  readonly turn: number
  readonly mode: ExecutionMode
  /** Tools whose call begins the implementation. */
  readonly editTools: ReadonlyArray<string>
  /** Names under which answers of the implementation model are stored (`provider/model`); none where it is not known. */
  readonly implementationModels: ReadonlyArray<string>
}

/** The answers of the run so far: the last `turn - 1`. */
const answersOf = (messages: ReadonlyArray<Message>, turn: number): ReadonlyArray<AssistantMessage> => {
  const answers = messages.filter((message): message is AssistantMessage => message.role === "assistant")
  return turn <= 1 ? [] : answers.slice(-(turn - 1))
}

/** Whether the newest prompt that names a mode names `plan`. */
const wasPlanning = (messages: ReadonlyArray<Message>): boolean => {
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at]
    if (message?.role !== "system") continue
    for (const { text } of message.sections) {
      const plan = text === null ? null : saysPlanMode(text)
      if (plan !== null) return plan
    }
  }
  return false
}

export const route = ({ editTools, implementationModels, messages, mode, turn }: RouteInput): Route => {
  if (mode === "plan") return { phase: "planning", rule: "mode plan" }
  const answers = answersOf(messages, turn)
  if (answers.some((answer) => toolCallsOf(answer).some((call) => editTools.includes(call.name)))) {
    return { phase: "implementation", rule: "the run has edited" }
  }
  if (answers.some((answer) => implementationModels.includes(answer.model))) {
    return { phase: "implementation", rule: "the run is being implemented" }
  }
  if (wasPlanning(messages)) return { phase: "implementation", rule: "plan mode was left" }
  return { phase: "planning", rule: "nothing was edited yet" }
}
