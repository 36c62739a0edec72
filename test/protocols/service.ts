/** What protocol adapters are given in tests, around sessions that are fake or real. */
import { Effect } from "effect"
import type { SessionsService } from "../../src/actors/sessions.ts"
import type { ListedModel, ProtocolService } from "../../src/protocols/service.ts"

export const echoModel: ListedModel = {
  id: "mock/echo",
  provider: "mock",
  name: "echo",
  contextWindow: null,
  images: true,
  thinking: false,
  isDefault: true,
}

export const protocolService = (sessions: SessionsService, over: Partial<ProtocolService> = {}): ProtocolService => ({
  sessions,
  models: Effect.succeed([echoModel]),
  version: "1.2.3",
  remote: { ownMode: "auto" },
  ...over,
})
