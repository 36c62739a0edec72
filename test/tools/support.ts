/**
 * What the tool tests share: a temporary workspace and a call of a built-in tool as the node makes it.
 */
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Effect, type Scope } from "effect"
import { ConversationId } from "../../src/domain/ids.ts"
import type { JsonObject } from "../../src/domain/json.ts"
import { textOf } from "../../src/domain/message.ts"
import { effectKeyOf } from "../../src/tools/effect-key.ts"
import type { InvalidArguments, ToolContext, ToolFailure, ToolResult, Workspace } from "../../src/tools/tool.ts"
import { Tools } from "../../src/tools/tools.ts"

/** A directory that is removed with the scope. */
export const temporaryDirectory: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(async () => realpath(await mkdtemp(join(tmpdir(), "super-pi-tools-")))),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true })),
)

/** Writes files by relative path; a path with a trailing slash is a directory. */
export const writeFiles = (root: string, files: Readonly<Record<string, string | Uint8Array>>): Effect.Effect<void> =>
  Effect.promise(async () => {
    for (const [path, content] of Object.entries(files)) {
      const full = join(root, path)
      await mkdir(path.endsWith("/") ? full : dirname(full), { recursive: true })
      if (!path.endsWith("/")) await writeFile(full, content)
    }
  })

/** A confined workspace with these files. */
export const workspaceWith = (
  files: Readonly<Record<string, string | Uint8Array>> = {},
): Effect.Effect<Workspace, never, Scope.Scope> =>
  Effect.tap(
    Effect.map(temporaryDirectory, (root): Workspace => ({ root, confined: true })),
    ({ root }) => writeFiles(root, files),
  )

export const contextOf = (workspace: Workspace, emit: ToolContext["emit"] = () => Effect.void): ToolContext => ({
  callId: "call-1",
  conversation: ConversationId.make(1),
  idempotencyKey: "key-1",
  effectKey: (name) => effectKeyOf("key-1", name),
  workspace,
  emit,
})

/** Decodes and runs, as a node does. */
export const call = (
  name: string,
  args: JsonObject,
  workspace: Workspace,
  emit?: ToolContext["emit"],
): Effect.Effect<ToolResult, ToolFailure | InvalidArguments, Tools> =>
  Effect.gen(function* () {
    const tool = (yield* Tools).get(name)
    if (tool === undefined) return yield* Effect.dieMessage(`no tool ${name}`)
    return yield* tool.execute(yield* tool.decode(args), contextOf(workspace, emit))
  })

/** The text for the model. */
export const outputOf = (result: ToolResult): string => textOf(result.output)

/** {@link call}, text only. */
export const textCall = (name: string, args: JsonObject, workspace: Workspace) =>
  Effect.map(call(name, args, workspace), outputOf)

/** The message of a call that must fail. */
export const failureOf = (
  name: string,
  args: JsonObject,
  workspace: Workspace,
): Effect.Effect<string, unknown, Tools> =>
  Effect.flip(call(name, args, workspace)).pipe(
    Effect.map((error) => (error._tag === "ToolFailure" ? error.message : error.detail)),
  )
