/**
 * The tool port. A call's intent (final arguments, replay policy) is committed before `execute` runs; what it returns is committed before
 * anyone sees it. Three channels: `output` for the model, `structuredOutput` for programs, `details` for interfaces.
 */
import type { Effect, Schema } from "effect"
import type { DocumentWrite } from "../domain/document-write.ts"
import type { ConversationId } from "../domain/ids.ts"
import type { Json, JsonObject } from "../domain/json.ts"
import type { ToolSpec, UserPart } from "../domain/message.ts"
import type { ToolEffect } from "../domain/permissions.ts"
import type { AskOutcome, Choice } from "../domain/question.ts"
import type { Delegation, HandoffOrder } from "../domain/subagent.ts"
import type { Usage } from "../domain/usage.ts"

/** What a call may touch; permissions and workspaces decide by it. */
export type { ToolEffect }

/** Directives to the conversation. */
export interface ToolControl {
  /** Ends the run without another model request when every result of the batch asks for it. */
  readonly terminate?: boolean
  /** Offers these tools from the next request on. */
  readonly addTools?: ReadonlyArray<string>
  /** Starts a new context from this note. */
  readonly handoff?: string
  /**
   * Writes of documents that belong to the result: they are committed with it, or not at all. A draft that another commit overtook is made
   * again by running the call again, so only a tool that is replay-safe may ask for this.
   */
  readonly documents?: ReadonlyArray<DocumentWrite>
  /** Starts subagents: the run goes on when they have ended. The conversation words the result, or refuses. */
  readonly await?: Delegation
  /** Stores a conversation that somebody may go on with. The conversation words the result. */
  readonly store?: HandoffOrder
}

/** Tokens that a call spent itself, on `model` (`provider/model`) where it says so. */
export interface ToolUsage {
  readonly model?: string
  readonly usage: Usage
}

export interface ToolResult {
  readonly output: ReadonlyArray<UserPart>
  readonly structuredOutput?: Json
  readonly details?: Json
  readonly isError?: boolean
  /** The call ended, and whether its effect happened is not known: for example a request without an answer. `super-pi effects` lists it. */
  readonly inDoubt?: boolean
  readonly control?: ToolControl
  /** Counted in `pi.usage`. */
  readonly usage?: ToolUsage
}

/**
 * What became of the effect of a call that was cut off: it happened, and this is its result; it did not, and the call may run; or nobody
 * can tell, and the call is left in doubt.
 */
export type Reconciliation =
  | { readonly happened: true; readonly result: ToolResult }
  | { readonly happened: false }
  | { readonly unknown: true; readonly reason?: string }

/** What a running call gets. */
export interface ToolContext {
  readonly callId: string
  readonly conversation: ConversationId
  /**
   * The call's durable effect id, a UUID that was committed before the call began: the same whenever this call runs or is reconciled, and
   * unique over all databases. Pass it to the service that has the effect, as its idempotency key.
   */
  readonly idempotencyKey: string
  /** A key of its own, just as stable, for each of several effects of one call: the same name gives the same UUID. */
  readonly effectKey: (name: string) => string
  /** The workspace: root directory and confinement. */
  readonly workspace: Workspace
  /** Streams output to watchers, for example of a running command. Bounded and coalesced by the receiver. */
  readonly emit: (chunk: string) => Effect.Effect<void>
  /**
   * Asks a person, and waits for the answer, the end of its time, or the end of the call. The question outlives a crash: a call that is
   * safe to run again asks again and is told what the question came to. Absent outside of conversations.
   */
  readonly ask?: (question: ToolQuestion) => Effect.Effect<AskOutcome>
}

/** What a running call asks a person. */
export interface ToolQuestion {
  readonly title: string
  readonly questions: ReadonlyArray<Choice>
  /** Tells the questions of one call apart. Default `question`: a call that asks once needs none. */
  readonly key?: string
  /** In ms. Default: the node's, 120,000. */
  readonly timeoutMs?: number
}

/** Where file and command tools act. */
export interface Workspace {
  /** Absolute, canonical root; also the working directory of commands. */
  readonly root: string
  /** Whether file tools may leave the root (symlinks followed). */
  readonly confined: boolean
  /** Further roots of a confined workspace; paths are relative to the first. */
  readonly also?: ReadonlyArray<string>
  /** Other nodes work on the same files: who writes one holds its lock among all of them. */
  readonly shared?: boolean
  /** Environment of commands; secrets of the node are not in it. */
  readonly env?: Readonly<Record<string, string>>
  /** Walls of the operating system around commands. Absent: none. */
  readonly sandbox?: CommandSandbox
}

/** How commands are walled in; see docs/sandbox.md. */
export interface CommandSandbox {
  /** `auto`: where the host can; `required`: or else they are refused. */
  readonly mode: "auto" | "required"
  readonly network: boolean
  /** Absolute paths of directories that commands may write to beside the workspace. */
  readonly writable: ReadonlyArray<string>
  /** Absolute paths of directories and files that commands do not see: the node's own. */
  readonly hidden: ReadonlyArray<string>
}

/** A tool. `R` are services that its code needs, provided when the node is built. */
export interface Tool<R = never> {
  readonly spec: ToolSpec
  /** Decodes the model's arguments; an error goes back to the model with path, expected and actual. */
  readonly decode: (args: JsonObject) => Effect.Effect<Json, InvalidArguments>
  readonly effects: ReadonlyArray<ToolEffect>
  /** What a call with these decoded arguments may touch, where that depends on them. Default: `effects`. */
  readonly effectsOf?: (args: Json) => ReadonlyArray<ToolEffect>
  /** `safe`: running it again after a crash changes nothing more. Default `unsafe`: it is reported as interrupted instead. */
  readonly replay: "safe" | "unsafe"
  /** `sequential` tools run one after another in call order; a batch with one of them is sequential as a whole. */
  readonly execution: "parallel" | "sequential"
  /**
   * What is known of an unsafe call that ends without a result of its own, because it was cancelled or its code broke. `settled` (default):
   * the result says all there is to know; `inDoubt`: its effect may have happened, and it is listed as such.
   */
  readonly whenInterrupted?: "settled" | "inDoubt"
  /** `args` is what `decode` returned. A failure becomes an error result; so does a defect, with a reference. */
  readonly execute: (args: Json, context: ToolContext) => Effect.Effect<ToolResult, ToolFailure, R>
  /**
   * Finds out what became of an unsafe call that was running when its process ended. It changes nothing and may run any number of times;
   * after {@link reconcileMs}, a failure or a defect the call is left in doubt.
   */
  readonly reconcile?: (args: Json, context: ToolContext) => Effect.Effect<Reconciliation, ToolFailure, R>
}

/** How long a tool may take to find out what became of a call, in ms. */
export const reconcileMs = 60_000

export interface InvalidArguments {
  readonly _tag: "InvalidArguments"
  readonly tool: string
  /** One line per fault: `path: expected X, got Y`. */
  readonly detail: string
}

/** A failure that the model should read; `message` says what went wrong and what to do instead. */
export interface ToolFailure {
  readonly _tag: "ToolFailure"
  readonly tool: string
  readonly message: string
  readonly details?: Json
  /** See {@link ToolResult.inDoubt}. */
  readonly inDoubt?: boolean
}

/** The schema of a tool's arguments with a plain encoded side, as {@link defineTool} takes it. */
export type ArgumentsSchema<A> = Schema.Schema<A, JsonObject>
