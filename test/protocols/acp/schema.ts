/**
 * The protocol's own JSON Schema, as its package ships it: what an agent sends is checked against it, since clients do not.
 */
import { readFileSync } from "node:fs"
import { resolve } from "node:path"
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js"

const file = resolve(import.meta.dirname, "../../../node_modules/@agentclientprotocol/sdk/schema/v1/schema.json")

const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: false })
ajv.addSchema(JSON.parse(readFileSync(file, "utf8")), "acp")

const compiled = new Map<string, ValidateFunction>()

const fault = (name: string, value: unknown): string | null => {
  const validate = compiled.get(name) ?? ajv.compile({ $ref: `acp#/$defs/${name}` })
  compiled.set(name, validate)
  return validate(value) ? null : `${name}: ${ajv.errorsText(validate.errors)}: ${JSON.stringify(value)}`
}

const results: Readonly<Record<string, string>> = {
  initialize: "InitializeResponse",
  authenticate: "AuthenticateResponse",
  logout: "LogoutResponse",
  "session/new": "NewSessionResponse",
  "session/load": "LoadSessionResponse",
  "session/resume": "ResumeSessionResponse",
  "session/list": "ListSessionsResponse",
  "session/close": "CloseSessionResponse",
  "session/delete": "DeleteSessionResponse",
  "session/set_mode": "SetSessionModeResponse",
  "session/set_config_option": "SetSessionConfigOptionResponse",
  "session/prompt": "PromptResponse",
  "_superpi/session/fork": "NewSessionResponse",
}

const params: Readonly<Record<string, string>> = {
  "session/update": "SessionNotification",
  "session/request_permission": "RequestPermissionRequest",
  "elicitation/create": "CreateElicitationRequest",
  "fs/read_text_file": "ReadTextFileRequest",
  "$/cancel_request": "CancelRequestNotification",
}

/** A message as it is on the wire. */
export interface Wire {
  readonly id?: string | number | null
  readonly method?: string
  readonly params?: unknown
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

/** What is wrong with a message of the agent, or null. `asked` is the method that it answers, where it answers one. */
export const wireFault = (message: Wire, asked: string | undefined): string | null => {
  if (message.method !== undefined) {
    const name = params[message.method]
    return name === undefined ? `an unknown method ${message.method}` : fault(name, message.params)
  }
  if (message.error !== undefined) return fault("Error", message.error)
  const name = asked === undefined ? undefined : results[asked]
  return name === undefined ? `an answer to ${asked}` : fault(name, message.result)
}

/** What is wrong with an update, or null. */
export const updateFault = (update: unknown): string | null => fault("SessionUpdate", update)
/** What is wrong with parameters of a method of the client, or null. */
export const paramsFault = (method: string, value: unknown): string | null => fault(params[method] ?? method, value)
