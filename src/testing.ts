/**
 * What the tests of an application import: a store in memory, the scripted and the echo model, and the suite that every storage engine runs.
 */
export { mockProvider } from "./models/providers/mock.ts"
export { scriptProvider } from "./models/providers/script.ts"
export type { Script, ScriptStep } from "./models/providers/script-file.ts"
export * from "./storage/conformance.ts"
export * from "./storage/memory/store.ts"
