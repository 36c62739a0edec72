/**
 * What an editor has not saved: tools see it while the session is open, and the disk otherwise.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { PromptRequest } from "@agentclientprotocol/sdk"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { type FsDelegation, makeClientFiles } from "../../../src/protocols/acp/client-files.ts"
import { editorOf, type Handlers } from "./editor.ts"
import { onNode, promise } from "./node.ts"

const rules = [
  { match: "^read", steps: [{ tools: [{ id: "r1", name: "read", args: { path: "a.txt" } }] }, { text: "read" }] },
  { match: "^outside", steps: [{ tools: [{ id: "r1", name: "read", args: { path: "../b.txt" } }] }, { text: "read" }] },
  {
    match: "^edit",
    steps: [
      {
        tools: [{ id: "e1", name: "edit", args: { path: "a.txt", edits: [{ oldText: "typed", newText: "edited" }] } }],
      },
      { text: "edited" },
    ],
  },
]
const prompt = (sessionId: string, text: string): PromptRequest => ({ sessionId, prompt: [{ type: "text", text }] })

/** What the call gave, which files the editor was asked for, and what is on disk then. */
const trial = (
  delegation: FsDelegation,
  saved: string,
  handlers: Handlers,
  words: string,
): Promise<{
  readonly output: string
  readonly asked: ReadonlyArray<string>
  readonly disk: string
  readonly cwd: string
}> => {
  const files = makeClientFiles(delegation)
  return onNode(
    rules,
    ({ service, workspace }) =>
      Effect.gen(function* () {
        writeFileSync(join(workspace, "a.txt"), saved)
        writeFileSync(join(workspace, "..", "b.txt"), "outside\n")
        const asked: Array<string> = []
        const editor = yield* editorOf(
          service,
          {
            capabilities: { fs: { readTextFile: true } },
            ...handlers,
            readFile: async (request) => {
              asked.push(request.path)
              if (handlers.readFile === undefined) throw new Error("not open here")
              return handlers.readFile(request)
            },
          },
          { clientFiles: files },
        )
        const { sessionId } = yield* promise(() =>
          editor.agent.request("session/new", { cwd: workspace, mcpServers: [] }),
        )
        yield* promise(() => editor.agent.request("session/prompt", prompt(sessionId, words)))
        const done = editor.updates.map(({ update }) => update).findLast((one) => "toolCallId" in one)
        expect(editor.faults).toEqual([])
        return {
          output: JSON.stringify(done),
          asked,
          disk: readFileSync(join(workspace, "a.txt"), "utf8"),
          cwd: workspace,
        }
      }),
    { files },
  )
}

const typed = { readFile: async () => ({ content: "saved\ntyped\n" }) }

describe("reads", () => {
  it("see the buffer where it differs from the file", async () => {
    const { asked, cwd, output } = await trial("unsaved_only", "saved\n", typed, "read it")
    expect(asked).toEqual([join(cwd, "a.txt")])
    expect(output).toContain("typed")
    expect(output).toContain("not saved yet")
  })

  it("see the file where the buffer says the same but for its line ends", async () => {
    const { asked, output } = await trial("unsaved_only", "saved\r\ntyped\r\n", typed, "read it")
    expect(asked).toHaveLength(1)
    expect(output).toContain("Line ends are CRLF")
    expect(output).not.toContain("not saved yet")
  })

  it("see the file where the editor has no text, cannot read, or is not to be asked", async () => {
    const failing = await trial("unsaved_only", "saved\n", {}, "read it")
    expect(failing.asked).toHaveLength(1)
    expect(failing.output).toContain("saved")
    const unable = await trial("unsaved_only", "saved\n", { ...typed, capabilities: {} }, "read it")
    expect(unable.asked).toEqual([])
    const never = await trial("never", "saved\n", typed, "read it")
    expect(never.asked).toEqual([])
    expect(never.output).not.toContain("typed")
  })

  it("take the buffer without a look at the file where that is wanted", async () => {
    const { output } = await trial("always", "saved\r\ntyped\r\n", typed, "read it")
    expect(output).not.toContain("CRLF")
  })

  it("never ask for a file outside of the session's directory", async () => {
    const { asked } = await trial("always", "saved\n", typed, "outside")
    expect(asked).toEqual([])
  })
})

describe("edits", () => {
  it("begin from the buffer, and write what was typed with them to disk", async () => {
    const { disk } = await trial("unsaved_only", "saved\n", typed, "edit it")
    expect(disk).toBe("saved\nedited\n")
  })

  it("keep the line ends of the file", async () => {
    const { disk } = await trial("unsaved_only", "saved\r\n", typed, "edit it")
    expect(disk).toBe("saved\r\nedited\r\n")
  })
})
