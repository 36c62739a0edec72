/**
 * Lines typed in a chat, and lines of stream-json input.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { chatHelp, readChatLine, slashCommands } from "../../src/cli/chat-input.ts"
import { readPromptLine } from "../../src/cli/prompt-lines.ts"

describe("a line of a chat", () => {
  it("is a prompt, a steer, a command or nothing", () => {
    expect(readChatLine("", "  hello ")).toEqual({ kind: "prompt", text: "hello" })
    expect(readChatLine("", "!use tabs")).toEqual({ kind: "steer", text: "use tabs" })
    expect(readChatLine("", "/model mock/echo")).toEqual({ kind: "command", name: "model", argument: "mock/echo" })
    expect(readChatLine("", "/quit")).toEqual({ kind: "command", name: "exit", argument: "" })
    expect(readChatLine("", " ")).toEqual({ kind: "nothing" })
  })

  it("with a path at its start is a prompt", () => {
    expect(readChatLine("", "/etc/hosts: what is it?").kind).toBe("prompt")
  })

  it("names an unknown command and the nearest one", () => {
    expect(readChatLine("", "/exti")).toEqual({
      kind: "fault",
      message: "unknown command /exti; did you mean /exit? /help lists them",
    })
  })

  it("passes on what the conversation expands, but for its own commands", () => {
    const others = new Set(["plan", "model", "git:log"])
    expect(readChatLine("", "/plan it", others)).toEqual({ kind: "prompt", text: "/plan it" })
    expect(readChatLine("", "/skill:lint it", others)).toEqual({ kind: "prompt", text: "/skill:lint it" })
    expect(readChatLine("", "//exit", others)).toEqual({ kind: "prompt", text: "//exit" })
    expect(readChatLine("", "/model m", others).kind).toBe("command")
    expect(readChatLine("", "/plna", others)).toMatchObject({ message: expect.stringContaining("did you mean /plan?") })
  })

  it("goes on after a backslash, and keeps pasted line breaks", () => {
    const first = readChatLine("", "one\\")
    expect(first).toEqual({ kind: "more", text: "one\n" })
    expect(readChatLine("one\n", "two␤three")).toEqual({ kind: "prompt", text: "one\ntwo\nthree" })
  })

  it("is understood whatever it holds", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (before, line) => {
        expect(["nothing", "more", "prompt", "steer", "command", "fault"]).toContain(readChatLine(before, line).kind)
      }),
    )
  })

  it("has every command in /help", () => {
    const help = chatHelp().join("\n")
    for (const { name } of slashCommands) expect(help).toContain(`/${name}`)
  })
})

describe("a line of stream-json input", () => {
  it("has a prompt and chooses the conversation", () => {
    expect(readPromptLine('{"prompt":"hi"}')).toEqual({ ok: true, prompt: "hi", conversation: "current" })
    expect(readPromptLine('{"prompt":"hi","conversation_id":12}')).toEqual({ ok: true, prompt: "hi", conversation: 12 })
    expect(readPromptLine('{"prompt":"hi","conversation_id":null}')).toEqual({
      ok: true,
      prompt: "hi",
      conversation: "new",
    })
  })

  it("says what is wrong with it", () => {
    const error = (line: string) => {
      const read = readPromptLine(line)
      return read.ok ? null : read.error
    }
    expect(error("{")).toBe('not JSON at column 2; expected {"prompt": "…"}')
    expect(error("[1]")).toBe("line: expected an object, got [1]")
    expect(error('{"promt":"hi"}')).toBe("prompt: expected a text that is not empty, got nothing")
    expect(error('{"prompt":" "}')).toBe('prompt: expected a text that is not empty, got " "')
    expect(error('{"prompt":"x","conversation_id":"7"}')).toBe(
      'conversation_id: expected a positive integer or null, got "7"',
    )
  })

  it("never throws, whatever it holds", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.json()),
        (line) => void expect(typeof readPromptLine(line).ok).toBe("boolean"),
      ),
    )
  })
})
