/**
 * The texts of an editor's buffers, offered to the tools of this process while a session is open: what is being typed counts before it is
 * saved. An editor is asked only where it can be, for files inside of the session's directory, and for so long; else the disk counts.
 */
import { readFile, stat } from "node:fs/promises"
import { isAbsolute, relative } from "node:path"
import type { ClientCapabilities } from "@agentclientprotocol/sdk"
import { Effect, type Scope } from "effect"
import type { ConversationId } from "../../domain/ids.ts"
import type { AcpSession } from "./session.ts"
import { editorPath } from "./tool-call.ts"

/** `unsaved_only`: the editor's text counts where it differs from the file; `always`: it counts; `never`: the editor is not asked. */
export type FsDelegation = "unsaved_only" | "never" | "always"

/** How long an editor may take, in ms. */
const askMs = 2_000
/** Bytes of a file, and characters of a buffer, that are looked at: 8 MiB. */
const maxSize = 8 * 1024 * 1024

export interface ClientFiles {
  /** Offers what the session's editor has, for as long as the scope lives. */
  readonly attach: (session: AcpSession, capabilities: ClientCapabilities) => Effect.Effect<void, never, Scope.Scope>
  /** The text that counts instead of the file's own; null: the file's own. */
  readonly textOf: (conversation: ConversationId, canonical: string) => Effect.Effect<string | null>
}

/** Line ends and a byte order mark do not make a difference. */
const plain = (text: string): string => text.replace(/^\uFEFF/, "").replace(/\r\n/g, "\n")

const isInside = (root: string, path: string): boolean => {
  const below = relative(root, path)
  return below !== "" && !below.startsWith("..") && !isAbsolute(below)
}

/** Whether the file says something else than the buffer. One that is no UTF-8 text has no buffer that could be compared. */
const differs = async (canonical: string, buffer: string): Promise<boolean> => {
  const { size } = await stat(canonical)
  if (size > maxSize) return false
  const saved = new TextDecoder("utf-8", { fatal: true }).decode(await readFile(canonical))
  return plain(saved) !== plain(buffer)
}

export const makeClientFiles = (delegation: FsDelegation): ClientFiles => {
  const readers = new Map<ConversationId, AcpSession>()

  const asked = ({ place, readFile: ask }: AcpSession, canonical: string): Effect.Effect<string | null> =>
    Effect.tryPromise(async (signal) => {
      const buffer = await ask(editorPath(canonical, place.directory), signal)
      if (buffer.length > maxSize) return null
      return delegation === "always" || (await differs(canonical, buffer)) ? buffer : null
    }).pipe(
      Effect.timeout(askMs),
      Effect.catchAll((error) => Effect.as(Effect.logDebug("the editor gave no text", error), null)),
    )

  return {
    attach: (session, capabilities) => {
      if (delegation === "never" || capabilities.fs?.readTextFile !== true) return Effect.void
      const { conversationId } = session.place
      return Effect.acquireRelease(
        Effect.sync(() => void readers.set(conversationId, session)),
        () => Effect.sync(() => void (readers.get(conversationId) === session && readers.delete(conversationId))),
      )
    },
    textOf: (conversation, canonical) => {
      const session = readers.get(conversation)
      if (session === undefined || !isInside(session.place.directory.canonical, canonical)) return Effect.succeed(null)
      return asked(session, canonical)
    },
  }
}
