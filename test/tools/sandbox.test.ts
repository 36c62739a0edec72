/**
 * The sandbox without actors, and what its threads say about themselves.
 */
import { describe, expect, it } from "@effect/vitest"
import { sandboxPool } from "../../src/tools/sandbox-pool.ts"
import { readStatus, statusBytes, writeStatus } from "../../src/tools/sandbox-wire.ts"
import { sandboxBehaviour } from "./sandbox-behaviour.ts"

sandboxBehaviour("the sandbox pool", sandboxPool({ size: 2 }))

describe("the status of a thread", () => {
  it("is read back as it was written, cut at its start when it is long", () => {
    const status = new Uint8Array(new SharedArrayBuffer(statusBytes))
    expect(readStatus(status)).toBeNull()
    writeStatus(status, "src/größe.ts")
    expect(readStatus(status)).toBe("src/größe.ts")
    const long = `${"d/".repeat(2000)}file.ts`
    writeStatus(status, long)
    expect(long.endsWith(readStatus(status) ?? "?")).toBe(true)
    writeStatus(status, "")
    expect(readStatus(status)).toBeNull()
  })
})
