/**
 * What a bench of turns drives: an engine that makes durable turns, whoever wrote it.
 */
export interface TurnEngine {
  /** Makes conversations 1 to `count`; not measured. */
  readonly begin: (count: number) => Promise<void>
  /** Runs turn `turn` (from 0) of a conversation; resolves once its answer is durable. */
  readonly turn: (conversation: number, turn: number) => Promise<void> | void
  readonly close: () => Promise<void>
}

/** Opens an engine over a fresh database at `path`. */
export type OpenEngine = (path: string) => Promise<TurnEngine>
