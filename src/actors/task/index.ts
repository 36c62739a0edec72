/**
 * Durable tasks: what an application imports to define and run its own. The engine's parts are in the files beside; rules in docs/tasks.md.
 */
export type { Outcome, Phased, Phases, PhaseTask, StoredTask, TaskDefinition, TaskSpec } from "./define.ts"
export { defineTask } from "./define.ts"
export { TaskParked } from "./errors.ts"
export type { SpawnOptions, TaskRuntime } from "./runtime.ts"
export { type StartOptions, type TaskState, Tasks, type TasksService } from "./service.ts"
export { type SleepTime, Step, type StepWrites } from "./step.ts"
