/**
 * What the agent says of itself. Pure.
 */
import type { InitializeResponse } from "@agentclientprotocol/sdk"
import type { HarnessListing } from "../../domain/harness-view.ts"

/** The principal that a token stands for, or null where it stands for nobody. */
export type Login = (token: string) => string | null

export const initialized = (
  protocolVersion: number,
  version: string,
  { default: fallback, harnesses }: HarnessListing,
  needsToken: boolean,
): InitializeResponse => ({
  protocolVersion,
  agentInfo: { name: "super-pi", title: "Super-Pi", version },
  agentCapabilities: {
    loadSession: true,
    promptCapabilities: { image: true, audio: false, embeddedContext: true },
    mcpCapabilities: { http: true, sse: true },
    sessionCapabilities: { list: {}, delete: {}, resume: {}, close: {} },
    ...(needsToken ? { auth: { logout: {} } } : {}),
  },
  authMethods: needsToken
    ? [{ id: "token", name: "Token", description: "A token of this node, in _meta.token of authenticate" }]
    : [],
  _meta: { superPi: { harnesses, defaultHarness: fallback, methods: ["_superpi/session/fork"] } },
})
