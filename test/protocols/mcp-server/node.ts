/**
 * A node whose MCP server a test talks to: over HTTP in a gateway, or over a pair of streams. In a directory of its own.
 */
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Exit, Layer, Scope } from "effect"
import { Sessions, type SessionsService } from "../../../src/actors/sessions.ts"
import { harnessAliases } from "../../../src/harness/builtin/index.ts"
import type { Script } from "../../../src/models/providers/script-file.ts"
import { serveGateway } from "../../../src/protocols/gateway.ts"
import type { McpService } from "../../../src/protocols/mcp/server/connection.ts"
import { type McpHttpOptions, mcpRoutes } from "../../../src/protocols/mcp/server/http.ts"
import type { ProtocolService } from "../../../src/protocols/service.ts"
import { SuperPi } from "../../../src/super-pi.ts"
import { BuiltinTools } from "../../../src/tools/builtin-tools.ts"
import { protocolService } from "../service.ts"

export interface McpNode {
  readonly url: string
  /** The workspace. */
  readonly directory: string
  readonly sessions: SessionsService
  readonly served: McpService
  readonly close: () => Promise<void>
}

const direct = ["read", "write", "edit", "bash", "grep", "find", "ls"]

const tools = BuiltinTools.list
  .filter(({ spec }) => direct.includes(spec.name))
  .map(({ effects, replay, spec }) => ({ spec, effects, replay }))

export interface McpNodeOptions extends Partial<Omit<McpHttpOptions, keyof McpService>> {
  readonly rules?: Script["rules"]
  readonly tokens?: string
  readonly service?: Partial<ProtocolService>
  readonly harness?: string
}

export const startMcpNode = async (options: McpNodeOptions = {}): Promise<McpNode> => {
  const { harness = null, rules = [{ match: ".", steps: [{ text: "an answer" }] }], service, tokens, ...http } = options
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "super-pi-mcp-")))
  const scope = Effect.runSync(Scope.make())
  const layer = SuperPi.layer({
    storage: "memory",
    harness: "super-pi-code",
    models: { env: {}, script: { rules } },
    defaults: { model: "script/x" },
  })
  const started = Effect.gen(function* () {
    const context = yield* Layer.buildWithScope(layer, scope)
    const sessions = yield* Effect.provide(Sessions, context)
    const served: McpService = {
      service: protocolService(sessions, service),
      tools,
      harness,
      cwd: directory,
      aliases: harnessAliases,
      rules: null,
    }
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
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
