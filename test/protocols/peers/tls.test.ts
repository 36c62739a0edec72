/** Two nodes over TLS: both show a certificate of the cluster's CA, or there is no connection. */
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { connect as connectTls } from "node:tls"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { ConversationId } from "../../../src/domain/ids.ts"
import { connectPeer } from "../../../src/protocols/peers/connect.ts"
import { loadPeerTls } from "../../../src/protocols/peers/tls.ts"
import { type Authority, makeAuthority } from "./certificates.ts"
import { identity, node, open, options, said } from "./support.ts"

const authority = makeAuthority("the cluster")

/** The paths of a node's three files. */
const files = (own: Authority, trusted: Authority = own) => {
  const directory = mkdtempSync(join(tmpdir(), "sp-tls-"))
  const { cert, key } = own.issue("a node under no host name")
  const write = (name: string, text: string) => {
    writeFileSync(join(directory, name), text)
    return join(directory, name)
  }
  return { cert: write("cert.pem", cert), key: write("key.pem", key), ca: write("ca.pem", trusted.ca) }
}

describe("nodes with certificates", () => {
  it.scopedLive("talk over TLS, whatever host name a certificate bears", () =>
    Effect.gen(function* () {
      const { address } = yield* node(2, { tls: yield* loadPeerTls(files(authority)) })
      const { peer, sessions } = yield* connectPeer(address, options(1, { tls: yield* loadPeerTls(files(authority)) }))
      expect(peer).toEqual(identity(2))
      yield* sessions.open(open)
      const target = { conversationId: ConversationId.make(1) }
      const words = "x".repeat(100_000)
      const { submission_id } = yield* sessions.submit({ ...target, content: said(words), requestId: null })
      const { text } = yield* sessions.awaitSubmission({ ...target, submissionId: submission_id })
      expect(text).toBe(words.toUpperCase())
    }),
  )

  it.scopedLive("have no connection without one, with one of another CA, or to a node of another CA", () =>
    Effect.gen(function* () {
      const warnings: Array<string> = []
      const logger = Logger.make(({ message }) => void warnings.push(String(message)))
      const tls = yield* loadPeerTls(files(authority))
      const { address } = yield* Effect.provide(node(2, { tls }), Logger.replace(Logger.defaultLogger, logger))
      const foreign = makeAuthority("another cluster")
      const reason = (own: Parameters<typeof options>[1]) =>
        Effect.map(Effect.flip(connectPeer(address, options(1, own))), (fault) => fault.reason)
      // In TLS 1.3 a client learns that its certificate was refused only after its side of the handshake: by an alert, or by the end.
      expect(["tls", "left"]).toContain(yield* reason({ tls: yield* loadPeerTls(files(foreign, authority)) }))
      expect(yield* reason({ tls: yield* loadPeerTls(files(authority, foreign)) })).toBe("tls")
      expect(["left", "silent", "stranger"]).toContain(yield* reason({ tls: null, timeoutMs: 300 }))
      const bare = yield* Effect.async<string>((resume) => {
        const socket = connectTls({ ...address, ca: authority.ca, checkServerIdentity: () => undefined })
        let heard = ""
        socket.on("data", (bytes) => {
          heard += String(bytes)
        })
        socket.on("error", () => undefined)
        socket.on("close", () => resume(Effect.succeed(heard)))
      })
      expect(bare).toBe("")
      // Once for an address, however often it tries.
      expect(warnings).toEqual(["127.0.0.1: the TLS handshake failed (UNABLE_TO_VERIFY_LEAF_SIGNATURE)"])
    }),
  )

  it.effect("are told which file cannot be used", () =>
    Effect.gen(function* () {
      const good = files(authority)
      const missing = yield* Effect.flip(loadPeerTls({ ...good, cert: "/nowhere/cert.pem" }))
      expect(missing.message).toMatch(
        /^SUPER_PI_CLUSTER_TLS_CERT: expected a readable PEM file, got \/nowhere\/cert.pem \(ENOENT/,
      )
      expect(yield* Effect.flip(loadPeerTls({ ...good, key: good.ca }))).toMatchObject({
        variable: "SUPER_PI_CLUSTER_TLS_KEY",
      })
      const other = files(authority)
      expect(yield* Effect.flip(loadPeerTls({ ...good, key: other.key }))).toMatchObject({
        variable: "SUPER_PI_CLUSTER_TLS_KEY",
      })
      writeFileSync(other.ca, "no certificate")
      expect(yield* Effect.flip(loadPeerTls({ ...good, ca: other.ca }))).toMatchObject({
        variable: "SUPER_PI_CLUSTER_TLS_CA",
      })
    }),
  )
})
