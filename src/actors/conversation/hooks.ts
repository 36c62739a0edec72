/**
 * What a conversation stands on: its choices as its harness resolves them, its tools, and its plugins' hooks. Made once for each choice of
 * harness and plugins in a life of the actor; a conversation without either stands on the node's own, and nothing is done for it.
 */
import type { AgentDocument, ExecutionMode } from "../../domain/document.ts"
import { InvalidRequest } from "../../domain/failure.ts"
import type { ConversationId } from "../../domain/ids.ts"
import { HookRunner } from "../../harness/context.ts"
import type { HookName } from "../../harness/plugin.ts"
import type { HarnessesService } from "../../harness/registry.ts"
import { effectiveAgent } from "../../harness/resolve.ts"
import type { Workspace } from "../../tools/tool.ts"
import { makeTools, type ToolSource, type ToolsService } from "../../tools/tools.ts"
import { newReference } from "./failures.ts"

export interface Ground {
  /** The choices in force. */
  readonly agent: AgentDocument
  readonly tools: ToolsService
  readonly hooks: ReadonlySet<HookName>
  /** Null where there are no plugins. */
  readonly runner: HookRunner | null
  /** The core of the prompt; null: the node's. */
  readonly identity: string | null
  /** Why the conversation cannot work: its harness or a plugin is not there. */
  readonly fault: InvalidRequest | null
}

export interface GroundHost {
  readonly conversation: ConversationId
  /** 0 for a person's own conversation. */
  readonly depth: number
  /** The choices with what their workspace can serve. */
  readonly served: <A extends AgentDocument>(agent: A, tools: ToolsService) => A
  /** Where calls act, for the choices in force. */
  readonly workspaceOf: (agent: AgentDocument) => Workspace
  readonly notify: (level: "info" | "warning" | "error", message: string) => void
}

const noHooks: ReadonlySet<HookName> = new Set()
const noTools = makeTools([])

export class Grounds {
  private readonly harnesses: HarnessesService | null
  private readonly tools: ToolsService
  /** Null: the tools stay what they are. */
  private readonly source: ToolSource | null
  private readonly defaultMode: ExecutionMode
  private readonly host: GroundHost
  private of: AgentDocument | null = null
  private revision = 0
  private ground: Ground | null = null
  private key = ""
  private runner: HookRunner | null = null

  constructor(harnesses: HarnessesService | null, tools: ToolsService, defaultMode: ExecutionMode, host: GroundHost) {
    this.harnesses = harnesses
    this.tools = tools
    this.source = tools.source ?? null
    this.defaultMode = defaultMode
    this.host = host
  }

  /** For the choices as they are stored. */
  for(agent: AgentDocument): Ground {
    const revision = this.source === null ? 0 : this.source.revision()
    if (this.ground !== null && this.of === agent && this.revision === revision) return this.ground
    this.of = agent
    this.revision = revision
    const bare =
      agent.harness === undefined && (agent.plugins ?? []).length === 0 && (agent.outputSchema ?? null) === null
    this.ground = bare ? this.bare(agent) : this.made(agent, this.harnesses)
    return this.ground
  }

  private bare(agent: AgentDocument): Ground {
    const tools = this.withSource(agent, this.tools)
    return { agent: this.host.served(agent, tools), tools, hooks: noHooks, runner: null, identity: null, fault: null }
  }

  /** The tools with those that come and go; none of them takes the place of another. A subagent has those of its top conversation. */
  private withSource(agent: AgentDocument, tools: ToolsService): ToolsService {
    const conversation = agent.subagent?.root ?? this.host.conversation
    const more = this.source?.of(conversation, agent.foundTools ?? []) ?? []
    const fresh = more.filter(({ spec }) => tools.get(spec.name) === undefined)
    return fresh.length === 0 ? tools : makeTools([...tools.list, ...fresh])
  }

  private made(agent: AgentDocument, harnesses: HarnessesService | null): Ground {
    const nothing = { agent, tools: noTools, hooks: noHooks, runner: null, identity: null }
    if (harnesses === null) {
      const [path, actual] = agent.harness === undefined ? ["agent.plugins", "some"] : ["agent.harness", agent.harness]
      const expected = "nothing, since this node has no harnesses"
      return { ...nothing, fault: new InvalidRequest({ path, expected, actual }) }
    }
    const key = JSON.stringify([agent.harness, agent.plugins, agent.outputSchema])
    if (this.runner === null || this.key !== key) {
      const made = harnesses.pipeline(agent)
      if (made._tag === "Left") return { ...nothing, fault: made.left }
      if (made.right === null) return { ...nothing, tools: this.withSource(agent, this.tools), fault: null }
      this.key = key
      this.runner = new HookRunner(made.right, harnesses, {
        facts: () => this.facts(),
        notify: this.host.notify,
        reference: newReference,
      })
    }
    const { harness, hooks, tools: own } = this.runner.pipeline
    const tools = this.withSource(agent, own)
    const names = tools.list.map(({ spec }) => spec.name)
    return {
      agent: this.host.served(effectiveAgent(agent, harness, this.defaultMode, names), tools),
      tools,
      hooks,
      runner: this.runner,
      identity: harness?.prompt ?? null,
      fault: null,
    }
  }

  private facts() {
    const { conversation, depth, workspaceOf } = this.host
    const agent = this.ground?.agent ?? {}
    const mode = agent.mode ?? this.defaultMode
    return { conversation, depth, agent: { ...agent, mode }, workspace: workspaceOf(agent) }
  }
}
