/**
 * Where the calls of one conversation act, by its `pi.agent.workspace`. A conversation without one acts in its working directory, and
 * nothing is done for it here.
 *
 * Scratch, kept with its task: `none → (first call of a run) fresh → (the conversation is idle) removed`. A directory that is there when this
 * life of the actor begins a run is another life's: it goes, and the run's first result says that its files are gone.
 */
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import type { AgentDocument } from "../../domain/document.ts"
import type { ConversationId } from "../../domain/ids.ts"
import type { WorkspaceSpec } from "../../domain/workspace-spec.ts"
import type { CommandSandbox, Workspace } from "../../tools/tool.ts"
import type { ToolsService } from "../../tools/tools.ts"
import { serves } from "../../tools/workspace-kinds.ts"
import { freshScratch, keptScratch, removeScratch, scratchPath, sweepScratch } from "../../tools/workspace-scratch.ts"
import { defaultWorkspaceSettings, stricter, type WorkspaceSettings } from "../../tools/workspace-settings.ts"
import type { ConversationSettingsService } from "./settings.ts"

type Settings = Pick<ConversationSettingsService, "confined" | "defaultCwd" | "node" | "workspaces">

/** The root of a workspace without files: nothing is there, so whatever acts on it fails. */
const nowhere = join(tmpdir(), "super-pi-no-workspace", "none")

const newScratch =
  "Note: this is a new, empty scratch directory. The one that this task used before was lost with its process."

/** Databases whose scratch bases were swept in this process. */
const swept = new Set<string>()

export class Workspaces {
  private readonly settings: Settings
  private readonly options: WorkspaceSettings
  private readonly conversation: ConversationId
  /** The run whose scratch directory this life has made, or is making. */
  private ready: { readonly run: number; readonly made: Promise<unknown> } | null = null

  constructor(settings: Settings, conversation: ConversationId) {
    this.settings = settings
    this.options = settings.workspaces ?? defaultWorkspaceSettings
    this.conversation = conversation
  }

  /** Where calls act, for the choices in force. */
  of(agent: AgentDocument): Workspace {
    const { confined, defaultCwd } = this.settings
    const cwd = agent.cwd ?? defaultCwd
    const { workspace: spec } = agent
    const sandbox = this.sandboxOf(spec)
    const walls = sandbox === null ? null : { sandbox }
    switch (spec?.kind) {
      case undefined:
      case "local":
        return { root: cwd, confined, ...walls }
      case "shared":
        return { root: spec.root, confined: true, shared: true, ...walls }
      case "scratch":
        return { root: this.scratchOf(spec), confined: true, ...walls }
      case "none":
        return { root: nowhere, confined: true, ...walls }
      case "knowledge": {
        const [root = cwd, ...also] = this.options.knowledgePaths
        return { root, confined: true, ...(also.length === 0 ? null : { also }), ...walls }
      }
    }
  }

  /** The choices as a request shows them: with the root as working directory, and without the tools that cannot be served. */
  served<A extends AgentDocument>(agent: A, tools: ToolsService): A {
    const { workspace: spec } = agent
    if (spec === undefined) return agent
    const names = tools.list.filter((tool) => serves(spec, tool)).map((tool) => tool.spec.name)
    const all = names.length === tools.list.length
    const cwd = spec.kind === "local" ? null : { cwd: this.of(agent).root }
    const offered =
      agent.tools === undefined
        ? all
          ? null
          : { tools: names }
        : { tools: agent.tools.filter((name) => names.includes(name)) }
    return cwd === null && offered === null ? agent : { ...agent, ...cwd, ...offered }
  }

  /**
   * Makes what a call needs. `run` is the number of its run's first input; `used`: an earlier call of that run may have left files. Gives
   * what the call's result has to say first, or null.
   */
  prepare(agent: AgentDocument, run: number, used: boolean): Effect.Effect<string | null> | null {
    const { workspace: spec } = agent
    if (spec?.kind !== "scratch") return null
    const path = this.scratchOf(spec)
    return Effect.promise(async () => {
      await this.sweep(spec).catch(() => undefined)
      if (spec.lifetime === "conversation") {
        const { fresh } = await keptScratch(path)
        return fresh && used ? newScratch : null
      }
      if (this.ready?.run === run) {
        await this.ready.made
        await keptScratch(path)
        return null
      }
      const made = freshScratch(path)
      this.ready = { run, made }
      await made
      return used ? newScratch : null
    }).pipe(Effect.catchAllDefect((cause) => Effect.succeed(`Note: the scratch directory could not be made: ${cause}`)))
  }

  /** The conversation is idle: the directory of its task goes. */
  settled(agent: AgentDocument): Effect.Effect<void> | null {
    const { workspace: spec } = agent
    if (spec?.kind !== "scratch" || spec.lifetime === "conversation" || this.ready === null) return null
    this.ready = null
    const path = this.scratchOf(spec)
    return Effect.promise(() => removeScratch(path).catch(() => undefined))
  }

  private async sweep(spec: Extract<WorkspaceSpec, { readonly kind: "scratch" }>): Promise<void> {
    const base = this.baseOf(spec)
    if (swept.has(base)) return
    swept.add(base)
    await sweepScratch(base, this.options.scratchTtlHours, Date.now())
  }

  private baseOf({ base }: Extract<WorkspaceSpec, { readonly kind: "scratch" }>): string {
    return base ?? this.options.scratchDir ?? tmpdir()
  }

  private scratchOf(spec: Extract<WorkspaceSpec, { readonly kind: "scratch" }>): string {
    return scratchPath(this.baseOf(spec), this.options.scratchName ?? "node", this.conversation)
  }

  /** The walls of a workspace; the strictest of what the node, the harness and the caller ask for. */
  private sandboxOf(spec: WorkspaceSpec | undefined): CommandSandbox | null {
    const { hidden, sandbox, sandboxWritable } = this.options
    const wanted = sandbox === "required" ? sandbox : (spec?.sandbox ?? sandbox)
    // Without a network commands have none either, where the host can see to it.
    const mode = spec?.network === false ? stricter(wanted, "auto") : wanted
    if (mode === "off") return null
    return { mode, network: spec?.network !== false, writable: sandboxWritable, hidden }
  }
}
