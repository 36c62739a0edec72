/**
 * A node whose MCP server a test talks to: over HTTP in a gateway, or over a pair of streams. In a directory of its own.
 */
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Exit, Layer, Scope } from "effect"
import { Sessions, type SessionsService } from "../../../src/actors/sessions.ts"
import { mcpServiceOf } from "../../../src/cli/mcp-service.ts"
import type { Harness } from "../../../src/harness/harness.ts"
import type { Script } from "../../../src/models/providers/script-file.ts"
import { serveGateway } from "../../../src/protocols/gateway.ts"
import type { McpService } from "../../../src/protocols/mcp/server/connection.ts"
import { type McpHttpOptions, mcpRoutes } from "../../../src/protocols/mcp/server/http.ts"
import type { ProtocolService } from "../../../src/protocols/service.ts"
import { SuperPi } from "../../../src/super-pi.ts"
import { protocolService } from "../service.ts"

export interface McpNode {
  readonly url: string
  /** The workspace. The person's settings would be in a directory of the same name with `.config` behind it. */
  readonly directory: string
  readonly sessions: SessionsService
  readonly served: McpService
  readonly close: () => Promise<void>
}

export interface McpNodeOptions extends Partial<Omit<McpHttpOptions, keyof McpService>> {
  readonly rules?: Script["rules"]
  readonly tokens?: string
  readonly service?: Partial<ProtocolService>
  readonly harness?: string
  readonly extraHarnesses?: ReadonlyArray<Harness>
}

export const startMcpNode = async (options: McpNodeOptions = {}): Promise<McpNode> => {
  const {
    extraHarnesses = [],
    harness,
    rules = [{ match: ".", steps: [{ text: "an answer" }] }],
    service,
    tokens,
    ...http
  } = options
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "super-pi-mcp-")))
  const scope = Effect.runSync(Scope.make())
  const layer = SuperPi.layer({
    storage: "memory",
    harness: "super-pi-code",
    extraHarnesses,
    models: { env: {}, script: { rules } },
    defaults: { model: "script/x" },
  })
  const started = Effect.gen(function* () {
    const context = yield* Layer.buildWithScope(layer, scope)
    const sessions = yield* Effect.provide(Sessions, context)
    const served = yield* mcpServiceOf(protocolService(sessions, service), {
      settings: harness === undefined ? undefined : { harness },
      cwd: directory,
      places: { configDir: `${directory}.config`, dataDir: `${directory}.data`, discoveryRoots: [], env: {} },
    })
    const group = yield* mcpRoutes({ ...served, ...http })
    const gateway = yield* serveGateway(served.service, {
      port: 0,
      groups: [group],
      ...(tokens === undefined ? {} : { tokens }),
    })
    return { url: `${gateway.url}/mcp`, sessions, served }
  })
  const running = await Effect.runPromise(Scope.extend(started, scope))
  return {
    ...running,
    directory,
    close: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      for (const end of ["", ".config", ".data"]) rmSync(`${directory}${end}`, { recursive: true, force: true })
    },
  }
}
