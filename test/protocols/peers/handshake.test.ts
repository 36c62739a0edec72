/** The lines by which nodes come to trust each other: what counts, and that no other bytes do. */
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  type Hellos,
  protocols,
  readHello,
  readProof,
  renderHello,
  renderProof,
  renderRefusal,
  speaks,
} from "../../../src/protocols/peers/handshake.ts"
import { identity } from "./support.ts"

const secret = "a secret of the tests, long enough"
const hellos: Hellos = {
  caller: renderHello("instance 1", "ab".repeat(32)),
  server: renderHello("instance 2", "cd".repeat(32)),
}

describe("a hello", () => {
  it("is read with what a later program adds to it", () => {
    const hello = { program: "super-pi", ...protocols, nonce: "ab".repeat(32), instance: "one" }
    expect(readHello(renderHello("one", "ab".repeat(32)))).toEqual(hello)
    expect(readHello(JSON.stringify({ ...hello, more: [1] }))).toEqual(hello)
  })

  it("is nothing where it is none", () => {
    const nonce = "ab".repeat(32)
    for (const line of [
      "",
      "{}",
      "null",
      "[]",
      "SSH-2.0",
      renderHello("one", "short"),
      renderHello("x".repeat(101), nonce),
    ]) {
      expect(readHello(line)).toBeNull()
    }
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (line) => readHello(line) === null))
  })

  it("suits where the ranges of protocol numbers overlap", () => {
    const { least, most } = protocols
    expect(speaks({ least, most })).toBe(true)
    expect(speaks({ least: 0, most: least })).toBe(true)
    expect(speaks({ least: most, most: most + 5 })).toBe(true)
    expect(speaks({ least: most + 1, most: most + 5 })).toBe(false)
    expect(speaks({ least: 0, most: least - 1 })).toBe(false)
  })
})

describe("a proof", () => {
  it("shows who a side is, to whoever knows the secret", () => {
    const line = renderProof(secret, "caller", hellos, identity(1))
    expect(readProof(line, secret, "caller", hellos)).toEqual({ peer: identity(1) })
    expect(readProof(line, "another secret", "caller", hellos)).toEqual({ unproved: true })
  })

  it("counts for one role, one pair of nonces and one identity", () => {
    const line = renderProof(secret, "caller", hellos, identity(1))
    expect(readProof(line, secret, "server", hellos)).toEqual({ unproved: true })
    const other = renderHello("instance 2", "ef".repeat(32))
    expect(readProof(line, secret, "caller", { ...hellos, server: other })).toEqual({ unproved: true })
    expect(readProof(line.replace("node-1", "node-9"), secret, "caller", hellos)).toEqual({ unproved: true })
    // Who proves must be who said hello.
    expect(readProof(renderProof(secret, "caller", hellos, identity(3)), secret, "caller", hellos)).toBeNull()
  })

  it("may be a refusal", () => {
    expect(readProof(renderRefusal("system"), secret, "server", hellos)).toEqual({ refused: "system" })
    expect(readProof('{"refused":"whim"}', secret, "server", hellos)).toBeNull()
  })

  it("is nothing, or not proved, for any other bytes", () => {
    const whole = renderProof(secret, "caller", hellos, identity(1))
    const touched = fc
      .tuple(fc.nat(whole.length - 1), fc.integer({ min: 32, max: 126 }))
      .map(([at, code]) => whole.slice(0, at) + String.fromCharCode(code) + whole.slice(at + 1))
      .filter((line) => line !== whole)
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json(), touched), (line) => {
        const read = readProof(line, secret, "caller", hellos)
        return read === null || "unproved" in read || "refused" in read
      }),
    )
  })
})
