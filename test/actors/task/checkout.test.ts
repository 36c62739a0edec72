/**
 * The checkout example as it stands in `examples/`, run as a process of its own; it kills and resumes one more.
 */
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { bundleProgram, type Program } from "../../support/program.ts"

let program: Program

beforeAll(async () => {
  program = await bundleProgram("examples/checkout.ts")
})

afterAll(() => program.remove())

describe("the checkout with four payments", () => {
  it("is paid, declined, cancelled, and killed while it pays, and nobody is charged twice", async () => {
    const { stderr, stdout } = await promisify(execFile)(process.execPath, [program.file])
    expect(stderr).toBe("")
    expect(stdout.trimEnd().split("\n")).toEqual([
      'all paid: {"status":"completed","result":{"paid":4}}',
      "  the bank: amex charged, cash charged, giro charged, visa charged",
      'one declined: {"status":"failed","error":"declined: empty"}',
      "  the bank: slow amex refunded, slow giro refunded, slow visa refunded",
      'cancelled: {"status":"aborted","reason":"the customer changed their mind"}',
      "  the bank: slow amex refunded, slow cash refunded, slow giro refunded, visa refunded",
      "  after all refunds: released",
      'killed and resumed: {"status":"completed","result":{"paid":4}}',
      "  the bank: amex charged, slow and not booked charged, slow giro charged, visa charged",
      "  charged twice: nobody",
    ])
  })
})
