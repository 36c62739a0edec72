/**
 * Plugin InlineBash: what counts as a command in a prompt, and what the pipeline is asked to run.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import { type ImagePart, text } from "../../src/domain/message.ts"
import { expressionsOf } from "../../src/harness/plugins/inline-bash/expressions.ts"
import { inlineBash, maxCommands } from "../../src/harness/plugins/inline-bash.ts"
import { projectWith } from "./plugin-support.ts"

const commandsOf = (value: string) =>
  expressionsOf(value).pieces.flatMap((piece) => (piece.type === "command" ? [piece.command] : []))

const textsOf = (value: string) =>
  expressionsOf(value)
    .pieces.map((piece) => (piece.type === "text" ? piece.text : "<>"))
    .join("")

describe("a command in a text", () => {
  it.each([
    ["see !{git status}", ["git status"], "see <>"],
    ["!{ls}!{pwd}", ["ls", "pwd"], "<><>"],
    ["!{  date  }", ["date"], "<>"],
    ["!{echo \u0024{HOME}}", ["echo \u0024{HOME}"], "<>"],
    ["!{for f in *; do { echo $f; }; done} end", ["for f in *; do { echo $f; }; done"], "<> end"],
    ["!{awk '{print $1}' file}", ["awk '{print $1}' file"], "<>"],
    ["!{echo '}'} tail", ["echo '}'"], "<> tail"],
    ['!{echo "a } \\" } b"} tail', ['echo "a } \\" } b"'], "<> tail"],
    ["!{echo \\}} tail", ["echo \\}"], "<> tail"],
    ["!{echo `echo }`} tail", ["echo `echo }`"], "<> tail"],
    ["!{echo $(!{date})} tail", ["echo $(!{date})"], "<> tail"],
    ["!{echo a\necho b}", ["echo a\necho b"], "<>"],
  ])("ends at the brace that closes it: %s", (value, commands, rest) => {
    expect(commandsOf(value)).toEqual(commands)
    expect(textsOf(value)).toBe(rest)
  })

  it("is text behind a backslash, without the backslash", () => {
    expect(expressionsOf("use \\!{name} here")).toEqual({
      pieces: [{ type: "text", text: "use !{name} here" }],
      unclosed: [],
    })
    expect(commandsOf("\\!{no} !{yes}")).toEqual(["yes"])
  })

  it("is text when it is empty or never closed, and the latter is told", () => {
    expect(expressionsOf("!{} and !{ }")).toEqual({ pieces: [{ type: "text", text: "!{} and !{ }" }], unclosed: [] })
    expect(expressionsOf("!{echo 'x}")).toEqual({ pieces: [{ type: "text", text: "!{echo 'x}" }], unclosed: [0] })
    expect(expressionsOf("a !{b !{c}").unclosed).toEqual([2])
    expect(commandsOf("a !{b !{c}")).toEqual(["c"])
  })

  it("is not looked for in fenced code, which may be pasted", () => {
    const fenced = "before !{one}\n```sh\n!{two}\n```\nafter !{three}"
    expect(commandsOf(fenced)).toEqual(["one", "three"])
    expect(textsOf(fenced)).toBe("before <>\n```sh\n!{two}\n```\nafter <>")
    expect(commandsOf("~~~\n!{a}\n```\n!{b}\n~~~\n!{c}")).toEqual(["c"])
    expect(commandsOf("````\n!{a}\n```\n!{b}")).toEqual([])
    expect(commandsOf("   ```\n!{a}\n   ```\n!{b}")).toEqual(["b"])
  })

  it("leaves every other text as it is", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("!", "{", "}", "\\", "'", '"', "`", "a", "\n", "``", " ", "$", "!{")),
        (parts) => {
          const value = parts.join("")
          const { pieces } = expressionsOf(value)
          // Joined again it is the text, but for the backslash of an escape.
          const joined = pieces.map((piece) => (piece.type === "text" ? piece.text : piece.raw)).join("")
          expect(joined.replaceAll("\\", "")).toBe(value.replaceAll("\\", ""))
          expect(pieces.every((piece) => piece.type === "text" || piece.raw.startsWith("!{"))).toBe(true)
          expect(pieces.every((piece) => piece.type === "text" || piece.command.trim() !== "")).toBe(true)
        },
      ),
      { numRuns: 2_000 },
    )
  })
})

const image: ImagePart = { type: "image", mediaType: "image/png", data: "AAAA" }

const input = (content: ReadonlyArray<ReturnType<typeof text> | ImagePart>, options = {}) =>
  Effect.gen(function* () {
    const project = yield* projectWith()
    const hook = inlineBash.hooks.onInput
    if (hook === undefined) return yield* Effect.dieMessage("no hook")
    const answer = yield* hook({ content }, project.context(inlineBash, { options }))
    return { answer, notices: project.notices }
  })

describe("a prompt with commands", () => {
  it.scoped("asks for them in their order over all its parts, and names their outputs in their places", () =>
    Effect.gen(function* () {
      const { answer, notices } = yield* input([text("a !{one} b !{two}"), image, text("!{three}")])
      expect(answer).toEqual({
        content: [text("a {{command:0}} b {{command:1}}"), image, text("{{command:2}}")],
        commands: ["one", "two", "three"].map((command) => ({ command, timeoutMs: 10_000, maxBytes: 8_192 })),
      })
      expect(notices).toEqual([])
    }),
  )

  it.scoped("takes time and size from the options", () =>
    Effect.gen(function* () {
      const { answer } = yield* input([text("!{one}")], { timeoutMs: 500, maxOutputBytes: 16 })
      expect(answer?.commands).toEqual([{ command: "one", timeoutMs: 500, maxBytes: 16 }])
    }),
  )

  it.scoped("is left alone without any, and only unescaped where they are escaped", () =>
    Effect.gen(function* () {
      expect((yield* input([text("plain {text}!"), image])).answer).toBeUndefined()
      expect((yield* input([text("\\!{x}")])).answer).toEqual({ content: [text("!{x}")] })
    }),
  )

  it.scoped("tells of what is not closed, and runs no more than so many", () =>
    Effect.gen(function* () {
      const open = yield* input([text("!{ls and !{pwd")])
      expect(open.answer).toEqual({ content: [text("!{ls and !{pwd")] })
      expect(open.notices).toEqual([{ level: "warning", message: '2 "!{" without its "}" stayed as text' }])
      const many = yield* input([text("!{ls}".repeat(maxCommands + 2))])
      expect(many.answer?.commands).toHaveLength(maxCommands)
      expect(many.notices[0]?.message).toContain("2 stayed as text")
    }),
  )
})
