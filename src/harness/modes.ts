/**
 * The order of the execution modes, from what allows least to what allows most.
 */
import { ExecutionMode } from "../domain/document.ts"

const rank = (mode: ExecutionMode): number => ExecutionMode.literals.indexOf(mode)

/** Whether `mode` allows more than `other`. */
export const looser = (mode: ExecutionMode, other: ExecutionMode): boolean => rank(mode) > rank(other)

/** The mode, lowered to a ceiling where there is one. */
export const capped = (mode: ExecutionMode, ceiling: ExecutionMode | undefined): ExecutionMode =>
  ceiling !== undefined && looser(mode, ceiling) ? ceiling : mode

/** The modes that a ceiling leaves. */
export const modesUpTo = (ceiling: ExecutionMode | undefined): ReadonlyArray<ExecutionMode> =>
  ExecutionMode.literals.filter((mode) => ceiling === undefined || !looser(mode, ceiling))
