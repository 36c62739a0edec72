/**
 * Artifacts: any bytes come back as they were, one name is one artifact, and they go with their conversation.
 */
import { Effect } from "effect"
import type { ConversationId } from "../../domain/ids.ts"
import type { ArtifactWrite } from "../artifact-port.ts"
import type { TestKit } from "../conformance.ts"
import { conversation, entry } from "./records.ts"
import type { Session, Sessions } from "./session.ts"

const at = 1_750_000_000_000

const begin = (session: Session) =>
  Effect.gen(function* () {
    const id = yield* session.mint("conversation")
    yield* session.commit({ conversations: [conversation(id)] })
    return id
  })

const artifact = (of: ConversationId, name: string, content: Uint8Array, later = 0): ArtifactWrite => ({
  conversation: of,
  name,
  mediaType: "application/octet-stream",
  content,
  at: at + later,
})

export const artifacts = ({ describe, it, expect }: TestKit, sessions: Sessions): void => {
  describe("an artifact", () => {
    it("comes back with every byte, whatever its name and size", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begin(session)
          const every = Uint8Array.from({ length: 256 }, (_, index) => index)
          const large = new Uint8Array(1024 * 1024).fill(7)
          const contents = { "a/🦊.bin": every, empty: new Uint8Array(0), large }
          const seq = yield* session.commit({
            artifacts: Object.entries(contents).map(([name, content]) => artifact(of, name, content)),
          })
          for (const [name, content] of Object.entries(contents)) {
            const found = yield* session.store().artifact(of, name)
            expect(found?.artifact).toEqual({
              conversation: of,
              name,
              mediaType: "application/octet-stream",
              size: content.length,
              createdAt: at,
              updatedAt: at,
              seq,
            })
            expect(found === null ? null : Buffer.compare(found.content, content)).toBe(0)
          }
        }),
      ))

    it("holds what its bytes were when the commit was made", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begin(session)
          const content = Uint8Array.from([1, 2, 3])
          yield* session.commit({ artifacts: [artifact(of, "a", content)] })
          content.fill(9)
          const found = yield* session.store().artifact(of, "a")
          found?.content.fill(8)
          expect(Array.from((yield* session.store().artifact(of, "a"))?.content ?? [])).toEqual([1, 2, 3])
        }),
      ))

    it("is replaced whole by one of its name, and removed by name; other conversations keep theirs", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begin(session)
          const other = yield* begin(session)
          const [one, two] = [Uint8Array.from([1]), Uint8Array.from([2, 2])]
          yield* session.commit({
            artifacts: [artifact(of, "b", one), artifact(of, "a", one), artifact(other, "a", one)],
          })
          const seq = yield* session.commit({ artifacts: [{ ...artifact(of, "a", two, 5), mediaType: "text/plain" }] })
          const names = (conversation: ConversationId) =>
            Effect.map(session.store().artifacts(conversation), (rows) => rows.map((row) => row.name))
          expect((yield* session.store().artifacts(of))[0]).toEqual({
            conversation: of,
            name: "a",
            mediaType: "text/plain",
            size: 2,
            createdAt: at,
            updatedAt: at + 5,
            seq,
          })
          expect(yield* names(of)).toEqual(["a", "b"])
          yield* session.commit({
            removeArtifacts: [
              { conversation: of, name: "a" },
              { conversation: of, name: "none" },
            ],
          })
          expect(yield* session.store().artifact(of, "a")).toBe(null)
          expect(yield* names(of)).toEqual(["b"])
          expect(yield* names(other)).toEqual(["a"])
        }),
      ))

    it("belongs to a conversation that exists, goes with it, and is not written by a commit that is refused", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begin(session)
          const content = Uint8Array.from([1])
          const twice = entry(yield* session.mint("entry"), of)
          expect(yield* session.refusal({ artifacts: [artifact(of, "a", content)], entries: [twice, twice] })).toBe(
            "Conflict",
          )
          expect(yield* session.store().artifacts(of)).toEqual([])
          const missing = yield* session.mint("conversation")
          expect(yield* session.refusal({ artifacts: [artifact(missing, "a", content)] })).toBe("Conflict")
          yield* session.commit({ artifacts: [artifact(of, "a", content)] })
          yield* session.commit({ removeConversations: [of] })
          expect(yield* session.store().artifact(of, "a")).toBe(null)
          expect(yield* session.store().artifacts(of)).toEqual([])
        }),
      ))
  })
}
