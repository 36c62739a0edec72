/**
 * The artifact tools: what is kept, what is shown of it, where it may be written, and in which modes.
 */
import { readFile, symlink } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { judgeAll } from "../../src/actors/conversation/prepare.ts"
import type { ExecutionMode } from "../../src/domain/document.ts"
import type { JsonObject } from "../../src/domain/json.ts"
import { ArtifactStore } from "../../src/storage/artifacts.ts"
import { MemoryStore } from "../../src/storage/memory/store.ts"
import { Store } from "../../src/storage/store.ts"
import { artifactsLayer } from "../../src/supervisors/artifacts.ts"
import { BuiltinTools } from "../../src/tools/builtin-tools.ts"
import { FileLocks } from "../../src/tools/file-lock.ts"
import { sandboxPool } from "../../src/tools/sandbox-pool.ts"
import { Tools } from "../../src/tools/tools.ts"
import { call, failureOf, temporaryDirectory, textCall, workspaceWith } from "./support.ts"

/** The tools of a conversation to which the tools' context belongs, with room for three artifacts of 1,000 bytes. */
const tools = () => {
  const database = Layer.effectDiscard(
    Effect.gen(function* () {
      const store = yield* Store
      const [id] = yield* store.mint("conversation", 1)
      if (id === undefined) return
      const row = { id, parent: null, owner: null, principal: "local", title: null, createdAt: 0, updatedAt: 0 }
      yield* store.commit({ conversations: [row] })
    }).pipe(Effect.orDie),
  ).pipe(Layer.provideMerge(MemoryStore.layer()))
  const store = Layer.provide(ArtifactStore.database({ maxBytes: 1000, maxCount: 3 }), database)
  const needs = Layer.mergeAll(FileLocks.layer, sandboxPool(), Layer.provide(artifactsLayer, store))
  return Layer.provide(BuiltinTools.layer, needs)
}

/** A PNG of one pixel. */
const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
)

const put = (args: JsonObject, workspace: Parameters<typeof textCall>[2]) => textCall("artifact_put", args, workspace)

describe("artifacts", () => {
  it.scoped("are kept from a text, replaced under the same name, shown and listed", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith()
      expect(yield* textCall("artifact_list", {}, workspace)).toBe("There are no artifacts yet.")
      expect(yield* put({ name: "report.md", content: "# One" }, workspace)).toBe(
        "Kept report.md (text/markdown, 5 bytes).",
      )
      expect(yield* put({ name: "report.md", content: "# Two!" }, workspace)).toMatch(/\(text\/markdown, 6 bytes\)\.$/)
      expect(yield* textCall("artifact_get", { name: "report.md" }, workspace)).toBe("# Two!")
      expect(yield* textCall("artifact_list", {}, workspace)).toBe("report.md (text/markdown, 6 bytes)")
    }).pipe(Effect.provide(tools())),
  )
})

describe("files of the workspace", () => {
  it.scoped("come back as what they are: text as text, an image as an image, bytes as a description", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({ "a.txt": "text", "b.png": png, "c.bin": new Uint8Array([0, 1, 2, 0]) })
      yield* put({ name: "text", path: "a.txt" }, workspace)
      yield* put({ name: "image", path: "b.png" }, workspace)
      expect(yield* put({ name: "bytes", path: "c.bin" }, workspace)).toContain("application/octet-stream, 4 bytes")
      expect(yield* textCall("artifact_get", { name: "text" }, workspace)).toBe("text")
      const image = yield* call("artifact_get", { name: "image" }, workspace)
      expect(image.output).toEqual([
        { type: "text", text: expect.stringMatching(/^image: image\/png, \d+ bytes$/) },
        { type: "image", mediaType: "image/png", data: png.toString("base64") },
      ])
      expect(yield* textCall("artifact_get", { name: "bytes" }, workspace)).toBe(
        "bytes: application/octet-stream, 4 bytes, a binary file. Give to_path to write it into the workspace.",
      )
    }).pipe(Effect.provide(tools())),
  )

  it.scoped("are written byte for byte, and only inside the workspace", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({ "b.png": png, "d/": "" })
      yield* put({ name: "image", path: "b.png" }, workspace)
      const written = yield* textCall("artifact_get", { name: "image", to_path: "new/copy.png" }, workspace)
      expect(written).toMatch(/^Created new\/copy\.png with image \(\d+ bytes\)\.$/)
      expect(yield* Effect.promise(() => readFile(join(workspace.root, "new/copy.png")))).toEqual(png)
      const again = yield* textCall("artifact_get", { name: "image", to_path: "new/copy.png" }, workspace)
      expect(again).toMatch(/^Overwrote /)

      const outside = yield* temporaryDirectory
      yield* Effect.promise(() => symlink(outside, join(workspace.root, "way-out")))
      for (const to_path of ["../x.png", join(outside, "x.png"), "way-out/x.png"]) {
        const said = yield* failureOf("artifact_get", { name: "image", to_path }, workspace)
        expect(said).toContain("expected a path inside the workspace")
      }
      const stolen = yield* failureOf("artifact_put", { name: "stolen", path: "/etc/hostname" }, workspace)
      expect(stolen).toContain("expected a path inside the workspace")
      const directory = yield* failureOf("artifact_get", { name: "image", to_path: "d" }, workspace)
      expect(directory).toBe("d: expected a file, got a directory. Give the name of a file in it.")
    }).pipe(Effect.provide(tools())),
  )
})

describe("limits", () => {
  it.scoped("are told with what was expected and what came", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({ "large.txt": "x".repeat(1001), "a.txt": "a" })
      const failing = (args: JsonObject) => failureOf("artifact_put", args, workspace)
      expect(yield* failing({ name: "a" })).toBe("expected either content or path, got neither")
      expect(yield* failing({ name: "a", content: "b", path: "a.txt" })).toBe(
        "expected either content or path, got both",
      )
      expect(yield* failing({ name: "a", content: "x".repeat(1001) })).toBe(
        "content: expected at most 1000 bytes, got 1001",
      )
      expect(yield* failing({ name: "a", path: "large.txt" })).toBe(
        "large.txt: expected at most 1,000 bytes, got 1,001 bytes",
      )
      expect(yield* failing({ name: "../a", content: "b" })).toMatch(
        /^name: expected no empty part, "\." or "\.\." in it/,
      )
      expect(yield* failing({ name: "a", content: "b", mediaType: "text" })).toMatch(
        /^mediaType: expected a media type/,
      )
      for (const name of ["1", "2", "3"]) yield* put({ name, content: name }, workspace)
      expect(yield* failing({ name: "4", content: "4" })).toMatch(/^conversation: expected at most 3 artifacts/)
      expect(yield* failureOf("artifact_get", { name: "4" }, workspace)).toBe(
        'there is no artifact "4"; artifact_list shows what there is',
      )
    }).pipe(Effect.provide(tools())),
  )
})

describe("the modes", () => {
  const cases: ReadonlyArray<readonly [ExecutionMode, string, JsonObject, boolean]> = [
    ["plan", "artifact_list", {}, true],
    ["plan", "artifact_get", { name: "a" }, true],
    ["plan", "artifact_get", { name: "a", to_path: "b" }, false],
    ["plan", "artifact_put", { name: "a", content: "b" }, false],
    ["accept-edits", "artifact_put", { name: "a", content: "b" }, true],
    ["accept-edits", "artifact_get", { name: "a", to_path: "b" }, true],
    ["auto", "artifact_get", { name: "a", to_path: "b" }, true],
  ]

  it.each(cases)("%s lets %s with %o run: %s", (mode, name, args, runs) =>
    Effect.runPromise(
      Effect.gen(function* () {
        const judged = judgeAll([{ type: "toolCall", id: "c", name, arguments: args }], {
          agent: {},
          mode,
          tools: yield* Tools,
        })
        const [verdict] = Effect.isEffect(judged) ? yield* judged : judged
        expect(verdict?.type).toBe(runs ? "run" : "refuse")
      }).pipe(Effect.provide(BuiltinTools.standalone)),
    ),
  )
})
