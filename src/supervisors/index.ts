/**
 * Supervisors: what restarts which actors, how often, and in which order.
 */
export { type ChildOptions, child, type SupervisedChild } from "./child.ts"
export { type DynamicSupervisorOptions, dynamicSupervisor } from "./dynamic-supervisor.ts"
export type { Strategy } from "./strategy.ts"
export {
  type ChildInfo,
  childrenOf,
  type SupervisorMessage,
  type SupervisorOptions,
  type SupervisorState,
  supervisor,
} from "./supervisor.ts"
