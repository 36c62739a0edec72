/**
 * The system prompt of a conversation: named sections and the tools offered. The same inputs give the same text, or the provider's prompt
 * cache would go cold.
 */
import type { AgentDocument, ExecutionMode } from "../domain/document.ts"
import type { ToolSpec } from "../domain/message.ts"
import type { Prompt } from "../domain/prompt.ts"

const identity = `You are Super-Pi, an agent that works in a person's workspace with the tools that you are given.
Work in small verified steps: look before you change, change only what the task needs, run what shows that it works.
Use tools rather than guesses. Say plainly what you did and what you could not do. Keep answers short.`

const modes: { readonly [mode in ExecutionMode]: string } = {
  plan: "Mode plan: reading is allowed, changing anything is not. Answer with a plan.",
  "accept-edits": "Mode accept-edits: you may read and edit files in the workspace; shell commands are not allowed.",
  auto: "Mode auto: you may read, edit files and run commands in the workspace.",
}

/** Whether a section says that the mode is `plan`; null where it says nothing of the mode. */
export const saysPlanMode = (section: string): boolean | null => {
  const said = /^Mode ([a-z-]+):/m.exec(section)?.[1]
  return said === undefined || !Object.hasOwn(modes, said) ? null : said === "plan"
}

const resume =
  'A tool result that says "interrupted" means that the process died during the call: find out what took effect before you repeat it.'

/** The prompt for an agent's choices. `tools` are those offered, in a stable order. */
export const promptFor = (options: {
  readonly agent: AgentDocument
  readonly mode: ExecutionMode
  readonly cwd: string
  readonly platform: string
  readonly tools: ReadonlyArray<ToolSpec>
  /** The core of the prompt; null or absent: the node's own. */
  readonly identity?: string | null
}): Prompt => {
  const sections = new Map<string, string>([["identity", options.identity ?? identity]])
  if (options.tools.length > 0) {
    const workspace = `Working directory: ${options.cwd}\nPlatform: ${options.platform}`
    sections.set("environment", `${workspace}\n${modes[options.mode]}\n${resume}`)
  }
  const { instructions } = options.agent
  if (instructions !== undefined && instructions.trim() !== "") sections.set("instructions", instructions)
  return { sections, tools: new Map(options.tools.map((tool) => [tool.name, tool])) }
}
