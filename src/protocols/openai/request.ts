/**
 * What both APIs ask for: one input to one conversation, with the choices that go with it. Pure.
 */
import type { IncomingHttpHeaders } from "node:http"
import type { ExecutionMode } from "../../domain/document.ts"
import type { JsonObject } from "../../domain/json.ts"
import type { Message, UserPart } from "../../domain/message.ts"
import { shown } from "../../domain/shown.ts"
import { type Fields, optionalText } from "./fields.ts"
import { wrong } from "./problems.ts"

/** Which conversation is meant, as the headers and the body say. */
export interface Place {
  /** The client's own name of the conversation. */
  readonly session: string | null
  readonly conversation: number | null
}

export interface Asked {
  readonly model: string
  readonly stream: boolean
  readonly place: Place
  /** What the caller may do at most; null: as the conversation has it. */
  readonly mode: ExecutionMode | null
  /** The input. */
  readonly content: ReadonlyArray<UserPart>
  /** The system prompt of the client, or null. */
  readonly instructions: string | null
  /** Whether they count for this and later turns of a conversation that is there, or only where one is created. */
  readonly instructsEach: boolean
  /** What came before the input: read only where the conversation has nothing yet. May throw `InvalidRequest`. */
  readonly history: () => ReadonlyArray<Message>
  /** The answer is a value that fits it; null: words. */
  readonly schema: JsonObject | null
  /** Where `schema` came from, for faults of it. */
  readonly schemaParam: string
  /** A question of the client about its session, which is no part of it: asked beside it, without tools, and forgotten. */
  readonly aside: boolean
  /** Names this request: the same key changes nothing twice. */
  readonly key: string | null
}

const modes: ReadonlyArray<string> = ["plan", "accept-edits", "auto"]
const isMode = (value: string): value is ExecutionMode => modes.includes(value)

export const header = (headers: IncomingHttpHeaders, name: string): string | null => {
  const value = headers[name]
  const first = Array.isArray(value) ? value[0] : value
  return first === undefined || first === "" ? null : first
}

export const placeOf = (headers: IncomingHttpHeaders, body: Fields): Place => {
  const id = header(headers, "x-conversation-id")
  if (id !== null && !/^[1-9]\d{0,14}$/.test(id)) {
    throw wrong("x-conversation-id", "the number of a conversation", shown(id))
  }
  const session = header(headers, "x-session-id") ?? optionalText(body.session_id, "session_id") ?? null
  if (session === "") throw wrong("session_id", "a name", '""')
  return { session, conversation: id === null ? null : Number(id) }
}

export const modeOf = (headers: IncomingHttpHeaders, body: Fields): ExecutionMode | null => {
  const inHeader = header(headers, "x-super-pi-mode")
  const given = inHeader ?? optionalText(body.execution_mode, "execution_mode") ?? null
  if (given === null || isMode(given)) return given
  throw wrong(inHeader === null ? "execution_mode" : "x-super-pi-mode", `one of ${modes.join(", ")}`, shown(given))
}

export const modelOf = (body: Fields): string => {
  const model = optionalText(body.model, "model") ?? ""
  if (model.trim() === "")
    throw wrong("model", "the id of a harness or a model (GET /v1/models lists them)", shown(body.model))
  return model
}

/** The key of a request; longer ones than 255 characters are refused. */
export const keyOf = (headers: IncomingHttpHeaders): string | null => {
  const key = header(headers, "idempotency-key")
  if (key !== null && key.length > 255) throw wrong("idempotency-key", "at most 255 characters", `${key.length}`)
  return key
}
