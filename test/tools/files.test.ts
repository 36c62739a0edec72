/**
 * `read`, `write` and `edit`: what a model sees of files and how it changes them.
 */
import { chmod, link, lstat, mkdir, readdir, readFile, stat, symlink, truncate } from "node:fs/promises"
import { join } from "node:path"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { BuiltinTools } from "../../src/tools/builtin-tools.ts"
import { call, failureOf, outputOf, textCall, workspaceWith, writeFiles } from "./support.ts"

const bytesOf = (root: string, path: string) => Effect.promise(() => readFile(join(root, path)))
const contentOf = (root: string, path: string) => Effect.map(bytesOf(root, path), (bytes) => bytes.toString("utf8"))

const png = (width: number, height: number): Buffer => {
  const header = Buffer.alloc(33)
  header.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13])
  header.write("IHDR", 12, "latin1")
  header.writeUInt32BE(width, 16)
  header.writeUInt32BE(height, 20)
  return header
}

layer(BuiltinTools.standalone)("read", (it) => {
  it.scoped("numbers lines and leaves the numbers out of the structured text", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({ "a.txt": "one\ntwo\n" })
      const result = yield* call("read", { path: "a.txt" }, workspace)
      expect(outputOf(result)).toBe("1\tone\n2\ttwo")
      expect(result.structuredOutput).toEqual({
        path: "a.txt",
        startLine: 1,
        endLine: 2,
        totalLines: 2,
        truncated: false,
        text: "one\ntwo",
      })
    }),
  )

  it.scoped("gives a window and says how to go on", () =>
    Effect.gen(function* () {
      const lines = Array.from({ length: 5000 }, (_, index) => `line ${index + 1}`).join("\n")
      const workspace = yield* workspaceWith({ "a.txt": `${lines}\n` })
      expect(yield* textCall("read", { path: "a.txt", offset: 10, limit: 2 }, workspace)).toBe(
        "10\tline 10\n11\tline 11\n\n[Lines 10 to 11 of 5,000. Continue with offset=12.]",
      )
      const whole = yield* textCall("read", { path: "a.txt" }, workspace)
      expect(whole).toContain("[Lines 1 to 2000 of 5,000. Continue with offset=2001.]")
      expect(yield* textCall("read", { path: "a.txt", offset: 5000 }, workspace)).toBe("5000\tline 5000")
      expect(yield* failureOf("read", { path: "a.txt", offset: 6000 }, workspace)).toBe(
        "offset: expected a line from 1 to 5000, got 6000 (a.txt has 5,000 lines)",
      )
    }),
  )

  it.scoped("cuts long lines and stays within its size with wide ones", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({
        "long.txt": `${"x".repeat(5000)}\nshort\n`,
        "wide.txt": `${"y".repeat(1500)}\n`.repeat(100),
      })
      const long = yield* textCall("read", { path: "long.txt" }, workspace)
      expect(long).toBe(`1\t${"x".repeat(2000)}… [3,000 more characters in this line]\n2\tshort`)
      const wide = yield* textCall("read", { path: "wide.txt" }, workspace)
      expect(wide.length).toBeLessThan(50 * 1024)
      expect(wide).toMatch(/\[Lines 1 to 32 of 100\. Continue with offset=33\.\]$/)
    }),
  )

  it.scoped("notes an empty file, a missing last line end, CRLF and UTF-16", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({
        empty: "",
        open: "a",
        crlf: "a\r\nb\r\n",
        utf16: Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from("grüße\nzwei\n", "utf16le")]),
        bom: "\ufeffmarked\n",
      })
      expect(yield* textCall("read", { path: "empty" }, workspace)).toBe("[The file is empty.]")
      expect(yield* textCall("read", { path: "open" }, workspace)).toBe("1\ta\n\n[No newline at the end of the file.]")
      expect(yield* textCall("read", { path: "crlf" }, workspace)).toBe("1\ta\n2\tb\n\n[Line ends are CRLF.]")
      expect(yield* textCall("read", { path: "utf16" }, workspace)).toBe(
        "1\tgrüße\n2\tzwei\n\n[The file is stored as UTF-16LE.]",
      )
      expect(yield* textCall("read", { path: "bom" }, workspace)).toBe("1\tmarked")
    }),
  )

  it.scoped(
    "names files close to one that is missing, and refuses directories, pipes and binary files with a hint",
    () =>
      Effect.gen(function* () {
        const workspace = yield* workspaceWith({
          "src/index.ts": "",
          "src/other.ts": "",
          "doc.pdf": "%PDF-1.7\n\0\0",
          "x.bin": Buffer.from([1, 0, 2]),
        })
        yield* call("bash", { command: "mkfifo pipe" }, workspace)
        expect(yield* failureOf("read", { path: "src/indx.ts" }, workspace)).toBe(
          "src/indx.ts: no such file or directory. Did you mean src/index.ts?",
        )
        expect(yield* failureOf("read", { path: "nowhere/at/all" }, workspace)).toBe(
          "nowhere/at/all: no such file, and no directory nowhere/at/. Use find or ls.",
        )
        expect(yield* failureOf("read", { path: "src" }, workspace)).toBe(
          "src: expected a file, got a directory. Use ls to list it, find or grep to search it.",
        )
        expect(yield* failureOf("read", { path: "pipe" }, workspace)).toBe(
          "pipe: expected a file, got a device, pipe or socket",
        )
        expect(yield* failureOf("read", { path: "src/index.ts/x" }, workspace)).toBe(
          "src/index.ts/x: expected a directory on the way, got a file",
        )
        expect(yield* failureOf("read", { path: "doc.pdf" }, workspace)).toContain(
          "got a PDF document of 11 bytes. To look inside, use bash with pdftotext.",
        )
        expect(yield* failureOf("read", { path: "x.bin" }, workspace)).toContain("got a binary file of 3 bytes")
      }),
  )

  it.scoped("returns an image as an image part with its size, and refuses ones that are too large", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({
        "a.png": png(640, 480),
        "wide.png": png(9000, 10),
        "big.png": Buffer.concat([png(10, 10), Buffer.alloc(4_000_000)]),
      })
      const result = yield* call("read", { path: "a.png" }, workspace)
      expect(result.output).toEqual([
        { type: "text", text: "a.png: image/png, 640x480 pixels, 33 bytes" },
        { type: "image", mediaType: "image/png", data: png(640, 480).toString("base64") },
      ])
      expect(yield* failureOf("read", { path: "wide.png" }, workspace)).toContain(
        "9000x10 pixels, 33 bytes: expected at most 8000 pixels a side",
      )
      expect(yield* failureOf("read", { path: "big.png" }, workspace)).toContain("expected an image of at most 3.3 MB")
    }),
  )

  it.scoped("reads the start of a huge text file and refuses a huge sparse one without loading either", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({ "log.txt": `${"0123456789".repeat(10)}\n`.repeat(1000), sparse: "" })
      yield* Effect.promise(async () => {
        await truncate(join(workspace.root, "sparse"), 1024 ** 3)
        await truncate(join(workspace.root, "log.txt"), 1024 ** 3)
      })
      const before = process.memoryUsage().rss
      expect(yield* failureOf("read", { path: "sparse" }, workspace)).toContain("got a binary file of 1.0 GB")
      expect(yield* textCall("read", { path: "log.txt", limit: 1 }, workspace)).toMatch(
        /\[Lines 1 to 1 of more than 1,0\d\d\. Continue with offset=2\.\]$/,
      )
      expect(process.memoryUsage().rss - before).toBeLessThan(300 * 1024 * 1024)
    }),
  )

  it.scoped("names the path, what was expected and what came for wrong arguments", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith()
      expect(yield* failureOf("read", { path: "" }, workspace)).toBe('path: expected a non-empty string, got ""')
      expect(yield* failureOf("read", { path: "a", offset: 0 }, workspace)).toMatch(
        /^offset: expected an integer .*, got 0$/,
      )
      expect(yield* failureOf("read", { path: "a", limit: 1.5 }, workspace)).toBe(
        "limit: expected an integer from 1 to 10000, got 1.5",
      )
      expect(yield* failureOf("read", { file: "a" }, workspace)).toBe(
        'file: expected one of the fields path, offset, limit, got an unknown field with "a"\npath: expected a non-empty string, got nothing',
      )
      expect(yield* failureOf("read", { path: "a\0b" }, workspace)).toBe("a\\0b: a path cannot contain a zero byte")
    }),
  )
})

layer(BuiltinTools.standalone)("write", (it) => {
  it.scoped("creates a file with its directories, then replaces it and shows the difference", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith()
      const created = yield* call("write", { path: "a/b/c.txt", content: "one\ntwo\n" }, workspace)
      expect(outputOf(created)).toBe("Created a/b/c.txt (2 lines, 8 bytes).")
      const replaced = yield* call("write", { path: "a/b/c.txt", content: "one\nthree\nfour" }, workspace)
      expect(outputOf(replaced)).toBe("Overwrote a/b/c.txt (3 lines, 14 bytes; it had 2 lines).")
      expect(replaced.details).toMatchObject({
        created: false,
        change: {
          diff: "@@ -1,2 +1,3 @@\n one\n-two\n+three\n+four\n\\ No newline at end of file\n",
          added: 2,
          removed: 1,
        },
      })
      expect(yield* contentOf(workspace.root, "a/b/c.txt")).toBe("one\nthree\nfour")
      expect(yield* textCall("write", { path: "a/b/c.txt", content: "one\nthree\nfour" }, workspace)).toContain(
        "already had this content",
      )
    }),
  )

  it.scoped("keeps the mode, writes through a link inside the workspace, and leaves nothing behind", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({ "real/run.sh": "old\n" })
      const { root } = workspace
      yield* Effect.promise(() => chmod(join(root, "real/run.sh"), 0o754))
      yield* Effect.promise(() => symlink("real/run.sh", join(root, "link.sh")))
      yield* call("write", { path: "link.sh", content: "new\n" }, workspace)
      expect(yield* contentOf(root, "real/run.sh")).toBe("new\n")
      expect((yield* Effect.promise(() => lstat(join(root, "link.sh")))).isSymbolicLink()).toBe(true)
      expect((yield* Effect.promise(() => stat(join(root, "real/run.sh")))).mode & 0o777).toBe(0o754)
      expect(yield* Effect.promise(() => readdir(join(root, "real")))).toEqual(["run.sh"])
    }),
  )

  it.scoped("replaces the file and not its bytes: whoever has it open sees the old content", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({ "a.txt": "old" })
      const { root } = workspace
      yield* Effect.promise(() => link(join(root, "a.txt"), join(root, "other-name")))
      yield* call("write", { path: "a.txt", content: "new" }, workspace)
      expect(yield* contentOf(root, "other-name")).toBe("old")
    }),
  )

  it.scoped("refuses a directory and a path below a file", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({ "dir/": "", "a.txt": "" })
      expect(yield* failureOf("write", { path: "dir", content: "" }, workspace)).toContain(
        "dir: expected a file, got a directory",
      )
      expect(yield* failureOf("write", { path: "a.txt/b", content: "" }, workspace)).toBe(
        "a.txt/b: expected a directory on the way, got a file",
      )
      expect(yield* failureOf("write", { path: "a.txt" }, workspace)).toBe("content: expected a string, got nothing")
    }),
  )

  it.scoped("lets concurrent writers of one file through one after another", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith()
      const contents = Array.from({ length: 20 }, (_, index) => `${index}\n`.repeat(index + 1))
      const results = yield* Effect.forEach(
        contents,
        (content) => textCall("write", { path: "a.txt", content }, workspace),
        {
          concurrency: "unbounded",
        },
      )
      expect(results.filter((line) => line.startsWith("Created"))).toHaveLength(1)
      expect(contents).toContain(yield* contentOf(workspace.root, "a.txt"))
    }),
  )
})

layer(BuiltinTools.standalone)("edit", (it) => {
  const edit = (oldText: string, newText: string, replaceAll?: boolean) =>
    replaceAll === undefined ? { oldText, newText } : { oldText, newText, replaceAll }

  it.scoped("replaces exact texts, all of one call, and shows the difference", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({ "a.ts": "const a = 1\nconst b = 2\nconst c = 3\n" })
      const result = yield* call(
        "edit",
        { path: "a.ts", edits: [edit("a = 1", "a = 10"), edit("c = 3\n", "c = 30\nconst d = 4\n")] },
        workspace,
      )
      expect(outputOf(result)).toBe("Edited a.ts: 2 replacements, +3 -2 lines, first at line 1.")
      expect(yield* contentOf(workspace.root, "a.ts")).toBe("const a = 10\nconst b = 2\nconst c = 30\nconst d = 4\n")
      expect(result.details).toMatchObject({
        change: {
          diff: "@@ -1,3 +1,4 @@\n-const a = 1\n+const a = 10\n const b = 2\n-const c = 3\n+const c = 30\n+const d = 4\n",
        },
      })
    }),
  )

  it.scoped("keeps CRLF, byte order mark and UTF-16", () =>
    Effect.gen(function* () {
      const utf16 = (value: string) =>
        Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from(value, "utf16le").swap16()])
      const workspace = yield* workspaceWith({
        "crlf.txt": "\ufeffa\r\nb\r\nc\r\n",
        "utf16.txt": utf16("eins\nzwei\n"),
      })
      yield* call("edit", { path: "crlf.txt", edits: [edit("a\nb", "x\ny\nz")] }, workspace)
      expect(yield* contentOf(workspace.root, "crlf.txt")).toBe("\ufeffx\r\ny\r\nz\r\nc\r\n")
      yield* call("edit", { path: "utf16.txt", edits: [edit("zwei", "drei €")] }, workspace)
      expect(yield* bytesOf(workspace.root, "utf16.txt")).toEqual(utf16("eins\ndrei €\n"))
    }),
  )

  it.scoped("shows the nearest lines with their numbers when nothing matches, and changes nothing", () =>
    Effect.gen(function* () {
      const content = "function add(a, b) {\n  return a + b\n}\n\nfunction sub(a, b) {\n  return a - b\n}\n"
      const workspace = yield* workspaceWith({ "a.js": content })
      const message = yield* failureOf(
        "edit",
        { path: "a.js", edits: [edit("  return a - b\n}", "x"), edit("function add(x, y) {\n  return x + y\n", "y")] },
        workspace,
      )
      expect(message).toBe(
        [
          "edits[1].oldText: expected a text of a.js, got one that is not in it. The nearest places are:",
          "1\tfunction add(a, b) {\n2\t  return a + b",
          "--",
          "5\tfunction sub(a, b) {\n6\t  return a - b",
          "",
          "Nothing was changed.",
        ].join("\n"),
      )
      expect(yield* contentOf(workspace.root, "a.js")).toBe(content)
      expect(yield* failureOf("edit", { path: "a.js", edits: [edit("zzzzzzzzzz", "x")] }, workspace)).toContain(
        "Nothing in the file resembles it; read the file again.",
      )
    }),
  )

  it.scoped("names the lines when a text is there several times, and replaces all of them when asked to", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({ "a.txt": "x\ny\nx\nx\n" })
      expect(yield* failureOf("edit", { path: "a.txt", edits: [edit("x", "z")] }, workspace)).toContain(
        "expected a text that is in a.txt once, got one that is there 3 times (lines 1, 3, 4). Include more of the surrounding lines, or set replaceAll.",
      )
      expect(yield* textCall("edit", { path: "a.txt", edits: [edit("x", "z", true)] }, workspace)).toContain(
        "3 replacements",
      )
      expect(yield* contentOf(workspace.root, "a.txt")).toBe("z\ny\nz\nz\n")
    }),
  )

  it.scoped("refuses edits that overlap and edits that change nothing", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({ "a.txt": "one two three\n" })
      expect(
        yield* failureOf("edit", { path: "a.txt", edits: [edit("one two", "1"), edit("two three", "2")] }, workspace),
      ).toContain("edits[1]: expected a place that no other edit changes, got one that overlaps edits[0] at line 1")
      expect(yield* failureOf("edit", { path: "a.txt", edits: [edit("two", "two")] }, workspace)).toContain(
        "expected a text other than oldText",
      )
    }),
  )

  it.scoped(
    "falls back to ignoring trailing blanks and typographic quotes where that is unambiguous, and says so",
    () =>
      Effect.gen(function* () {
        const workspace = yield* workspaceWith({ "a.md": "It’s here  \nnext\nsame \nsame\t\n" })
        expect(
          yield* textCall("edit", { path: "a.md", edits: [edit("It's here\nnext", "It is")] }, workspace),
        ).toContain("edits[0] matched only after ignoring")
        expect(yield* contentOf(workspace.root, "a.md")).toBe("It is\nsame \nsame\t\n")
      }),
  )

  it.scoped("points to write and bash for files that it cannot edit", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({
        "x.bin": Buffer.from([0, 1, 2, 3]),
        "latin1.txt": Buffer.from([0x66, 0xfc, 0x72]),
        big: "",
      })
      yield* Effect.promise(() => truncate(join(workspace.root, "big"), 1024 ** 3))
      yield* Effect.promise(() => mkdir(join(workspace.root, "dir")))
      const edits = [edit("a", "b")]
      expect(yield* failureOf("edit", { path: "none.txt", edits }, workspace)).toContain(
        "none.txt: no such file or directory",
      )
      expect(yield* failureOf("edit", { path: "x.bin", edits }, workspace)).toBe(
        "x.bin: expected a text file, got a binary file. Use bash to change it.",
      )
      expect(yield* failureOf("edit", { path: "latin1.txt", edits }, workspace)).toContain(
        "got bytes that are not valid UTF-8",
      )
      expect(yield* failureOf("edit", { path: "big", edits }, workspace)).toContain(
        "big: expected a file of at most 8.0 MB, got 1.0 GB. Use bash",
      )
      expect(yield* failureOf("edit", { path: "dir", edits }, workspace)).toContain(
        "dir: expected a file, got a directory",
      )
      expect(yield* failureOf("edit", { path: "dir", edits: [] }, workspace)).toBe(
        "edits: expected an array of at least 1 item, got []",
      )
      expect(yield* failureOf("edit", { path: "dir", edits: [{ oldText: "", newText: "x" }] }, workspace)).toBe(
        'edits[0].oldText: expected a non-empty string, got ""',
      )
    }),
  )

  it.scoped("lets concurrent edits of one file through one after another, losing none", () =>
    Effect.gen(function* () {
      const words = Array.from({ length: 20 }, (_, index) => `word${String(index).padStart(2, "0")}`)
      const workspace = yield* workspaceWith()
      yield* writeFiles(workspace.root, { "a.txt": `${words.join("\n")}\n` })
      yield* Effect.forEach(
        words,
        (word) => call("edit", { path: "a.txt", edits: [edit(word, word.toUpperCase())] }, workspace),
        {
          concurrency: "unbounded",
        },
      )
      expect(yield* contentOf(workspace.root, "a.txt")).toBe(`${words.join("\n").toUpperCase()}\n`)
    }),
  )
})
