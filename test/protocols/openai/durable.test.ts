/**
 * What outlives a node, and what another principal does not see.
 */
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Stream } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import type { ChatCompletion } from "../../../src/protocols/openai/chunks.ts"
import { post, readEvents, startNode } from "./node.ts"

const directory = realpathSync(mkdtempSync(join(tmpdir(), "super-pi-openai-durable-")))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const script = {
  rules: [
    { match: "slow", steps: [{ text: "The slow answer.", chunks: 2, chunkMs: 300 }] as const },
    { match: "", steps: [{ text: "Hello there." }] as const },
  ],
}
const body = (content: string, over: object = {}) => ({
  model: "super-pi-code",
  messages: [{ role: "user", content }],
  ...over,
})

describe("a node that stops and starts again", () => {
  it("keeps sessions and the answers of keys, and finishes turns that its end cut off", async () => {
    const first = await startNode({ script, directory, gateway: { settings: { drainSeconds: 0 } } })
    const chat = `${first.url}/v1/chat/completions`
    const known = await post(chat, body("hi"), { "x-session-id": "kept", "idempotency-key": "k1" })
    const answer = (await known.json()) as ChatCompletion
    const conversation = known.headers.get("x-conversation-id")
    const cut = await post(chat, body("slow", { stream: true }), { "x-session-id": "kept", "idempotency-key": "k2" })
    const { conversation_id: conversationId } = await Effect.runPromise(
      first.sessions.findNamed({ namespace: "openai", name: "kept", principal: "local" }),
    )
    await Effect.runPromise(
      first.sessions.watch({ conversationId, after: null }).pipe(
        // The turn may begin before the snapshot, or after it.
        Stream.takeUntil((event) => (event.type === "snapshot" ? event.session.turn_id : event.turn_id) !== null),
        Stream.runDrain,
      ),
    )
    const reading = readEvents(cut)
    await first.close()
    const events = await reading
    expect(events.at(-1)).toBe("[DONE]")
    expect(events).toContainEqual({ error: expect.objectContaining({ code: "draining" }) })

    const second = await startNode({ script, directory })
    const again = `${second.url}/v1/chat/completions`
    const repeated = await post(again, body("hi"), { "x-session-id": "kept", "idempotency-key": "k1" })
    expect(repeated.headers.get("x-conversation-id")).toBe(conversation)
    expect(((await repeated.json()) as ChatCompletion).choices).toEqual(answer.choices)
    const finished = await post(again, body("slow"), { "x-session-id": "kept", "idempotency-key": "k2" })
    expect(((await finished.json()) as ChatCompletion).choices[0]?.message.content).toBe("The slow answer.")
    const entries = await Effect.runPromise(second.sessions.transcript({ conversationId }))
    expect(entries.filter((entry) => entry.kind === "pi.user")).toHaveLength(2)
    await second.close()
  })
})

describe("two principals", () => {
  it("have sessions of their own under the same name, and do not find each other's", async () => {
    const tokens = { alice: "key-for-alice", bob: "key-for-bob" }
    const node = await startNode({ script, gateway: { settings: { tokens } } })
    const chat = (content: string, token: string | null, headers: Record<string, string> = {}) =>
      post(`${node.url}/v1/chat/completions`, body(content), {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...headers,
      })
    const anonymous = await chat("hi", null)
    expect(anonymous.status).toBe(401)
    expect(await anonymous.json()).toMatchObject({ error: { code: "invalid_api_key" } })
    const alice = await chat("hi", tokens.alice, { "x-session-id": "same" })
    const bob = await chat("hi", tokens.bob, { "x-session-id": "same" })
    const id = alice.headers.get("x-conversation-id") ?? ""
    expect(bob.headers.get("x-conversation-id")).not.toBe(id)
    expect((await chat("hi", tokens.bob, { "x-conversation-id": id })).status).toBe(404)
    expect((await chat("hi", tokens.alice, { "x-conversation-id": id })).status).toBe(200)
    const asked = { model: "super-pi-code", input: "hi" }
    const response = await post(`${node.url}/v1/responses`, asked, { authorization: `Bearer ${tokens.alice}` })
    const { id: responseId } = (await response.json()) as { id: string }
    const read = (token: string) =>
      fetch(`${node.url}/v1/responses/${responseId}`, { headers: { authorization: `Bearer ${token}` } })
    expect((await read(tokens.alice)).status).toBe(200)
    expect((await read(tokens.bob)).status).toBe(404)
    const following = await post(
      `${node.url}/v1/responses`,
      { ...asked, previous_response_id: responseId },
      { authorization: `Bearer ${tokens.bob}` },
    )
    expect(following.status).toBe(404)
    await node.close()
  })
})
