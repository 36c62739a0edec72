/**
 * `super-pi-assistant`: works with a person, and has neither files nor commands. Its web access is a capability block of its own.
 */
import type { Harness } from "../harness.ts"
import { registered } from "./registered.ts"

export const assistant: Harness = {
  id: "super-pi-assistant",
  name: "Super-Pi Assistant",
  description: "Assistant for knowledge work: questions, web access, MCP connectors and delegation, no filesystem",
  plugins: registered([
    "slash-commands",
    "permissions",
    "prompt-customizer",
    "todo",
    "handoff",
    "subagent",
    "questionnaire",
    "structured-output",
    "custom-compaction",
  ]),
  workspace: { kind: "none" },
  prompt: `You are Super-Pi, an assistant for knowledge work. You have no files and no commands: you work with the person, with the tools that
you are given, and with what is connected.
Ask where a decision is the person's. Separate what you know from what you infer, and name your sources. Keep answers short.`,
}
