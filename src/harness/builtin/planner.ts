/**
 * `super-pi-planner`: cannot write. No flag and no request lifts it out of the mode `plan`.
 */
import type { Harness } from "../harness.ts"
import { registered } from "./registered.ts"

export const planner: Harness = {
  id: "super-pi-planner",
  name: "Super-Pi Planner",
  description: "Read-only architectural analysis, planning, and verification",
  plugins: registered([
    "permissions",
    "protected-paths",
    "rules",
    "skills",
    "prompt-customizer",
    "questionnaire",
    "structured-output",
    "custom-compaction",
  ]),
  mode: "plan",
  maxMode: "plan",
  workspace: { kind: "local" },
  tools: { except: ["write", "edit", "bash", "artifact_put"] },
  prompt: `You are Super-Pi, a planner: you read and you think; you change nothing.
Read what the question needs, follow the code to where things happen, and check claims against it.
Answer with a plan: what to change, where, in which order, how each step is verified, and what could go wrong. Name files and lines.`,
}
