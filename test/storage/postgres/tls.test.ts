/**
 * How a server is reached: encrypted and checked, over IPv6, through a unix socket. Against a real server, with certificates made on the spot.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type Socket } from "node:net"
import { networkInterfaces, tmpdir } from "node:os"
import { join } from "node:path"
import { createSecureContext, TLSSocket } from "node:tls"
import { it } from "@effect/vitest"
import { Effect, Either, type Scope } from "effect"
import { expect } from "vitest"
import { openClient } from "../../../src/storage/postgres/client.ts"
import { openPool } from "../../../src/storage/postgres/pool.ts"
import { postgresSettings } from "../../../src/storage/postgres/settings.ts"
import { makeAuthority } from "../../protocols/peers/certificates.ts"
import { describePostgresServer, postgresServer } from "../../support/postgres.ts"

const hasIpv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"))

const authority = makeAuthority("the authority of the test")
const stranger = makeAuthority("another authority")
const certificate = authority.issue("db.internal", ["localhost", "::1", "db.internal"])

/** Paths of PEM files, gone with the scope. */
const files = <K extends string>(contents: Record<K, string>): Effect.Effect<Record<K, string>, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "super-pi-tls-"))),
      (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true })),
    ),
    (directory) => {
      const write = ([name, content]: [string, unknown]): [string, string] => {
        writeFileSync(join(directory, name), String(content))
        return [name, join(directory, name)]
      }
      return Object.fromEntries(Object.entries(contents).map(write)) as Record<K, string>
    },
  )

/** The user `app` must show a certificate; everybody else has a password, and only the test itself comes without encryption. */
const server = postgresServer({
  ipv6: hasIpv6,
  config: ["ssl=on", "ssl_cert_file=server.crt", "ssl_key_file=server.key", "ssl_ca_file=root.crt"],
  files: { "server.crt": certificate.cert, "server.key": certificate.key, "root.crt": authority.ca },
  hba: [
    "hostnossl postgres all 127.0.0.1/32 password",
    "hostssl all app 127.0.0.1/32 cert",
    "hostssl all all 127.0.0.1/32 password",
    "hostssl all all ::1/128 password",
    "local all all trust",
  ],
})

type Env = Readonly<Record<string, string>>

const connected = (env: Env) =>
  Effect.gen(function* () {
    const { server: facts, sql } = yield* openPool(Either.getOrThrow(postgresSettings(env)), { applicationName: "tls" })
    const [row] = yield* sql`SELECT host(inet_client_addr()) AS address, current_user AS "user"`
    return { tls: facts.tls, ...row }
  })

/** What opening fails with, or what there is. */
const outcome = (env: Env) =>
  Effect.scoped(connected(env)).pipe(
    Effect.match({ onFailure: (error) => error.message, onSuccess: (facts) => JSON.stringify(facts) }),
  )

const at = (url: string, host: string, user?: string): string => {
  const changed = new URL(url)
  changed.hostname = host
  if (user !== undefined) {
    changed.username = user
    changed.password = ""
  }
  return changed.href
}

describePostgresServer("a server with encryption", () => {
  it.scopedLive("is reached as SUPER_PI_DB_SSL says, and refused where the certificate is not what that asks for", () =>
    Effect.gen(function* () {
      const { url } = yield* (yield* server).database
      const { ca, foreign } = yield* files({ ca: authority.ca, foreign: stranger.ca })
      const local = at(url, "localhost")
      const env = (mode: string, more: Env = {}): Env => ({ DATABASE_URL: local, SUPER_PI_DB_SSL: mode, ...more })
      const encrypted = '"tls":"TLSv1.3"'

      // the server wants encryption
      expect(yield* outcome(env("disable"))).toMatch(/the server does not let this user in \(28000\).*SUPER_PI_DB_SSL/)
      expect(yield* outcome(env("require"))).toContain(encrypted)
      // without a CA of its own: those of the system, which do not know it
      expect(yield* outcome(env("verify-full"))).toMatch(/signed by an unknown authority.*SUPER_PI_DB_SSL_CA/)
      for (const mode of ["verify-ca", "verify-full"]) {
        expect(yield* outcome(env(mode, { SUPER_PI_DB_SSL_CA: ca }))).toContain(encrypted)
        expect(yield* outcome(env(mode, { SUPER_PI_DB_SSL_CA: foreign }))).toMatch(/signed by an unknown authority/)
      }
      // the certificate is not for 127.0.0.1
      const DATABASE_URL = at(url, "127.0.0.1")
      const checked = { DATABASE_URL, SUPER_PI_DB_SSL_CA: ca }
      expect(yield* outcome(env("verify-ca", checked))).toContain(encrypted)
      expect(yield* outcome(env("verify-full", checked))).toMatch(
        /the certificate of the server is for another name \(ERR_TLS_CERT_ALTNAME_INVALID\).*SUPER_PI_DB_SSL_SNI/,
      )
      expect(yield* outcome(env("verify-full", { ...checked, SUPER_PI_DB_SSL_SNI: "db.internal" }))).toContain(
        encrypted,
      )
      expect(yield* outcome(env("verify-full", { ...checked, SUPER_PI_DB_SSL_SNI: "db.other" }))).toContain(
        "for another name",
      )
      expect(yield* outcome({ DATABASE_URL: `${local}?sslmode=verify-full&sslrootcert=${ca}` })).toContain(encrypted)
    }),
  )

  it.scopedLive("asks for a certificate of the client, and takes only one that it knows", () =>
    Effect.gen(function* () {
      const { url } = yield* (yield* server).database
      const own = authority.issue("app")
      const other = stranger.issue("app")
      const somebody = authority.issue("somebody")
      const pem = yield* files({
        ca: authority.ca,
        cert: own.cert,
        key: own.key,
        otherCert: other.cert,
        otherKey: other.key,
        somebodyCert: somebody.cert,
        somebodyKey: somebody.key,
        text: "no certificate",
      })
      const admin = yield* openClient(
        Either.getOrThrow(postgresSettings({ DATABASE_URL: url, SUPER_PI_DB_SSL: "require" })),
        {
          applicationName: "test",
        },
      )
      yield* Effect.promise(() => admin.query("CREATE ROLE app LOGIN"))
      const DATABASE_URL = at(url, "localhost", "app")
      const base = { DATABASE_URL, SUPER_PI_DB_SSL: "verify-full", SUPER_PI_DB_SSL_CA: pem.ca }
      const withPair = (cert: string, key: string): Env => ({
        ...base,
        SUPER_PI_DB_SSL_CERT: cert,
        SUPER_PI_DB_SSL_KEY: key,
      })

      expect(yield* outcome(withPair(pem.cert, pem.key))).toContain('"user":"app"')
      expect(yield* outcome(base)).toMatch(/does not let this user in|asks for a certificate of this client/)
      expect(yield* outcome(withPair(pem.somebodyCert, pem.somebodyKey))).toContain("does not let this user in")
      expect(yield* outcome(withPair(pem.otherCert, pem.otherKey))).toMatch(
        /does not accept the certificate of this client|the encrypted connection failed|connection was lost/,
      )
      expect(yield* outcome(withPair(pem.cert, pem.otherKey))).toContain("do not belong together")
      expect(yield* outcome(withPair(pem.text, pem.key))).toContain("is no PEM file")
      expect(yield* outcome(withPair(pem.cert, "/nowhere/key"))).toMatch(
        /\/nowhere\/key cannot be read.*SUPER_PI_DB_SSL_KEY/,
      )
    }),
  )

  it.skipIf(!hasIpv6)("is reached over IPv6 (where this machine has it), and over nothing else if so told", () =>
    Effect.gen(function* () {
      const { url } = yield* (yield* server).database
      const { ca } = yield* files({ ca: authority.ca })
      const checked = { SUPER_PI_DB_SSL: "verify-full", SUPER_PI_DB_SSL_CA: ca }
      const only = { SUPER_PI_DB_IPV6: "true", ...checked }
      const six = '"address":"::1"'
      expect(yield* outcome({ DATABASE_URL: at(url, "[::1]"), ...checked })).toContain(six)
      expect(yield* outcome({ DATABASE_URL: at(url, "[::1]"), ...only })).toContain(six)
      // not every machine calls ::1 localhost
      expect(yield* outcome({ DATABASE_URL: at(url, "localhost"), ...only })).toMatch(/"address":"::1"|ENOTFOUND/)
      expect(yield* outcome({ DATABASE_URL: at(url, "127.0.0.1"), ...only })).not.toContain('"address"')
    }).pipe(Effect.scoped, Effect.runPromise),
  )

  it.scopedLive("is reached through its unix socket", () =>
    Effect.gen(function* () {
      const { database, port, sockets } = yield* server
      const { name } = yield* database
      const DATABASE_URL = `postgresql://postgres@/${name}?host=${encodeURIComponent(sockets)}&port=${port}`
      expect(yield* outcome({ DATABASE_URL })).toContain('"tls":null,"address":null')
      expect(yield* outcome({ DATABASE_URL: DATABASE_URL.replace(String(port), "1") })).toContain(
        "there is no such socket",
      )
    }),
  )
})

describePostgresServer("the name that a server is asked for", () => {
  /** A server that only does the beginning of encryption, and says which name it was asked for. */
  const listener = Effect.acquireRelease(
    Effect.promise(async () => {
      const asked: Array<string> = []
      const sockets: Array<Socket> = []
      const own = createServer((socket) => {
        sockets.push(socket)
        socket.on("error", () => undefined)
        socket.once("data", () => {
          socket.write("S")
          const secureContext = createSecureContext(certificate)
          const secure = new TLSSocket(socket, {
            isServer: true,
            secureContext,
            SNICallback: (name, done) => {
              asked.push(name)
              done(null, secureContext)
            },
          })
          secure.on("error", () => undefined)
          secure.once("data", () => secure.destroy())
        })
      })
      await new Promise<void>((resolve) => own.listen(0, "127.0.0.1", resolve))
      const address = own.address()
      return { own, asked, sockets, port: typeof address === "object" && address !== null ? address.port : 0 }
    }),
    ({ own, sockets }) =>
      Effect.promise(() => {
        for (const socket of sockets) socket.destroy()
        return new Promise<void>((resolve) => own.close(() => resolve()))
      }),
  )

  it.scopedLive("is the host, or what SUPER_PI_DB_SSL_SNI says", () =>
    Effect.gen(function* () {
      const { asked, port } = yield* listener
      const DATABASE_URL = `postgresql://u:p@localhost:${port}/d`
      yield* outcome({ DATABASE_URL, SUPER_PI_DB_SSL: "require" })
      yield* outcome({ DATABASE_URL, SUPER_PI_DB_SSL: "require", SUPER_PI_DB_SSL_SNI: "db.internal" })
      expect(asked).toEqual(["localhost", "db.internal"])
    }),
  )
})
