/**
 * The locks among nodes (`domain/path-lock.ts`), for tools in a shared workspace.
 */
import { Context } from "effect"
import type { PathLocksService } from "../domain/path-lock.ts"

/** Absent where no other node can reach the files, or where there is no database to ask. */
export class PathLocks extends Context.Tag("super-pi/PathLocks")<PathLocks, PathLocksService>() {}
