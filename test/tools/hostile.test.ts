/**
 * Hostile input through the tools: it ends its own call with advice, and the next call works.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Artifacts } from "../../src/tools/artifacts.ts"
import { BuiltinTools } from "../../src/tools/builtin-tools.ts"
import { FileLocks } from "../../src/tools/file-lock.ts"
import { Sandbox } from "../../src/tools/sandbox.ts"
import { sandboxPool } from "../../src/tools/sandbox-pool.ts"
import { failureOf, textCall, workspaceWith } from "./support.ts"

/** The real sandbox, less patient. */
const hurried = Layer.effect(
  Sandbox,
  Effect.map(Sandbox, (real) =>
    Sandbox.of({ run: (job, input, limits) => real.run(job, input, { ...limits, deadlineMs: 1500 }) }),
  ),
).pipe(Layer.provide(sandboxPool({ size: 1 })))

const tools = Layer.provide(BuiltinTools.layer, Layer.mergeAll(FileLocks.layer, hurried, Artifacts.inMemory))

describe("a tool", () => {
  it.scopedLive("whose regular expression never ends says what to change, names the file, and works again", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({ "a.txt": "fine\n", "trap.txt": `${"a".repeat(50)}!\n` })
      expect(yield* failureOf("grep", { pattern: "^(a+)+$" }, workspace)).toBe(
        "grep did not end within 1.5 s (at trap.txt) and was stopped. Search a smaller path or glob, or use a simpler pattern (nested repetition such as (a+)+ can take forever).",
      )
      expect(yield* textCall("grep", { pattern: "^(a+)+$", glob: "a.txt" }, workspace)).toBe("No matches in 1 file.")
    }).pipe(Effect.provide(tools)),
  )

  it.scopedLive("whose glob never ends is stopped too", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({ [`${"a".repeat(200)}!`]: "" })
      expect(yield* failureOf("find", { pattern: `${"*a".repeat(60)}b` }, workspace)).toContain(
        "find did not end within 1.5 s",
      )
      expect(yield* textCall("find", { pattern: "a*" }, workspace)).toContain("aaa!")
    }).pipe(Effect.provide(tools)),
  )

  it.scopedLive("writes a file of which nearly every line changes", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith()
      const noise = (seed: number) =>
        Array.from({ length: 60_000 }, (_, index) => `${(index * seed) % 9973}\n`).join("")
      yield* textCall("write", { path: "a.txt", content: noise(7) }, workspace)
      expect(yield* textCall("write", { path: "a.txt", content: noise(11) }, workspace)).toMatch(
        /^Overwrote a\.txt \(60,000 lines/,
      )
    }).pipe(Effect.provide(tools)),
  )
})
