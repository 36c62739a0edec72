/**
 * What a client knows of files better than the disk: the text in an editor's buffer that was not saved yet. Tools that read a file for a
 * conversation ask here first; nobody offers anything by default, which costs nothing.
 */
import { Context, Effect } from "effect"
import type { ConversationId } from "../domain/ids.ts"
import type { ToolContext } from "./tool.ts"

export interface ClientFilesService {
  /** The text that counts instead of the file's own at this canonical path, for this conversation; null: the file's own. */
  readonly textOf: (conversation: ConversationId, canonical: string) => Effect.Effect<string | null>
}

const noClient: ClientFilesService = { textOf: () => Effect.succeed(null) }

export class ClientFiles extends Context.Reference<ClientFiles>()("super-pi/ClientFiles", {
  defaultValue: () => noClient,
}) {}

/** {@link ClientFilesService.textOf} for a running call. */
export const clientText = ({ conversation }: ToolContext, canonical: string): Effect.Effect<string | null> =>
  Effect.flatMap(ClientFiles, ({ textOf }) => textOf(conversation, canonical))
