/** From lines to requests and back: the pure core of JSON-RPC. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  decodeLine,
  type Item,
  maxBatch,
  maxDepth,
  nestsDeeper,
  renderResult,
} from "../../src/protocols/jsonrpc/message.ts"
import { decodeText, makeLineSplitter } from "../../src/protocols/socket/lines.ts"

const single = (text: string): Item => {
  const incoming = decodeLine(text)
  if (incoming.type !== "single") throw new Error(`expected one item, got ${incoming.type}`)
  return incoming.item
}

const errorCode = (item: Item): number | null => (item.type === "invalid" ? item.error.code : null)

describe("a line", () => {
  it("is one request, with its id and parameters untouched", () => {
    expect(single('{"jsonrpc":"2.0","method":"subtract","params":{"minuend":42},"id":3}')).toEqual({
      type: "call",
      id: 3,
      method: "subtract",
      params: { minuend: 42 },
    })
  })

  it("is a notification when it has no id, and a request when its id is null", () => {
    expect(single('{"jsonrpc":"2.0","method":"foobar"}')).toEqual({ type: "call", method: "foobar", params: undefined })
    expect(single('{"jsonrpc":"2.0","method":"foobar","id":null}')).toHaveProperty("id", null)
  })

  it("holds nothing when it is blank", () => {
    for (const text of ["", "   ", "\r", "\t \r"]) expect(decodeLine(text)).toEqual({ type: "nothing" })
  })

  it("that is not JSON is a parse error with a null id", () => {
    for (const text of ['{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]', "{", "nul", "[1,", "{}{}"]) {
      expect(single(text)).toMatchObject({ type: "invalid", id: null, error: { code: -32700 } })
    }
  })

  it("that is JSON but no request is an invalid request that says what was expected", () => {
    for (const text of ["1", '"x"', "null", "true", "{}", '{"jsonrpc":"1.0","method":"a"}', "[]"]) {
      expect(errorCode(single(text))).toBe(-32600)
    }
    expect(single('{"jsonrpc":"2.0","method":1,"params":"bar","id":"a"}')).toEqual({
      type: "invalid",
      id: "a",
      error: {
        code: -32600,
        message: "Invalid Request: method: expected a string, got 1",
        data: { path: "method", expected: "a string", actual: "1" },
      },
    })
    expect(errorCode(single('{"jsonrpc":"2.0","method":"a","params":"bar","id":1}'))).toBe(-32600)
  })

  it("with an id that would not come back unchanged is refused", () => {
    for (const id of ["12345678901234567890", "1e999", "true", "{}", "[]"]) {
      expect(single(`{"jsonrpc":"2.0","method":"a","id":${id}}`)).toMatchObject({ id: null, error: { code: -32600 } })
    }
    for (const id of ["0", "-1", "1.5", "9007199254740991", '""', '"é"', "null"]) {
      expect(JSON.stringify((single(`{"jsonrpc":"2.0","method":"a","id":${id}}`) as { id: unknown }).id)).toBe(id)
    }
  })

  it("that nests too deep is refused without being parsed; brackets in strings do not count", () => {
    const deep = "[".repeat(5_000_000)
    expect(errorCode(single(deep))).toBe(-32700)
    expect(nestsDeeper(`${"[".repeat(maxDepth)}${"]".repeat(maxDepth)}`, maxDepth)).toBe(false)
    expect(nestsDeeper(`${"[".repeat(maxDepth + 1)}${"]".repeat(maxDepth + 1)}`, maxDepth)).toBe(true)
    expect(nestsDeeper(JSON.stringify({ text: `\\"${"[".repeat(10_000)}` }), maxDepth)).toBe(false)
  })

  it("may be a batch, each of whose members is judged for itself", () => {
    const incoming = decodeLine('[1,{"foo":"boo"},{"jsonrpc":"2.0","method":"sum","id":"1"}]')
    expect(incoming.type === "batch" && incoming.items.map((item) => item.type)).toEqual(["invalid", "invalid", "call"])
    expect(errorCode(single(JSON.stringify(Array(maxBatch + 1).fill(1))))).toBe(-32600)
  })

  it("answers the specification's malformed examples as it says", () => {
    const codes = (text: string) => {
      const incoming = decodeLine(text)
      if (incoming.type === "nothing") return null
      return incoming.type === "single" ? errorCode(incoming.item) : incoming.items.map(errorCode)
    }
    expect(codes('{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}')).toBeNull()
    expect(codes('{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}')).toBeNull()
    expect(codes('{"jsonrpc": "2.0", "method": 1, "params": "bar"}')).toBe(-32600)
    expect(
      codes('[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},{"jsonrpc": "2.0", "method"'),
    ).toBe(-32700)
    expect(codes("[]")).toBe(-32600)
    expect(codes("[1]")).toEqual([-32600])
    expect(codes("[1,2,3]")).toEqual([-32600, -32600, -32600])
  })

  it("of any text never throws, and says exactly one thing", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json(), fc.string({ unit: fc.constantFrom(...'[]{}":,1\\ue') })), (text) => {
        expect(["nothing", "single", "batch"]).toContain(decodeLine(text).type)
      }),
      { numRuns: 2000 },
    )
  })

  it("with any legal id and any method comes back with that id", () => {
    const id = fc.oneof(fc.string(), fc.integer(), fc.constant(null))
    fc.assert(
      fc.property(id, fc.string(), (id, method) => {
        const item = single(JSON.stringify({ jsonrpc: "2.0", id, method }))
        expect(item).toMatchObject({ type: "call", id, method })
        expect(JSON.parse(renderResult(id, undefined))).toEqual({ jsonrpc: "2.0", id, result: null })
      }),
    )
  })
})

describe("framing", () => {
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("utf8")

  it("gives the same lines however the bytes are cut", () => {
    const lines = fc.array(fc.string({ unit: "grapheme" }).map((line) => line.replaceAll("\n", "")))
    fc.assert(
      fc.property(lines, fc.array(fc.nat({ max: 200 })), (lines, cuts) => {
        const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""))
        const splitter = makeLineSplitter(1_000_000)
        const got: Array<string> = []
        const bounds = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
        for (let i = 1; i < bounds.length; i++) {
          for (const line of splitter.push(bytes.subarray(bounds[i - 1], bounds[i]))) {
            got.push(line.type === "line" ? text(line.bytes) : "too long")
          }
        }
        expect(got).toEqual(lines)
        expect(splitter.end()).toBeNull()
      }),
    )
  })

  it("reports a line past the limit once, keeps none of it, and goes on behind it", () => {
    const splitter = makeLineSplitter(10)
    const kinds = (chunk: string) => splitter.push(Buffer.from(chunk)).map((line) => line.type)
    expect(kinds("12345")).toEqual([])
    expect(kinds("678901")).toEqual(["tooLong"])
    expect(splitter.pending()).toBe(0)
    expect(kinds("and so on")).toEqual([])
    expect(kinds("end\nnext\n")).toEqual(["line"])
    expect(kinds("1234567890\n12345678901\nok\n")).toEqual(["line", "tooLong", "line"])
  })

  it("keeps no more than the limit whatever comes", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 64 })), (chunks) => {
        const splitter = makeLineSplitter(32)
        for (const chunk of chunks) {
          for (const line of splitter.push(chunk))
            if (line.type === "line") expect(line.bytes.length).toBeLessThanOrEqual(32)
          expect(splitter.pending()).toBeLessThanOrEqual(32)
        }
      }),
    )
  })

  it("hands out a last line without its end", () => {
    const splitter = makeLineSplitter(10)
    splitter.push(Buffer.from("half"))
    const last = splitter.end()
    expect(last?.type === "line" && text(last.bytes)).toBe("half")
    expect(splitter.end()).toBeNull()
  })

  it("tells bytes that are not UTF-8", () => {
    expect(decodeText(Buffer.from("é"))).toBe("é")
    expect(decodeText(new Uint8Array([0xc3, 0x28]))).toBeNull()
    expect(decodeText(new Uint8Array([0xff]))).toBeNull()
  })
})
