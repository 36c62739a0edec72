/**
 * The store of artifacts over the database: names, limits, replacing, what is missing.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { artifactNameFault } from "../../src/domain/artifact-name.ts"
import type { ConversationId } from "../../src/domain/ids.ts"
import { ArtifactStore } from "../../src/storage/artifacts.ts"
import { conversation } from "../../src/storage/conformance/records.ts"
import { MemoryStore } from "../../src/storage/memory/store.ts"
import { Store } from "../../src/storage/store.ts"

const text = (value: string): Uint8Array => new TextEncoder().encode(value)

const limits = { maxBytes: 20, maxCount: 2 }
const layer = ArtifactStore.database(limits).pipe(Layer.provideMerge(MemoryStore.layer()))

const begun = Effect.gen(function* () {
  const store = yield* Store
  const [id] = yield* store.mint("conversation", 1)
  if (id === undefined) return yield* Effect.dieMessage("no id")
  yield* store.commit({ conversations: [conversation(id)] })
  return id
})

const put = (of: ConversationId, name: string, content = "body", mediaType = "text/plain") =>
  Effect.flatMap(ArtifactStore, (artifacts) =>
    artifacts.put({ conversation: of, name, mediaType, content: text(content) }),
  )

describe("the name of an artifact", () => {
  it.each(["report.md", "web/abc.md", "…", "a b/ü.txt", "..a/b..", "x".repeat(255)])("may be %j", (name) => {
    expect(artifactNameFault(name)).toBe(null)
  })

  it.each([
    ["", "an empty one"],
    ["/etc/passwd", "a relative name"],
    ["../secret", '".."'],
    ["a/../b", '".."'],
    ["a//b", "no empty part"],
    ["a/", "no empty part"],
    ["./a", '"."'],
    ["a\\b", "separated by /"],
    ["C:x", "separated by /"],
    ["a\u0000b", "control characters"],
    ["a\nb", "control characters"],
    ["\ud800", "Unicode"],
    ["ü".repeat(128), "at most 255 bytes, got 256"],
  ])("may not be %j", (name, part) => {
    expect(artifactNameFault(name)).toContain(part)
  })
})

describe("the store of artifacts", () => {
  it.effect("gives back what was put, and its newest content when it was replaced", () =>
    Effect.gen(function* () {
      const artifacts = yield* ArtifactStore
      const of = yield* begun
      const first = yield* put(of, "a.md", "one")
      const second = yield* put(of, "a.md", "two!", "text/markdown; charset=utf-8")
      expect(second.createdAt).toBe(first.createdAt)
      const found = yield* artifacts.get(of, "a.md")
      expect(found.artifact).toEqual(second)
      expect(new TextDecoder().decode(found.content)).toBe("two!")
      expect(yield* artifacts.list(of)).toEqual([second])
    }).pipe(Effect.provide(layer)),
  )

  it.effect("names what is too large, too many, badly named or of no media type, and writes none of it", () =>
    Effect.gen(function* () {
      const artifacts = yield* ArtifactStore
      const of = yield* begun
      expect((yield* Effect.flip(put(of, "a", "x".repeat(21)))).message).toBe(
        "content: expected at most 20 bytes, got 21",
      )
      expect((yield* Effect.flip(put(of, "../a"))).message).toMatch(/^name: /)
      expect((yield* Effect.flip(put(of, "a", "x", "plain"))).message).toMatch(/^mediaType: .*got "plain"$/)
      yield* put(of, "a")
      yield* put(of, "b")
      expect((yield* Effect.flip(put(of, "c"))).message).toContain("at most 2 artifacts")
      yield* put(of, "b", "again")
      expect((yield* artifacts.list(of)).map((artifact) => artifact.name)).toEqual(["a", "b"])
    }).pipe(Effect.provide(layer)),
  )

  it.effect("keeps to its limit when many arrive at once", () =>
    Effect.gen(function* () {
      const artifacts = yield* ArtifactStore
      const of = yield* begun
      yield* Effect.forEach(["a", "b", "c", "d"], (name) => Effect.either(put(of, name)), { concurrency: "unbounded" })
      expect((yield* artifacts.list(of)).length).toBe(2)
    }).pipe(Effect.provide(layer)),
  )

  it.effect("says that one is missing, and that its conversation is", () =>
    Effect.gen(function* () {
      const artifacts = yield* ArtifactStore
      const of = yield* begun
      expect((yield* Effect.flip(artifacts.get(of, "a")))._tag).toBe("ArtifactNotFound")
      expect((yield* Effect.flip(artifacts.remove(of, "a")))._tag).toBe("ArtifactNotFound")
      yield* put(of, "a")
      yield* artifacts.remove(of, "a")
      expect(yield* artifacts.list(of)).toEqual([])
      expect((yield* Effect.flip(put((of + 1) as ConversationId, "a")))._tag).toBe("Conflict")
    }).pipe(Effect.provide(layer)),
  )
})
