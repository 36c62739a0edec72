/**
 * A network namespace for one node, joined to this machine's by a pair of virtual interfaces that can be cut.
 */
import { execFileSync } from "node:child_process"

const ip = (...words: ReadonlyArray<string>): void => {
  execFileSync("ip", words, { stdio: "pipe" })
}

/**
 * `down`: the interface of the namespace is taken down, and its side is told at once. `silent`: frames go to a card that is not there, and
 * nobody is told.
 */
export type Cut = "down" | "silent"

/** A card that nobody has; locally administered. */
const nowhere = "02:00:00:00:00:fe"

export class Network {
  /** Of this machine there. */
  readonly host: string
  /** Of the namespace. */
  readonly guest: string
  /** Words that start a command inside. */
  readonly through: ReadonlyArray<string>
  readonly #name: string
  readonly #outer: string
  readonly #inner: string

  /** Of the test's process; fails where the machine does not allow it. */
  constructor() {
    const number = process.pid % 16_384
    const prefix = `10.213.${number >> 6}.`
    const first = (number & 63) * 4
    this.host = `${prefix}${first + 1}`
    this.guest = `${prefix}${first + 2}`
    this.#name = `super-pi-${number}`
    this.#outer = `spi${number}o`
    this.#inner = `spi${number}i`
    this.through = ["ip", "netns", "exec", this.#name]
    ip("netns", "add", this.#name)
    try {
      ip("link", "add", this.#outer, "type", "veth", "peer", "name", this.#inner, "netns", this.#name)
      ip("addr", "add", `${this.host}/30`, "dev", this.#outer)
      ip("link", "set", this.#outer, "up")
      this.#inside("addr", "add", `${this.guest}/30`, "dev", this.#inner)
      this.#inside("link", "set", "lo", "up")
      this.#inside("link", "set", this.#inner, "up")
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** Null where there is no right to, or nothing to do it with. */
  static open(): Network | null {
    try {
      return new Network()
    } catch {
      return null
    }
  }

  cut(how: Cut): void {
    if (how === "down") this.#inside("link", "set", this.#inner, "down")
    else {
      ip("neigh", "replace", this.guest, "lladdr", nowhere, "dev", this.#outer, "nud", "permanent")
      this.#inside("neigh", "replace", this.host, "lladdr", nowhere, "dev", this.#inner, "nud", "permanent")
    }
  }

  heal(how: Cut): void {
    if (how === "down") this.#inside("link", "set", this.#inner, "up")
    else {
      ip("neigh", "del", this.guest, "dev", this.#outer)
      this.#inside("neigh", "del", this.host, "dev", this.#inner)
    }
  }

  close(): void {
    ip("netns", "del", this.#name)
  }

  #inside(...words: ReadonlyArray<string>): void {
    ip("-n", this.#name, ...words)
  }
}
