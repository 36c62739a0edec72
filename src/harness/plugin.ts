/**
 * A plugin: tools, prompt sections and hooks under one name, assembled into harnesses in an order that matters. The hooks of a turn run in
 * this order, each through the plugins in theirs; `docs/plugins.md` has the rules.
 *
 *   onInput → beforeAgentStart → (beforeCompact) → beforeRequest → beforeProviderRequest → afterResponse
 *     → beforeTool → wrapTool → afterTool → afterTools → … → onYield → afterRun
 *
 * 1. A hook answers nothing (`undefined`) to leave things as they are. What one plugin changed is what the next one sees.
 * 2. A hook that throws, fails or takes longer than its deadline is reported once and skipped; `beforeTool` then blocks the call.
 * 3. A hook may run again after a crash. What it does outside must be safe to repeat, or belongs into a tool call.
 * 4. Every answer of `beforeTool`, `wrapTool` and `afterTool` is kept in the call's decision trail.
 */
import type { Effect, Schema } from "effect"
import type { CompactionMethod } from "../domain/compaction-settings.ts"
import type { AgentDocument, ExecutionMode } from "../domain/document.ts"
import type { ConversationId, EntryId, TaskId } from "../domain/ids.ts"
import type { Json, JsonObject } from "../domain/json.ts"
import type { AssistantPart, Message, UserPart } from "../domain/message.ts"
import type { ToolEffect } from "../domain/permissions.ts"
import type { Usage } from "../domain/usage.ts"
import type { ModelRequest } from "../models/model.ts"
import type { Tool, ToolResult, Workspace } from "../tools/tool.ts"

/** The hooks of a plugin, in the order of a turn. */
export const hookNames = [
  "onInput",
  "beforeAgentStart",
  "beforeCompact",
  "beforeRequest",
  "beforeProviderRequest",
  "afterResponse",
  "beforeTool",
  "wrapTool",
  "afterTool",
  "afterTools",
  "onYield",
  "afterRun",
] as const
export type HookName = (typeof hookNames)[number]

/** Where a plugin finds its files, and what the settings say of it. */
export interface PluginPlaces {
  /** Directory of settings.json, hooks.json, skills and rules of the person. */
  readonly configDir: string
  readonly dataDir: string
  /** Further roots in which skills and rules are looked for. */
  readonly discoveryRoots: ReadonlyArray<string>
  /** Environment of the node as far as plugins may know it: names that begin with `SUPER_PI_` or that the plugin's documentation lists. */
  readonly env: Readonly<Record<string, string>>
}

/** What every hook knows. */
export interface HookContext<O> {
  readonly options: O
  readonly conversation: ConversationId
  /** Id of the harness. */
  readonly harness: string
  /** The choices in force: caller, then harness, then settings. */
  readonly agent: AgentDocument
  /** Never above the harness's ceiling. */
  readonly mode: ExecutionMode
  readonly workspace: Workspace
  readonly places: PluginPlaces
  /** Whether this is a conversation of a subagent, and how deep: 0 for a person's own. */
  readonly depth: number
  /** Says something to the watchers: a `notice` event. */
  readonly notify: (level: "info" | "warning" | "error", message: string) => Effect.Effect<void>
}

/** A call before it runs. */
export interface ToolCallView {
  readonly id: string
  readonly name: string
  readonly args: JsonObject
  /** What it may touch; for arguments as they are. */
  readonly effects: ReadonlyArray<ToolEffect>
}

/** What may become of a call. `ask` goes to a person where one can be asked, and blocks otherwise. `rule` names what decided, for people. */
export type ToolDecision =
  | { readonly type: "allow"; readonly rule: string }
  | { readonly type: "block"; readonly rule: string; readonly reason: string }
  | {
      readonly type: "ask"
      readonly rule: string
      readonly reason: string
      readonly title: string
      /** What `allow_always` and `reject_always` keep in the session; absent: those answers count once. */
      readonly remember?: { readonly commands: ReadonlyArray<string>; readonly tools: ReadonlyArray<string> }
      /** How long to wait for the answer, in ms; absent: the default. */
      readonly timeoutMs?: number
    }
  | { readonly type: "rewrite"; readonly rule: string; readonly args: JsonObject }

/** What becomes of a compaction: the first plugin that answers ends the chain. */
export type CompactDecision =
  | { readonly type: "decline"; readonly reason: string }
  | { readonly type: "summary"; readonly text: string }
  | { readonly type: "summarise"; readonly model: string; readonly instructions?: string }

export interface PluginHooks<O, R> {
  /** An input before it is placed. Slash commands expand here. */
  readonly onInput?: (
    input: { readonly content: ReadonlyArray<UserPart> },
    context: HookContext<O>,
  ) => Effect.Effect<
    | {
        readonly content?: ReadonlyArray<UserPart>
        /** Changes of `pi.agent` that come with the input. */
        readonly agent?: AgentDocument
        /** There is nothing to ask: the input ends when its changes are made, no model sees it, and this is told. Not where it has commands. */
        readonly settles?: string
        /** Commands to run first, as calls of the tool `bash`; `content` may name their outputs as `{{command:0}}`, `{{command:1}}` … */
        readonly commands?: ReadonlyArray<{
          readonly command: string
          readonly timeoutMs: number
          readonly maxBytes: number
        }>
      }
    | undefined,
    unknown,
    R
  >
  /** A run begins. */
  readonly beforeAgentStart?: (
    run: { readonly inputs: ReadonlyArray<ReadonlyArray<UserPart>> },
    context: HookContext<O>,
  ) => Effect.Effect<{ readonly agent?: AgentDocument } | undefined, unknown, R>
  readonly beforeCompact?: (
    compaction: {
      readonly reason: "manual" | "threshold" | "background" | "overflow"
      readonly instructions: string | null
      /** How the engine would do it. Only of a `summary` or `truncate` another text or writer may be made. */
      readonly method: CompactionMethod
      /** The model that the settings name as the writer of summaries; null: the conversation's own. */
      readonly writer: string | null
      /** What would be summarised. */
      readonly messages: ReadonlyArray<Message>
    },
    context: HookContext<O>,
  ) => Effect.Effect<CompactDecision | undefined, unknown, R>
  /** Before every request: what it is made of. `messages` change this request only. */
  readonly beforeRequest?: (
    request: {
      readonly messages: ReadonlyArray<Message>
      readonly sections: Readonly<Record<string, string>>
      /** Names of the tools offered. */
      readonly tools: ReadonlyArray<string>
      readonly model: string
      /** Turns of this run so far, from 1. */
      readonly turn: number
    },
    context: HookContext<O>,
  ) => Effect.Effect<
    | {
        readonly messages?: ReadonlyArray<Message>
        /** Sections to set; null removes one. The same text again costs nothing. */
        readonly sections?: Readonly<Record<string, string | null>>
        readonly tools?: ReadonlyArray<string>
        readonly model?: string
      }
    | undefined,
    unknown,
    R
  >
  /** The request as it goes to the provider: the last look. */
  readonly beforeProviderRequest?: (
    request: ModelRequest,
    context: HookContext<O>,
  ) => Effect.Effect<ModelRequest | undefined, unknown, R>
  /** A response before it is committed. */
  readonly afterResponse?: (
    response: { readonly content: ReadonlyArray<AssistantPart>; readonly usage: Usage; readonly model: string },
    context: HookContext<O>,
  ) => Effect.Effect<{ readonly content?: ReadonlyArray<AssistantPart> } | undefined, unknown, R>
  readonly beforeTool?: (
    call: ToolCallView,
    context: HookContext<O>,
  ) => Effect.Effect<ToolDecision | undefined, unknown, R>
  /** Around the code of a call: `run` runs it, at most once. */
  readonly wrapTool?: (
    call: ToolCallView,
    run: Effect.Effect<ToolResult>,
    context: HookContext<O>,
  ) => Effect.Effect<ToolResult, unknown, R>
  readonly afterTool?: (
    call: ToolCallView,
    result: ToolResult,
    context: HookContext<O>,
  ) => Effect.Effect<ToolResult | undefined, unknown, R>
  /** The calls of one response have all ended. */
  readonly afterTools?: (
    calls: ReadonlyArray<{ readonly call: ToolCallView; readonly isError: boolean }>,
    context: HookContext<O>,
  ) => Effect.Effect<void, unknown, R>
  /** The model gave its final answer: `continue` goes on with a user message. */
  readonly onYield?: (
    answer: { readonly text: string; readonly entry: EntryId },
    context: HookContext<O>,
  ) => Effect.Effect<{ readonly continue: string } | undefined, unknown, R>
  /** A run ended, however it did. */
  readonly afterRun?: (
    run: {
      readonly task: TaskId
      readonly outcome: "answered" | "failed" | "cancelled"
      readonly text: string | null
      /** Names of the tools that ran. */
      readonly tools: ReadonlyArray<string>
    },
    context: HookContext<O>,
  ) => Effect.Effect<void, unknown, R>
}

/** A plugin. `O` are its options, decoded; `R` are services that its code needs. */
export interface Plugin<O = Json, R = never> {
  /** In kebab-case, as settings and harnesses name it. */
  readonly name: string
  /** Other names that mean it. */
  readonly aliases: ReadonlyArray<string>
  readonly description: string
  /** What its options are; a field that is absent takes its default. */
  readonly options: Schema.Schema<O, JsonObject>
  /** Milliseconds that one hook may take. Default 10,000. */
  readonly deadlineMs: number
  readonly tools: (options: O) => ReadonlyArray<Tool<R>>
  readonly hooks: PluginHooks<O, R>
}

/** A plugin in a harness: its name, or its name with options. Unknown names and options are errors that name the nearest valid one. */
export type PluginSpec = string | readonly [name: string, options: JsonObject]
