/**
 * What a node says about workspaces, from settings.json or an application.
 */

/** Walls of the operating system around commands: never, where the host can, or else no commands. */
export type SandboxMode = "off" | "auto" | "required"

export interface WorkspaceSettings {
  /** Default `auto`. `required` holds for every workspace, whatever that says. */
  readonly sandbox: SandboxMode
  /** Absolute directories that walled-in commands may write to beside the workspace. */
  readonly sandboxWritable: ReadonlyArray<string>
  /** Absolute paths of the node's own, which walled-in commands do not see. */
  readonly hidden: ReadonlyArray<string>
  /** Absolute roots of workspaces of kind `knowledge`; none: the working directory. */
  readonly knowledgePaths: ReadonlyArray<string>
  /** Where scratch directories are made. Absolute; default: the system's directory for temporary files. */
  readonly scratchDir: string | null
  /** Tells the scratch directories of several databases apart; absent: `node`. */
  readonly scratchName?: string
  /** Hours after which a scratch directory that nobody used is removed. Default 24. */
  readonly scratchTtlHours: number
}

export const defaultWorkspaceSettings: WorkspaceSettings = {
  sandbox: "auto",
  sandboxWritable: [],
  hidden: [],
  knowledgePaths: [],
  scratchDir: null,
  scratchTtlHours: 24,
}

const strictness: { readonly [mode in SandboxMode]: number } = { off: 0, auto: 1, required: 2 }

/** The stricter of two. */
export const stricter = (a: SandboxMode, b: SandboxMode): SandboxMode => (strictness[a] >= strictness[b] ? a : b)
