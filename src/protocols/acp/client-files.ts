/**
 * The texts of an editor's buffers, offered to the tools of this process while a session is open: what is being typed counts before it is
 * saved. Only for editors that can be asked, and only inside of the session's directory.
 */
import type { ClientCapabilities } from "@agentclientprotocol/sdk"
import type { Effect, Scope } from "effect"
import type { AcpSession } from "./session.ts"

export interface ClientFiles {
  readonly attach: (session: AcpSession, capabilities: ClientCapabilities) => Effect.Effect<void, never, Scope.Scope>
}
