/**
 * The definitions of the built-in conversation documents.
 */
import {
  AgentDocument,
  DocumentKind,
  InboxDocument,
  LiveDocument,
  ProviderDocument,
  TodoDocument,
  UsageDocument,
} from "./document.ts"
import { defineDocument } from "./document-definition.ts"

/** The choices: a fork goes on with those of the entry that it leaves from. */
export const agentDocument = defineDocument({
  kind: DocumentKind.agent,
  version: 1,
  schema: AgentDocument,
  scope: "conversation",
  history: "rewindable",
  fork: "asOf",
  initial: (): AgentDocument => ({}),
})

/** The provider-facing session id: a fork has its own, which the commit that creates it writes. */
export const providerDocument = defineDocument({
  kind: DocumentKind.provider,
  version: 1,
  schema: ProviderDocument,
  scope: "conversation",
  initial: (): ProviderDocument => ({ sessionId: "" }),
})

/** The run in progress: of no use to a fork. */
export const liveDocument = defineDocument({
  kind: DocumentKind.live,
  version: 1,
  schema: LiveDocument,
  scope: "conversation",
  initial: (): LiveDocument => ({ generation: null, tools: {}, retry: null, compactions: [], compactionFailure: null }),
})

/** The todo list: a fork goes on with that of the entry that it leaves from. */
export const todoDocument = defineDocument({
  kind: DocumentKind.todo,
  version: 1,
  schema: TodoDocument,
  scope: "conversation",
  history: "rewindable",
  fork: "asOf",
  initial: (): TodoDocument => ({ items: [] }),
})

/** What is queued: a fork starts with an empty queue. */
export const inboxDocument = defineDocument({
  kind: DocumentKind.inbox,
  version: 1,
  schema: InboxDocument,
  scope: "conversation",
  initial: (): InboxDocument => ({ queued: [], notes: [] }),
})

/** Tokens: a fork counts its own. */
export const usageDocument = defineDocument({
  kind: DocumentKind.usage,
  version: 1,
  schema: UsageDocument,
  scope: "conversation",
  initial: (): UsageDocument => ({ models: {} }),
})

/** The kind of a built-in document. */
export type BuiltinKind = keyof typeof builtinDocuments

/** By kind. */
export const builtinDocuments = {
  [DocumentKind.agent]: agentDocument,
  [DocumentKind.provider]: providerDocument,
  [DocumentKind.live]: liveDocument,
  [DocumentKind.todo]: todoDocument,
  [DocumentKind.inbox]: inboxDocument,
  [DocumentKind.usage]: usageDocument,
} as const
