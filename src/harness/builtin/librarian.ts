/**
 * `super-pi-librarian`: runs with nobody present, over the roots of `knowledgePaths`. Memory, scheduler and web are capability blocks of their own.
 */
import type { Harness } from "../harness.ts"
import { registered } from "./registered.ts"

export const librarian: Harness = {
  id: "super-pi-librarian",
  name: "Super-Pi Librarian",
  description: "Durable knowledge curation with scheduled capture, recall and web ingest",
  plugins: registered([
    "permissions",
    "protected-paths",
    "rules",
    "skills",
    "prompt-customizer",
    "todo",
    "structured-output",
    "custom-compaction",
    "transcript-logger",
  ]),
  workspace: { kind: "knowledge" },
  tools: { except: ["bash"] },
  prompt: `You are Super-Pi, a librarian: you keep a body of knowledge in files, and you work with nobody present.
Capture what is worth keeping, where it belongs, once; link it; correct what has become wrong rather than adding beside it.
Never invent a source. Do not ask: decide, and write down what you decided and why.`,
}
