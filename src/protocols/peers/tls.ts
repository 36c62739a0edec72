/**
 * The certificates of node-to-node connections. Both sides show one that the cluster's CA signed; names in it are not checked, since nodes
 * come and go under any address.
 */
import { X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { createSecureContext, type TlsOptions } from "node:tls"
import { Data, Effect } from "effect"
import type { ClusterTls } from "../../domain/cluster-settings.ts"

/** A file of the certificates cannot be used. */
class PeerTlsFault extends Data.TaggedError("PeerTlsFault")<{
  readonly variable: string
  readonly path: string
  readonly detail: string
}> {
  override get message() {
    return `${this.variable}: expected a readable PEM file, got ${this.path} (${this.detail})`
  }
}

/** For both sides: what to show, and whom to believe. */
export type PeerTls = Required<
  Pick<TlsOptions, "cert" | "key" | "ca" | "minVersion" | "requestCert" | "rejectUnauthorized">
>

const detailOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** Reads and checks the files. */
export const loadPeerTls = (files: ClusterTls): Effect.Effect<PeerTls, PeerTlsFault> =>
  Effect.gen(function* () {
    const read = (part: "cert" | "key" | "ca", check: (pem: Buffer) => unknown) =>
      Effect.try({
        try: () => {
          const pem = readFileSync(files[part])
          check(pem)
          return pem
        },
        catch: (cause) =>
          new PeerTlsFault({
            variable: `SUPER_PI_CLUSTER_TLS_${part.toUpperCase()}`,
            path: files[part],
            detail: detailOf(cause),
          }),
      })
    const ca = yield* read("ca", (pem) => new X509Certificate(pem))
    const cert = yield* read("cert", (pem) => createSecureContext({ cert: pem }))
    const key = yield* read("key", (pem) => createSecureContext({ key: pem, cert }))
    return { ca, cert, key, minVersion: "TLSv1.3", requestCert: true, rejectUnauthorized: true }
  })
