/**
 * `super-pi acp`: the agent of an editor, over stdin and stdout, until the editor ends.
 */
import { homedir } from "node:os"
import { Effect, Either } from "effect"
import { readGatewaySettings } from "../domain/gateway-settings.ts"
import { envValue } from "../models/settings.ts"
import { makeClientFiles } from "../protocols/acp/client-files.ts"
import { authenticatorOf } from "../protocols/auth/tokens.ts"
import type { Invocation } from "./arguments.ts"
import { nodeOptionsOf } from "./context.ts"
import { CommandFailure, ExitCode } from "./exit.ts"
import { openSessions } from "./node.ts"
import { pluginPlaces } from "./paths.ts"
import type { NodeOptions } from "./ports.ts"
import { protocolServiceOf } from "./protocol-service.ts"
import { runCommand } from "./runtime.ts"
import { withDefaults } from "./serve-options.ts"

/** Who the editor acts for: `local`; with tokens, whoever SUPER_PI_ACP_TOKEN is, or nobody before it authenticates. */
const identity = ({ env, settings }: NodeOptions) => {
  const auth = Either.getOrThrowWith(
    Either.flatMap(readGatewaySettings(settings.gateway), (gateway) =>
      authenticatorOf(gateway, env.SUPER_PI_GATEWAY_TOKEN),
    ),
    (fault) => new CommandFailure(`settings.json: ${fault}; the agent does not start until it is repaired`),
  )
  if (!auth.required) return {}
  const token = envValue(env, "SUPER_PI_ACP_TOKEN")
  if (token === undefined) return { login: auth.principalOf }
  const principal = auth.principalOf(token)
  if (principal !== null) return { principal }
  throw new CommandFailure("SUPER_PI_ACP_TOKEN: expected a token of this node, got another one")
}

export const main = async (invocation: Invocation): Promise<number> => {
  const base = withDefaults(nodeOptionsOf(invocation), invocation)
  const clientFiles = makeClientFiles(base.settings.acp?.fsDelegation ?? "unsaved_only")
  const options = { ...base, clientFiles }
  const { cwd, env, settings } = options
  const who = identity(options)
  return runCommand(
    () =>
      Effect.gen(function* () {
        const [{ serveAcp }, { makeCommands }] = yield* Effect.promise(() =>
          Promise.all([import("../protocols/acp/serve.ts"), import("./acp-commands.ts")]),
        )
        const sessions = yield* openSessions(options)
        const service = yield* protocolServiceOf(sessions, options, "person")
        const places = pluginPlaces(
          { cwd, env, home: homedir(), platform: process.platform },
          {},
          settings.discoveryRoots,
        )
        const commands = makeCommands(places, yield* sessions.harnesses)
        yield* serveAcp(service, {
          clientFiles,
          ...who,
          cwd,
          commands,
          ...(options.mode === undefined ? {} : { mode: options.mode }),
        })
        return ExitCode.ok
      }),
    ExitCode.ok,
  )
}
