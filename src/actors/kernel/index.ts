/**
 * The actor kernel. Supervisors are in ../../supervisors.
 */
export {
  type ActorContext,
  type Behavior,
  type BehaviorSpec,
  behavior,
  defaultCapacity,
  type SpawnOptions,
} from "./behavior.ts"
export { ActorDown, AskTimeout, NameTaken, PostponeOverflow, RestartIntensityExceeded, SpawnError } from "./errors.ts"
export {
  type AskOptions,
  ask,
  awaitDown,
  defaultAskTimeoutMs,
  type StopOptions,
  spawn,
  stop,
  tell,
  unsafeSpawn,
  unsafeTell,
  watch,
} from "./operations.ts"
export type { ActorRef, Down, ReplyTo } from "./ref.ts"
export type { ChildSpec, Intensity, RestartPolicy } from "./restart.ts"
export { Machine, type MachineSpec, type MachineStart, stateMachine } from "./state-machine.ts"
export { crashed, describeCause, describeReason, normal, type StopReason, shutdown } from "./stop-reason.ts"
export { ActorSystem, type ActorSystemOptions } from "./system.ts"
export type { ActorSystemService, Registry } from "./system-service.ts"
export {
  type Action,
  cancelTimeout,
  keep,
  next,
  nextEvent,
  postpone,
  stateTimeout,
  stopMachine,
  type Transition,
  timeout,
} from "./transition.ts"
