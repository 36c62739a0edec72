/**
 * What the agent asks and tells an editor, over one connection.
 */
import type {
  AgentContext,
  ClientCapabilities,
  CreateElicitationResponse,
  ReadTextFileResponse,
  RequestPermissionResponse,
  SessionUpdate,
} from "@agentclientprotocol/sdk"
import type { FormParams, PermissionParams } from "./question.ts"
import type { Extras } from "./updates.ts"

/** Each is of one session. An aborted request is withdrawn at the editor's, and its promise rejects. */
export interface Editor {
  readonly update: (sessionId: string, update: SessionUpdate) => Promise<void>
  readonly permission: (
    sessionId: string,
    params: PermissionParams,
    signal: AbortSignal,
  ) => Promise<RequestPermissionResponse>
  readonly form: (sessionId: string, params: FormParams, signal: AbortSignal) => Promise<CreateElicitationResponse>
  readonly readFile: (sessionId: string, path: string, signal: AbortSignal) => Promise<ReadTextFileResponse>
}

export const makeEditor = (client: AgentContext): Editor => {
  const until = (signal: AbortSignal) => ({ cancellationSignal: signal, stopWaitingOnCancel: true })
  return {
    update: (sessionId, update) => client.notify("session/update", { sessionId, update }),
    permission: (sessionId, params, signal) =>
      client.request("session/request_permission", { sessionId, ...params }, until(signal)),
    form: (sessionId, params, signal) => client.request("elicitation/create", { sessionId, ...params }, until(signal)),
    readFile: (sessionId, path, signal) => client.request("fs/read_text_file", { sessionId, path }, until(signal)),
  }
}

/** What an editor can show beyond the base. */
export const extrasOf = (capabilities: ClientCapabilities): Extras => ({
  notices: capabilities.session?.notices != null,
  compaction: capabilities.session?.compaction != null,
  forms: capabilities.elicitation?.form != null,
})
