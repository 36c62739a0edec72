/**
 * Tests of real nodes that take minutes and both cores: `npm run test:cluster` runs them. `npm test` kills and stops a node
 * (`kill.test.ts`, `pause.test.ts`) and names the others as skipped.
 */
import { describe } from "vitest"
import { describePostgres, describePostgresServer } from "../../support/postgres.ts"
import { isLong } from "./figures.ts"

const longOr = (title: string, body: () => void, run: typeof describePostgres): void => {
  if (isLong) run(title, body)
  else describe.skip(`${title} (npm run test:cluster)`, body)
}

export const describeLong = (title: string, body: () => void): void => longOr(title, body, describePostgres)

/** With a server of its own. */
export const describeLongServer = (title: string, body: () => void): void => longOr(title, body, describePostgresServer)
