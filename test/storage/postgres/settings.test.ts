/**
 * Settings of the database: every variable, its default, and what is said where it cannot be meant.
 */

import { it } from "@effect/vitest"
import { Either, Redacted } from "effect"
import fc from "fast-check"
import { describe, expect } from "vitest"
import type { InvalidSetting } from "../../../src/domain/invalid-setting.ts"
import { clientConfig } from "../../../src/storage/postgres/client-config.ts"
import {
  locationOf,
  type PostgresSettings,
  postgresSettings,
  serverSettings,
  settingsOfUrl,
} from "../../../src/storage/postgres/settings.ts"
import { parseDatabaseUrl } from "../../../src/storage/postgres/url.ts"

const url = "postgresql://app:secret@db.example.com:6543/super_pi"

const read = (env: Record<string, string>): PostgresSettings =>
  Either.getOrThrow(postgresSettings({ DATABASE_URL: url, ...env }))

const fault = (env: Record<string, string | undefined>): string =>
  Either.match(postgresSettings({ DATABASE_URL: url, ...env }), {
    onLeft: (invalid: InvalidSetting) => invalid.message,
    onRight: () => "none",
  })

const urlFault = (DATABASE_URL: string): string => fault({ DATABASE_URL })

describe("DATABASE_URL", () => {
  it.each(["postgres", "postgresql", "ecto"])("may have the scheme %s", (scheme) => {
    const { database, host, password, port, user } = read({ DATABASE_URL: url.replace("postgresql", scheme) })
    expect({ database, host, port, user }).toEqual({
      database: "super_pi",
      host: "db.example.com",
      port: 6543,
      user: "app",
    })
    expect(password === null ? null : Redacted.value(password)).toBe("secret")
  })

  it("has the port 5432 where it names none, and takes percent-encoded parts apart", () => {
    const settings = read({ DATABASE_URL: "ecto://a%40b:p%3A%2F%25@host/my%20db" })
    expect(settings).toMatchObject({ port: 5432, user: "a@b", database: "my db" })
    expect(settings.password === null ? null : Redacted.value(settings.password)).toBe("p:/%")
  })

  it("may name an IPv6 address", () => {
    expect(read({ DATABASE_URL: "postgresql://u@[::1]:5433/d" })).toMatchObject({ host: "::1", port: 5433 })
  })

  it.each([
    ["postgresql://u@/d?host=/run/postgresql", "/run/postgresql"],
    ["postgresql://u:p@/d?host=/run/postgresql&port=5433", "/run/postgresql"],
    ["postgresql://u@%2Frun%2Fpostgresql/d", "/run/postgresql"],
    ["postgresql:///d?host=/run/postgresql&user=u", "/run/postgresql"],
    ["postgresql://u@/d", "localhost"],
  ])("may name the directory of a unix socket: %s", (given, host) => {
    expect(read({ DATABASE_URL: given })).toMatchObject({ host, user: "u", database: "d" })
  })

  it("carries settings of the session", () => {
    expect(read({ DATABASE_URL: `${url}?options=-c%20search_path%3Dapp` }).options).toBe("-c search_path=app")
  })

  it.each([
    [undefined, "DATABASE_URL: expected a URL like postgresql://user:password@host:port/database, got nothing"],
    ["mysql://u:geheim@h/d", 'got the scheme "mysql:"'],
    ["db.example.com/x", "got one without a scheme"],
    ["postgresql://u:geheim@h", "expected the name of a database at the end"],
    ["postgresql://u:geheim@h/", "expected the name of a database at the end"],
    ["postgresql://h/d", "expected the name of a user"],
    ["postgresql://u:geheim@h:99999/d", "got one that cannot be read"],
    ["postgresql://u:geheim@h/d?port=0", 'expected a port from 1 to 65535, got "0"'],
    ["postgresql://u:gehe%zzim@h/d", "expected a password that is percent-encoded"],
    ["postgresql://u:geheim@h/d?sslmod=verify-full", 'got "sslmod"'],
    ["postgresql://u:geheim@h/d?ssl=perhaps", "expected ssl=true or ssl=false"],
  ])("is refused without its password: %s", (given, message) => {
    const said = fault({ DATABASE_URL: given })
    expect(said).toContain(message)
    expect(said).not.toContain("geheim")
  })

  it("never takes the program down, whatever it is", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string().map((rest) => `postgresql://${rest}`),
          fc.webUrl(),
        ),
        (text) => {
          expect(Either.isEither(parseDatabaseUrl(text))).toBe(true)
        },
      ),
      { numRuns: 500 },
    )
  })

  it("says any user, password and database that are encoded, unchanged", () => {
    const word = fc.string({ minLength: 1, unit: "grapheme" })
    fc.assert(
      fc.property(word, word, word, (user, password, database) => {
        // as a path these two mean another one
        fc.pre(!/^\.{1,2}$/.test(database))
        const encoded = `ecto://${encodeURIComponent(user)}:${encodeURIComponent(password)}@h/${encodeURIComponent(database)}`
        const parsed = Either.getOrThrow(parseDatabaseUrl(encoded))
        expect(parsed).toMatchObject({ user, password, database })
      }),
      { numRuns: 300 },
    )
  })
})

describe("encryption", () => {
  it("is off where nothing is said", () => {
    expect(read({}).tls).toEqual({ mode: "disable", ca: null, serverName: null, cert: null, key: null })
    expect(clientConfig(read({}), { applicationName: "a" }).ssl).toBe(false)
  })

  it.each(["disable", "require", "verify-ca", "verify-full"])("SUPER_PI_DB_SSL=%s", (mode) => {
    expect(read({ SUPER_PI_DB_SSL: mode }).tls.mode).toBe(mode)
  })

  it("is read from sslmode in the URL where SUPER_PI_DB_SSL is unset", () => {
    const DATABASE_URL = `${url}?sslmode=verify-full&sslrootcert=/ca.pem`
    expect(read({ DATABASE_URL }).tls).toMatchObject({ mode: "verify-full", ca: "/ca.pem" })
    expect(read({ DATABASE_URL, SUPER_PI_DB_SSL: "require" }).tls.mode).toBe("require")
    expect(read({ DATABASE_URL: `${url}?ssl=true` }).tls.mode).toBe("require")
  })

  it("takes authority, name and client certificate from their variables", () => {
    const tls = read({
      SUPER_PI_DB_SSL: "verify-full",
      SUPER_PI_DB_SSL_CA: "/ca.pem",
      SUPER_PI_DB_SSL_SNI: "db.internal",
      SUPER_PI_DB_SSL_CERT: "/c.pem",
      SUPER_PI_DB_SSL_KEY: "/k.pem",
    }).tls
    expect(tls).toEqual({
      mode: "verify-full",
      ca: "/ca.pem",
      serverName: "db.internal",
      cert: "/c.pem",
      key: "/k.pem",
    })
  })

  it.each([
    [{ SUPER_PI_DB_SSL: "on" }, 'SUPER_PI_DB_SSL: expected one of disable, require, verify-ca, verify-full, got "on"'],
    [{ DATABASE_URL: `${url}?sslmode=prefer` }, "sslmode in DATABASE_URL: expected one of"],
    [{ SUPER_PI_DB_SSL_CERT: "/c" }, "SUPER_PI_DB_SSL_KEY: expected a path, since the other half of it is given"],
    [{ SUPER_PI_DB_SSL_KEY: "/k" }, "SUPER_PI_DB_SSL_CERT: expected a path"],
    [{ SUPER_PI_DB_SSL_SNI: "a b" }, "SUPER_PI_DB_SSL_SNI: expected a host name"],
    [{ DATABASE_URL: "postgresql://u@/d?host=/run", SUPER_PI_DB_SSL: "require" }, "expected disable for a unix socket"],
  ])("refuses what cannot be meant: %j", (env, message) => {
    expect(fault(env)).toContain(message)
  })

  it("says which variable names a file that cannot be read", () => {
    const settings = read({ SUPER_PI_DB_SSL: "verify-full", SUPER_PI_DB_SSL_CA: "/nowhere/ca.pem" })
    expect(() => clientConfig(settings, { applicationName: "a" })).toThrow(
      /\/nowhere\/ca.pem cannot be read \(ENOENT\). Check SUPER_PI_DB_SSL_CA/,
    )
  })
})

describe("the pool and the network", () => {
  it("have defaults", () => {
    expect(read({})).toMatchObject({ poolSize: 10, queueTargetMs: 50, queueIntervalMs: 1000, ipv6: false })
  })

  it("are set by POOL_SIZE, SUPER_PI_DB_QUEUE_TARGET, SUPER_PI_DB_QUEUE_INTERVAL and SUPER_PI_DB_IPV6", () => {
    const env = {
      POOL_SIZE: "3",
      SUPER_PI_DB_QUEUE_TARGET: "20",
      SUPER_PI_DB_QUEUE_INTERVAL: "200",
      SUPER_PI_DB_IPV6: "true",
    }
    expect(read(env)).toMatchObject({ poolSize: 3, queueTargetMs: 20, queueIntervalMs: 200, ipv6: true })
  })

  it.each([
    [{ POOL_SIZE: "0" }, 'POOL_SIZE: expected connections from 1 to 1000, got "0"'],
    [{ POOL_SIZE: "ten" }, 'POOL_SIZE: expected connections from 1 to 1000, got "ten"'],
    [{ SUPER_PI_DB_QUEUE_TARGET: "-1" }, "SUPER_PI_DB_QUEUE_TARGET: expected milliseconds from 1 to 60000"],
    [{ SUPER_PI_DB_QUEUE_INTERVAL: "1.5" }, "SUPER_PI_DB_QUEUE_INTERVAL: expected milliseconds from 10 to 600000"],
    [{ SUPER_PI_DB_IPV6: "6" }, 'SUPER_PI_DB_IPV6: expected true or false, got "6"'],
  ])("refuse what cannot be meant: %j", (env, message) => {
    expect(fault(env)).toContain(message)
  })
})

describe("migrations", () => {
  it.each([
    [{}, true],
    [{ NODE_ENV: "production" }, false],
    [{ NODE_ENV: "production", SUPER_PI_AUTO_MIGRATE: "true" }, true],
    [{ SUPER_PI_AUTO_MIGRATE: "false" }, false],
  ])("are applied by a node as SUPER_PI_AUTO_MIGRATE and NODE_ENV say: %j", (env, expected) => {
    expect(read(env).autoMigrate).toBe(expected)
  })
})

describe("SUPER_PI_STORAGE_BACKEND", () => {
  const choice = (env: Record<string, string>) => serverSettings({ DATABASE_URL: url, ...env })

  it("is sqlite where nothing is said, whatever DATABASE_URL is", () => {
    expect(Either.getOrThrow(choice({}))).toBeNull()
    expect(Either.getOrThrow(choice({ SUPER_PI_STORAGE_BACKEND: "sqlite", DATABASE_URL: "mysql://x" }))).toBeNull()
  })

  it("is postgres with the settings of the server", () => {
    expect(Either.getOrThrow(choice({ SUPER_PI_STORAGE_BACKEND: "postgres" }))).toMatchObject({ database: "super_pi" })
  })

  it("is nothing else", () => {
    const said = Either.flip(choice({ SUPER_PI_STORAGE_BACKEND: "mysql" }))
    expect(Either.getOrThrow(said).message).toBe('SUPER_PI_STORAGE_BACKEND: expected sqlite or postgres, got "mysql"')
  })
})

describe("where the database is", () => {
  it.each([
    [url, "postgresql://app@db.example.com:6543/super_pi"],
    ["postgresql://a%40b:geheim@[::1]/my%20db", "postgresql://a%40b@[::1]:5432/my%20db"],
    ["postgresql://u:geheim@/d?host=/run/postgresql", "postgresql://u@/d?host=/run/postgresql"],
  ])("is said without secrets: %s", (given, location) => {
    expect(locationOf(Either.getOrThrow(settingsOfUrl(given)))).toBe(location)
  })

  it("is said in faults without secrets", () => {
    expect(urlFault("postgresql://u:geheim@h/d?sslmode=geheim2")).not.toContain("geheim@")
  })
})
