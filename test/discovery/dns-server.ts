/** A small DNS server on loopback: what it answers may change between two queries. */
import { createSocket } from "node:dgram"
import { Effect, type Scope } from "effect"

/** Addresses by name; a name that begins with `_` has targets `host:port`. Missing: no such name. `null`: no answer at all. */
export type Zone = Readonly<Record<string, ReadonlyArray<string> | null>>

export interface DnsServer {
  /** `address:port`. */
  readonly server: string
  readonly set: (zone: Zone) => void
  /** Names asked for so far. */
  readonly asked: ReadonlyArray<string>
}

const types = { a: 1, aaaa: 28, srv: 33 } as const

const labels = (name: string): Buffer =>
  Buffer.concat([
    ...name.split(".").map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)])),
    Buffer.from([0]),
  ])

const ipv6 = (address: string): Buffer => {
  const [head = "", tail = ""] = address.split("::")
  const groups = (part: string) => (part === "" ? [] : part.split(":").map((one) => Number.parseInt(one, 16)))
  const [left, right] = [groups(head), groups(tail)]
  const all = [...left, ...Array.from({ length: 8 - left.length - right.length }, () => 0), ...right]
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 255]))
}

const dataOf = (type: number, value: string): Buffer | null => {
  if (type === types.a && /^[\d.]+$/.test(value)) return Buffer.from(value.split(".").map(Number))
  if (type === types.aaaa && /^[0-9a-f]*:[0-9a-f:]*$/.test(value)) return ipv6(value)
  const [, host = "", port = ""] = /^([a-z.-]+):(\d+)$/.exec(value) ?? []
  if (type !== types.srv || host === "") return null
  const head = Buffer.alloc(6)
  head.writeUInt16BE(Number(port), 4)
  return Buffer.concat([head, labels(host)])
}

const answer = (query: Buffer, zone: Zone): { readonly name: string; readonly reply: Buffer | null } => {
  const parts: Array<string> = []
  let at = 12
  while (query[at] !== 0) {
    const length = query[at] ?? 0
    parts.push(query.subarray(at + 1, at + 1 + length).toString())
    at += length + 1
  }
  const name = parts.join(".")
  const type = query.readUInt16BE(at + 1)
  const values = zone[name]
  if (values === null) return { name, reply: null }
  const records = (values ?? []).flatMap((value) => {
    const data = dataOf(type, value)
    if (data === null) return []
    const head = Buffer.alloc(12)
    head.writeUInt16BE(0xc00c, 0)
    head.writeUInt16BE(type, 2)
    head.writeUInt16BE(1, 4)
    head.writeUInt16BE(data.length, 10)
    return [Buffer.concat([head, data])]
  })
  const header = Buffer.alloc(12)
  query.copy(header, 0, 0, 2)
  header.writeUInt16BE(values === undefined ? 0x8183 : 0x8180, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(records.length, 6)
  return { name, reply: Buffer.concat([header, query.subarray(12, at + 5), ...records]) }
}

/** Answers until the scope closes. */
export const startDns = (first: Zone): Effect.Effect<DnsServer, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.async<{ readonly close: () => void; readonly dns: DnsServer }>((resume) => {
        let zone = first
        const asked: Array<string> = []
        const socket = createSocket("udp4")
        socket.on("message", (query, from) => {
          const { name, reply } = answer(query, zone)
          asked.push(name)
          if (reply !== null) socket.send(reply, from.port, from.address)
        })
        socket.bind(0, "127.0.0.1", () => {
          const dns: DnsServer = {
            server: `127.0.0.1:${socket.address().port}`,
            set: (next) => {
              zone = next
            },
            asked,
          }
          resume(Effect.succeed({ close: () => socket.close(), dns }))
        })
      }),
      ({ close }) => Effect.sync(close),
    ),
    ({ dns }) => dns,
  )
