/** Certificates for tests, made on the spot: a CA, and what it signs. X.509 version 3 with P-256 keys, valid from 2020 to 2049. */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto"
import { isIP } from "node:net"

export interface Issued {
  /** PEM. */
  readonly cert: string
  /** PEM. */
  readonly key: string
}

export interface Authority {
  /** PEM. */
  readonly ca: string
  /** `hosts`: what else it is good for, names or addresses. */
  readonly issue: (name: string, hosts?: ReadonlyArray<string>) => Issued
}

const tagged = (tag: number, ...parts: ReadonlyArray<Uint8Array>): Buffer => {
  const body = Buffer.concat(parts)
  const { length } = body
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), body])
}
const sequence = (...parts: ReadonlyArray<Uint8Array>) => tagged(0x30, ...parts)
const bits = (bytes: Uint8Array) => tagged(0x03, Buffer.from([0]), bytes)
const bytesOf = (hex: string) => Buffer.from(hex, "hex")

const ecdsaWithSha256 = sequence(tagged(0x06, bytesOf("2a8648ce3d040302")))
const commonName = tagged(0x06, bytesOf("550403"))
const nameOf = (text: string) => sequence(tagged(0x31, sequence(commonName, tagged(0x0c, Buffer.from(text)))))
const validity = sequence(tagged(0x17, Buffer.from("200101000000Z")), tagged(0x17, Buffer.from("490101000000Z")))
/** basicConstraints, critical: it may sign others. */
const authority = tagged(
  0xa3,
  sequence(
    sequence(
      tagged(0x06, bytesOf("551d13")),
      tagged(0x01, Buffer.from([255])),
      tagged(0x04, sequence(tagged(0x01, Buffer.from([255])))),
    ),
  ),
)

/** The 16 bytes of an IPv6 address. */
const sixteen = (address: string): Buffer => {
  const [left = "", right = ""] = address.split("::")
  const groups = (part: string) => part.split(":").filter((group) => group !== "")
  const [before, after] = [groups(left), groups(right)]
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => "0")
  return bytesOf([...before, ...zeros, ...after].map((group) => group.padStart(4, "0")).join(""))
}

const generalName = (host: string): Buffer => {
  switch (isIP(host)) {
    case 4:
      return tagged(0x87, Buffer.from(host.split(".").map(Number)))
    case 6:
      return tagged(0x87, sixteen(host))
    default:
      return tagged(0x82, Buffer.from(host))
  }
}

/** subjectAltName; nothing where there is none. */
const alternatives = (hosts: ReadonlyArray<string>): Buffer => {
  if (hosts.length === 0) return Buffer.alloc(0)
  const names = tagged(0x04, sequence(...hosts.map(generalName)))
  return tagged(0xa3, sequence(sequence(tagged(0x06, bytesOf("551d11")), names)))
}

const pem = (der: Uint8Array) => {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`
}

const certificate = (issuer: string, by: KeyObject, subject: string, of: KeyObject, extensions: Uint8Array) => {
  const serial = Buffer.concat([Buffer.from([1]), randomBytes(8)])
  const signed = sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))),
    tagged(0x02, serial),
    ecdsaWithSha256,
    nameOf(issuer),
    validity,
    nameOf(subject),
    of.export({ type: "spki", format: "der" }),
    extensions,
  )
  return pem(sequence(signed, ecdsaWithSha256, bits(sign("sha256", signed, by))))
}

/** A CA of its own. */
export const makeAuthority = (name: string): Authority => {
  const own = generateKeyPairSync("ec", { namedCurve: "P-256" })
  return {
    ca: certificate(name, own.privateKey, name, own.publicKey, authority),
    issue: (subject, hosts = []) => {
      const pair = generateKeyPairSync("ec", { namedCurve: "P-256" })
      return {
        cert: certificate(name, own.privateKey, subject, pair.publicKey, alternatives(hosts)),
        key: pair.privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
      }
    },
  }
}
