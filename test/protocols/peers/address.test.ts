/** The address that a node tells others. */
import { describe, expect, it } from "vitest"
import { advertisedAddress, machineAddress } from "../../../src/protocols/peers/address.ts"

const loopback = { address: "127.0.0.1", family: "IPv4", internal: true }
const four = { address: "10.0.0.5", family: "IPv4", internal: false }
const six = { address: "fd00::5", family: "IPv6", internal: false }
const link = { address: "fe80::1", family: "IPv6", internal: false }

const settings = { advertise: null, name: null, listen: { host: null, port: 45_893 } }

describe("the address of a node", () => {
  it("is the one that the settings say", () => {
    const advertise = { host: "node-a.example", port: 1 }
    expect(advertisedAddress({ ...settings, advertise, name: "super_pi@b" }, 2, [four])).toEqual(advertise)
  })

  it("is the host of its name, or the one that it listens on", () => {
    expect(advertisedAddress({ ...settings, name: "super_pi@node-b" }, 2, [four])).toEqual({ host: "node-b", port: 2 })
    expect(advertisedAddress({ ...settings, name: "super_pi@b:9" }, 2, [four])).toEqual({ host: "b", port: 2 })
    expect(advertisedAddress({ ...settings, name: "node-b" }, 2, [four])).toEqual({ host: "10.0.0.5", port: 2 })
    const listen = { host: "192.0.2.1", port: 2 }
    expect(advertisedAddress({ ...settings, listen }, 2, [four])).toEqual({ host: "192.0.2.1", port: 2 })
  })

  it("is else one of the machine that others can use", () => {
    for (const host of [null, "0.0.0.0", "::"]) {
      const listen = { host, port: 0 }
      expect(advertisedAddress({ ...settings, listen }, 7, [loopback, link, six, four])).toEqual({
        host: "10.0.0.5",
        port: 7,
      })
    }
    expect(machineAddress([loopback, link, six])).toBe("fd00::5")
    expect(machineAddress([loopback, link])).toBe("127.0.0.1")
    expect(machineAddress([])).toBe("127.0.0.1")
  })
})
