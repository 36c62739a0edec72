/**
 * The conformance suite of the storage port: what every engine must do, run against each of them, and once more with the database
 * reopened after every commit. It brings no test framework: it is given one that looks like vitest, and fast-check.
 */

import type { Effect, Scope } from "effect"
import type * as FastCheck from "fast-check"
import { artifacts } from "./conformance/artifacts.ts"
import { atomicity } from "./conformance/atomicity.ts"
import { documents } from "./conformance/documents.ts"
import { forks } from "./conformance/forks.ts"
import { jobs } from "./conformance/jobs.ts"
import { listings } from "./conformance/listings.ts"
import { names } from "./conformance/names.ts"
import { properties } from "./conformance/properties.ts"
import { removal } from "./conformance/removal.ts"
import { type Reopening, sessionsOn } from "./conformance/session.ts"
import { tasks } from "./conformance/tasks.ts"
import { values } from "./conformance/values.ts"
import type { OpenError } from "./errors.ts"
import type { StoreService } from "./store.ts"

/** The parts of a test framework that the suite uses. */
export interface TestKit {
  readonly describe: (title: string, body: () => void) => void
  readonly it: (title: string, body: () => Promise<void>) => void
  readonly expect: (
    actual: unknown,
    message?: string,
  ) => {
    readonly toEqual: (expected: unknown) => void
    readonly toBe: (expected: unknown) => void
  }
  readonly fc: typeof FastCheck
}

/** An engine under test. */
export interface Engine {
  readonly name: string
  /** A fresh, empty database that lives as long as the scope. */
  readonly database: Effect.Effect<Database, never, Scope.Scope>
  /** Random lists of commits in each property; default 30. */
  readonly runs?: number
}

/** One database. `open` takes ownership until its scope closes; opening it again afterwards finds what was committed. */
export interface Database {
  readonly open: Effect.Effect<StoreService, OpenError, Scope.Scope>
}

/** Declares the suite for `engine`. */
export const storageConformance = (kit: TestKit, engine: Engine): void => {
  const run = (reopening: Reopening, title: string) =>
    kit.describe(`${engine.name}, ${title}`, () => {
      const sessions = sessionsOn(engine, reopening)
      atomicity(kit, sessions)
      listings(kit, sessions)
      forks(kit, sessions)
      removal(kit, sessions)
      values(kit, sessions)
      documents(kit, sessions)
      tasks(kit, sessions)
      jobs(kit, sessions)
      artifacts(kit, sessions)
      names(kit, sessions)
      properties(kit, sessions, engine.runs ?? 30)
    })
  run("never", "kept open")
  run("everyCommit", "reopened after every commit")
}
