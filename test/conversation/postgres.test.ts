/**
 * The integration suites of conversations once more, with PostgreSQL behind the node.
 */

import { onPostgres } from "../support/engine.ts"
import { describePostgres } from "../support/postgres.ts"

onPostgres()

describePostgres("on PostgreSQL", async () => {
  await import("./actor.test.ts")
  await import("./compaction.test.ts")
  await import("./documents.test.ts")
  await import("./doubt.test.ts")
  await import("./forks.test.ts")
  await import("./input-commands.test.ts")
  await import("./names.test.ts")
  await import("./parked.test.ts")
  await import("./queue.test.ts")
  await import("./removal.test.ts")
  await import("./settled-inputs.test.ts")
  await import("./snapshot-tail.test.ts")
  await import("./turn.test.ts")
})
