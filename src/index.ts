/**
 * What a library user imports: the layer for an Effect application, the vocabulary, the ports and the contract of conversations.
 */

export { Cluster, type ClusterService } from "./actors/cluster.ts"
export * from "./actors/contract.ts"
export * as Actors from "./actors/kernel/index.ts"
export { type Inserted, type NewJob, Queues, type QueuesService } from "./actors/queue/queues.ts"
export type { QueueOptions } from "./actors/queue/settings.ts"
export {
  cancelJob,
  done,
  doneWith,
  type JobCommit,
  type JobResult,
  type JobRun,
  type QueueWorker,
  snooze,
} from "./actors/queue/worker.ts"
export * from "./actors/sessions.ts"
export * from "./actors/task/index.ts"
export * from "./domain/artifact.ts"
export { Budget, Price, type Prices } from "./domain/budget.ts"
export * from "./domain/builtin-documents.ts"
export type { ClusterMember, ClusterStatus, NodeHealth } from "./domain/cluster.ts"
export * from "./domain/compaction-settings.ts"
export * from "./domain/compaction-task.ts"
export { type ContextEntry, deriveContext } from "./domain/context.ts"
export * from "./domain/conversation.ts"
export * from "./domain/document.ts"
export {
  type DocumentDefinition,
  type DocumentOptions,
  type DocumentTail,
  defineDocument,
} from "./domain/document-definition.ts"
export { PatchOperation } from "./domain/document-patch.ts"
export type { DocumentRevision } from "./domain/document-revision.ts"
export * from "./domain/effect.ts"
export * from "./domain/entry.ts"
export * from "./domain/event.ts"
export * from "./domain/failure.ts"
export { GatewayLimits, GatewaySettings } from "./domain/gateway-settings.ts"
export * from "./domain/harness-view.ts"
export * from "./domain/ids.ts"
export { InvalidSetting } from "./domain/invalid-setting.ts"
export * from "./domain/job.ts"
export * from "./domain/json.ts"
export * from "./domain/message.ts"
export * from "./domain/partial-json.ts"
export { type Prompt, promptOf } from "./domain/prompt.ts"
export * from "./domain/submission.ts"
export * from "./domain/task.ts"
export { applyGraphEvent, type TaskGraph, type TaskGraphEvent, TaskNode } from "./domain/task-graph.ts"
export * from "./domain/trail.ts"
export * from "./domain/tree.ts"
export * from "./domain/usage.ts"
export * from "./domain/validity.ts"
export * from "./domain/workspace-spec.ts"
export { defineHarness } from "./harness/declare.ts"
export {
  type AnyPlugin,
  anyPlugin,
  type DeclarationFault,
  definePlugin,
  InvalidDeclaration,
  type PluginDefinition,
} from "./harness/define.ts"
export type * from "./harness/harness.ts"
export * from "./harness/plugin.ts"
export * from "./models/model.ts"
export * from "./models/sdk/provider.ts"
export type { ModelsOptions } from "./models/service.ts"
export * from "./models/settings.ts"
export { loadMetrics } from "./observability/load.ts"
export type { Metrics, MetricsOptions } from "./observability/metrics.ts"
export type { Observer } from "./observability/observer.ts"
export { type GatewayOptions, GatewayRefused } from "./protocols/gateway.ts"
export type { GatewayLog } from "./protocols/http/log.ts"
export type * from "./protocols/http/route.ts"
export { ListenFailed } from "./protocols/socket/listen.ts"
export * from "./storage/artifacts.ts"
export { type DocumentReadError, Documents, type DocumentsService } from "./storage/documents/documents.ts"
export type { DocumentDraft } from "./storage/documents/draft.ts"
export {
  EntryNotVisible,
  HistoryNotKept,
  InvalidDocument,
  NewerDocument,
} from "./storage/documents/errors.ts"
export type { DocumentOwner, DocumentTarget } from "./storage/documents/target.ts"
export * from "./storage/errors.ts"
export type { DatabaseInUse } from "./storage/postgres/ownership.ts"
export { type PostgresSettings, postgresSettings } from "./storage/postgres/settings.ts"
export { OwnedElsewhere } from "./storage/sqlite/ownership.ts"
export { SqliteReader, SqliteStore, type SqliteStoreOptions } from "./storage/sqlite/store.ts"
export * from "./storage/store.ts"
export { type OpenOptions, SuperPi, type SuperPiError, type SuperPiService, type SuperPiServices } from "./super-pi.ts"
export * from "./super-pi-conversation.ts"
export { Gateway, type GatewayLayerOptions } from "./super-pi-gateway.ts"
export {
  type ConversationDefaults,
  type DatabaseFile,
  InvalidOptions,
  type ModelsOption,
  type StorageOption,
  type SuperPiOptions,
} from "./super-pi-options.ts"
export type { DatabaseServer } from "./super-pi-server.ts"
export * as Supervisors from "./supervisors/index.ts"
export { tasksLayer } from "./supervisors/tasks.ts"
export { defineTool, effectInDoubt, type ToolDefinition, toolFailure } from "./tools/define.ts"
export type * from "./tools/tool.ts"
