/**
 * The prompt of a context: named sections and tools, and the smallest positional change from one prompt to another. Only changes are
 * appended, so what the provider cached stays valid.
 */
import type { Message, SystemMessage, ToolSpec } from "./message.ts"

/** The prompt in force: section texts and tools in the order in which they were added. */
export interface Prompt {
  readonly sections: ReadonlyMap<string, string>
  readonly tools: ReadonlyMap<string, ToolSpec>
}

export const emptyPrompt: Prompt = { sections: new Map(), tools: new Map() }

/** The prompt after one more positional system message. */
export const applySystem = (prompt: Prompt, message: SystemMessage): Prompt => {
  const sections = new Map(prompt.sections)
  for (const section of message.sections) {
    if (section.text === null) sections.delete(section.name)
    else sections.set(section.name, section.text)
  }
  const tools = new Map(prompt.tools)
  for (const name of message.removeTools) tools.delete(name)
  for (const tool of message.addTools) tools.set(tool.name, tool)
  return { sections, tools }
}

/** The prompt that a derived context ends with. */
export const promptOf = (messages: ReadonlyArray<Message>): Prompt =>
  messages.reduce((prompt, message) => (message.role === "system" ? applySystem(prompt, message) : prompt), emptyPrompt)

/** The text of a tool's parameters: a prompt is compared before every request, its tools hardly ever change. */
const parameterTexts = new WeakMap<object, string>()

const parameterText = ({ parameters }: ToolSpec): string => {
  const known = parameterTexts.get(parameters)
  if (known !== undefined) return known
  const text = JSON.stringify(parameters)
  parameterTexts.set(parameters, text)
  return text
}

const sameTool = (a: ToolSpec, b: ToolSpec): boolean =>
  a === b || (a.description === b.description && parameterText(a) === parameterText(b))

/** What turns `from` into `to`, or null when nothing changed. A changed tool is removed and added. */
export const diffPrompt = (from: Prompt, to: Prompt): SystemMessage | null => {
  const sections: Array<{ readonly name: string; readonly text: string | null }> = []
  for (const name of from.sections.keys()) if (!to.sections.has(name)) sections.push({ name, text: null })
  for (const [name, text] of to.sections) if (from.sections.get(name) !== text) sections.push({ name, text })
  const removeTools: Array<string> = []
  const addTools: Array<ToolSpec> = []
  for (const name of from.tools.keys()) if (!to.tools.has(name)) removeTools.push(name)
  for (const [name, tool] of to.tools) {
    const before = from.tools.get(name)
    if (before !== undefined && sameTool(before, tool)) continue
    if (before !== undefined) removeTools.push(name)
    addTools.push(tool)
  }
  if (sections.length === 0 && removeTools.length === 0 && addTools.length === 0) return null
  return { role: "system", sections, addTools, removeTools }
}
