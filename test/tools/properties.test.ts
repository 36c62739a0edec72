/**
 * The pure parts of the tools, for any input.
 */
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { unifiedDiff } from "../../src/tools/diff.ts"
import { applyEdits, type Edit } from "../../src/tools/edits.ts"
import { commandEnvironment } from "../../src/tools/environment.ts"
import { sniffImage } from "../../src/tools/file-kind.ts"
import { compileGlob } from "../../src/tools/glob.ts"
import { LineWindow } from "../../src/tools/line-window.ts"
import { OutputCapture, readable } from "../../src/tools/output-capture.ts"
import { decodeText, detectFormat, encodeText } from "../../src/tools/text-encoding.ts"

const word = fc.constantFrom("alpha", "beta", "gamma", "  delta", "x’y", "tail \t", "é😀", "", "}")
const lineEnd = fc.constantFrom("\n", "\r\n")
const lines = fc.array(fc.tuple(word, lineEnd), { maxLength: 12 })
/** Any mixture of line ends, with or without one at the end. */
const fileText = fc.tuple(lines, word).map(([parts, last]) => parts.map(([text, end]) => text + end).join("") + last)

const apply = (text: string, edits: ReadonlyArray<Edit>) => applyEdits({ text, edits, diffLines: 1000 })

describe("an edit", () => {
  it("changes exactly the range that it names and gives it the line ends of that range, in any file", () => {
    fc.assert(
      fc.property(fileText, fileText, fileText, lineEnd, (before, after, replacement, end) => {
        // A marker makes the place unique; the model writes it with plain line ends.
        const old = `<<${end}mark>>`
        const result = apply(before + old + after, [{ oldText: "<<\nmark>>", newText: replacement, replaceAll: false }])
        expect(result._tag).toBe("Edited")
        if (result._tag !== "Edited") return
        expect(result.text).toBe(before + replacement.replace(/\r\n|\n/g, end) + after)
        expect(result.lenient).toEqual([])
      }),
    )
  })

  it("that is undone gives back the file, byte for byte, in every encoding", () => {
    const format = fc.record({ encoding: fc.constantFrom("utf-8", "utf-16le", "utf-16be"), bom: fc.boolean() } as const)
    fc.assert(
      fc.property(fileText, fileText, format, lineEnd, (before, after, given, end) => {
        const text = `plain ascii start ${before}<1${end}2>${after}`
        const bytes = encodeText(text, given)
        const found = detectFormat(bytes)
        // Without a mark the format is a guess: it must not be a wrong one that loses bytes.
        if (given.bom) expect(found).toEqual(given)
        if (found === undefined) return
        const decoded = decodeText(bytes, found)
        if (decoded === undefined) return
        expect(encodeText(decoded, found).equals(bytes)).toBe(true)
        if (found.encoding !== given.encoding) return
        const there = apply(decoded, [{ oldText: "<1\n2>", newText: "<3\n4\n5>", replaceAll: false }])
        const back = apply(there._tag === "Edited" ? there.text : "", [
          { oldText: "<3\n4\n5>", newText: "<1\n2>", replaceAll: false },
        ])
        expect(back._tag === "Edited" && encodeText(back.text, found).equals(bytes)).toBe(true)
      }),
    )
  })

  it("of all occurrences leaves none and counts them", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom("needle", "a", "\r\n", "\n", " "), { maxLength: 30 }), (parts) => {
        const text = `${parts.join("")}needle`
        const result = apply(text, [{ oldText: "needle", newText: "N", replaceAll: true }])
        expect(result._tag === "Edited" && result.text).toBe(text.replaceAll("needle", "N"))
        expect(result._tag === "Edited" && result.counts).toEqual([text.split("needle").length - 1])
      }),
    )
  })

  it("is refused with the others of its call when one of them does not fit, whatever the file", () => {
    fc.assert(
      fc.property(fileText, (text) => {
        const result = apply(`${text}|once|`, [
          { oldText: "|once|", newText: "x", replaceAll: false },
          { oldText: "surely not in there", newText: "y", replaceAll: false },
        ])
        expect(result).toMatchObject({ _tag: "Rejected", faults: [{ reason: "notFound", edit: 1 }] })
      }),
    )
  })

  it("with lenient matching changes nothing but lines that it touches", () => {
    const result = apply("a  \r\n“b”\r\nc \r\n", [{ oldText: 'a\n"b"', newText: "A\nB", replaceAll: false }])
    expect(result._tag === "Edited" && result.text).toBe("A\r\nB\r\nc \r\n")
  })
})

/** Applies a unified diff, strictly. */
const patch = (before: string, diff: string): string => {
  const source = before.match(/[^\n]*\n|[^\n]+$/g) ?? []
  const out: Array<string> = []
  let at = 0
  const rows = diff.split("\n").slice(0, -1)
  for (const [index, row] of rows.entries()) {
    const head = /^@@ -(\d+)(?:,(\d+))? \+/.exec(row)
    const body = row.slice(1) + (rows[index + 1]?.startsWith("\\") === true ? "" : "\n")
    if (head !== null) {
      const start = Number(head[1]) - (head[2] === "0" ? 0 : 1)
      while (at < start) out.push(source[at++] ?? "")
    } else if (row.startsWith("+")) out.push(body)
    else if (!row.startsWith("\\")) {
      expect(source[at]).toBe(body)
      if (row.startsWith(" ")) out.push(body)
      at++
    }
  }
  return out.concat(source.slice(at)).join("")
}

describe("a unified diff", () => {
  it("applied to the old text gives the new one, for any two texts", () => {
    fc.assert(
      fc.property(fileText, fileText, fc.nat(3), (before, after, context) => {
        const diff = unifiedDiff(before, after, { context, maxLines: 10_000 })
        expect(patch(before, diff.text)).toBe(after)
        expect(diff.text.split("\n").filter((row) => row.startsWith("+")).length).toBe(diff.added)
        expect(diff.text.split("\n").filter((row) => row.startsWith("-")).length).toBe(diff.removed)
      }),
    )
  })

  it("of texts that have nothing in common is bounded and says that it was cut", () => {
    const text = (letter: string) => Array.from({ length: 20_000 }, (_, index) => `${letter}${index}\n`).join("")
    const diff = unifiedDiff(text("a"), text("b"), { context: 3, maxLines: 50 })
    expect(diff).toMatchObject({ added: 20_000, removed: 20_000, truncated: true })
    expect(diff.text.split("\n")).toHaveLength(51)
  })
})

describe("captured output", () => {
  const limits = { headChars: 40, tailChars: 60, memoryBytes: 1000 }

  it("is decoded the same however it is cut into chunks", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.array(fc.nat(50), { maxLength: 20 }), (text, cuts) => {
        const bytes = Buffer.from(text, "utf8")
        const capture = new OutputCapture({ ...limits, headChars: 10_000 })
        let [streamed, at] = ["", 0]
        for (const size of cuts) {
          streamed += capture.push(bytes.subarray(at, at + size))
          at += size
        }
        streamed += capture.push(bytes.subarray(at)) + capture.end()
        expect(streamed).toBe(bytes.toString("utf8"))
        expect(capture.text(() => "")).toBe(streamed)
        expect(Buffer.concat(capture.release()).equals(bytes)).toBe(true)
      }),
    )
  })

  it("keeps its start and its end within the limits, and accounts for what it leaves out", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "grapheme", maxLength: 30 }), { maxLength: 60 }), (chunks) => {
        const capture = new OutputCapture(limits)
        for (const chunk of chunks) capture.push(Buffer.from(chunk))
        capture.end()
        const all = chunks.join("")
        let omitted = 0
        const text = capture.text((count) => {
          omitted = count
          return "<cut>"
        })
        if (all.length <= 100) expect(text).toBe(all)
        else {
          const [head = "", tail = ""] = text.split("\n<cut>\n")
          expect(all.startsWith(head) && all.endsWith(tail)).toBe(true)
          expect(head.length + tail.length + omitted).toBe(all.length)
          expect(text).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/)
        }
      }),
    )
  })

  it("made readable has no control characters but tabs and line ends", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary-ascii" }), (text) => {
        // biome-ignore lint/suspicious/noControlCharactersInRegex: none may be left
        expect(readable(text)).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f]/)
      }),
    )
  })
})

describe("a window of lines", () => {
  it("gives the lines that splitting the whole text gives, however the text arrives", () => {
    fc.assert(
      fc.property(
        fileText,
        fc.array(fc.nat(20)),
        fc.integer({ min: 1, max: 15 }),
        fc.integer({ min: 1, max: 5 }),
        (text, cuts, offset, limit) => {
          const window = new LineWindow({ offset, limit, lineChars: 1000, totalChars: 100_000 })
          let at = 0
          for (const size of cuts) {
            window.feed(text.slice(at, at + size))
            at += size
          }
          window.feed(text.slice(at))
          window.end()
          const all = text.split("\n")
          if (all.at(-1) === "") all.pop()
          expect(window.count).toBe(all.length)
          expect(window.lines.map((line) => line.text)).toEqual(
            all.slice(offset - 1, offset - 1 + limit).map((line) => line.replace(/\r$/, "")),
          )
          expect(window.endsWithNewline).toBe(text === "" || text.endsWith("\n"))
        },
      ),
    )
  })
})

describe("a glob", () => {
  it.each([
    ["*.ts", "a.ts", true],
    ["*.ts", "deep/a.ts", true],
    ["*.ts", "a.tsx", false],
    ["src/*.ts", "src/a.ts", true],
    ["src/*.ts", "src/x/a.ts", false],
    ["src/**/*.ts", "src/a.ts", true],
    ["src/**/*.ts", "src/x/y/a.ts", true],
    ["**/a.ts", "a.ts", true],
    ["**", "x/y", true],
    ["src/**", "src/x/y", true],
    ["src/**", "src", false],
    ["/a.ts", "a.ts", true],
    ["/a.ts", "x/a.ts", false],
    ["./src/a", "src/a", true],
    ["{a,b}.{js,ts}", "b.ts", true],
    ["{src,test}/**/*.ts", "test/x.ts", true],
    ["a{b,{c,d}}", "ad", true],
    ["[a-c].x", "b.x", true],
    ["[!a-c].x", "b.x", false],
    ["[]]", "]", true],
    ["a[", "a[", true],
    ["[z-a]", "[z-a]", true],
    ["\\*.ts", "*.ts", true],
    ["\\*.ts", "a.ts", false],
    ["?", "é", true],
    ["a?b", "a/b", false],
    [".*", ".env", true],
    ["!*.md", "a.ts", true],
    ["!*.md", "a.md", false],
    ["a,b", "a,b", true],
  ])("%s on %s: %s", (pattern, path, expected) => {
    expect(compileGlob(pattern).matches(path, false)).toBe(expected)
  })

  it("never throws, and matches a plain name literally", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (pattern, path) => {
        expect(typeof compileGlob(pattern).matches(path, true)).toBe("boolean")
        const plain = pattern.replace(/[\\*?[\]{}!/]/g, "")
        if (plain !== "" && !plain.startsWith(".")) expect(compileGlob(plain).matches(`x/${plain}`, false)).toBe(true)
      }),
    )
  })
})

describe("an image", () => {
  const bytes = (...parts: ReadonlyArray<string | ReadonlyArray<number>>) =>
    Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : Buffer.from(part))))
  const pad = Array.from({ length: 40 }, () => 0)

  it("is known by its first bytes, with its size", () => {
    const png = bytes([0x89], "PNG\r\n\u001a\n", [0, 0, 0, 13], "IHDR", [0, 0, 2, 0x80, 0, 0, 1, 0xe0], pad)
    const gif = bytes("GIF89a", [0x40, 1, 0xf0, 0], pad)
    const jpeg = bytes([0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0, 0xff, 0xc2, 0, 17, 8, 0, 100, 0, 200], pad)
    const lossy = bytes("RIFF", [0, 0, 0, 0], "WEBPVP8 ", [0, 0, 0, 0, 0, 0, 0, 0x9d, 1, 0x2a, 0x20, 3, 0x58, 2], pad)
    const extended = bytes("RIFF", [0, 0, 0, 0], "WEBPVP8X", [10, 0, 0, 0, 0, 0, 0, 0, 0x1f, 3, 0, 0x57, 2, 0], pad)
    const lossless = bytes("RIFF", [0, 0, 0, 0], "WEBPVP8L", [0, 0, 0, 0, 0x2f, 0x1f, 0xc3, 0x95, 0], pad)
    expect([png, gif, jpeg, lossy, extended, lossless].map(sniffImage)).toEqual([
      { mediaType: "image/png", width: 640, height: 480 },
      { mediaType: "image/gif", width: 320, height: 240 },
      { mediaType: "image/jpeg", width: 200, height: 100 },
      { mediaType: "image/webp", width: 800, height: 600 },
      { mediaType: "image/webp", width: 800, height: 600 },
      { mediaType: "image/webp", width: 800, height: 600 },
    ])
  })

  it("that is cut anywhere is still no reason to throw", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(
          [0xff, 0xd8, 0xff],
          [0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10],
          [0x47, 0x49, 0x46, 0x38, 0x39, 0x61],
          [0x52, 0x49, 0x46, 0x46, 0, 0, 0, 0, 0x57, 0x45, 0x42, 0x50, 0x56, 0x50, 0x38, 0x58],
        ),
        fc.uint8Array({ maxLength: 60 }),
        (head, rest) => {
          expect(() => sniffImage(Buffer.from([...head, ...rest]))).not.toThrow()
        },
      ),
    )
  })
})

describe("the environment of a command", () => {
  it("holds no variable of the node that is not on the list, and the workspace's own win", () => {
    fc.assert(
      fc.property(
        fc.stringMatching(/^[A-Z_]{1,20}(KEY|TOKEN|SECRET|PASSWORD|COMMAND)$/),
        fc.string(),
        (name, value) => {
          expect(commandEnvironment({ [name]: value, PATH: "/bin" })).not.toHaveProperty([name])
        },
      ),
    )
    const node = {
      PATH: "/bin",
      LC_ALL: "C",
      HTTP_PROXY: "http://p:1",
      HTTPS_PROXY: "http://u:p@p:1",
      BASH_ENV: "/x",
      TERM: "xterm",
    }
    expect(commandEnvironment(node, { PAGER: "less", API_KEY: "given" })).toEqual({
      PATH: "/bin",
      LC_ALL: "C",
      HTTP_PROXY: "http://p:1",
      TERM: "dumb",
      PAGER: "less",
      GIT_PAGER: "cat",
      GIT_EDITOR: "true",
      GIT_TERMINAL_PROMPT: "0",
      API_KEY: "given",
    })
  })
})
