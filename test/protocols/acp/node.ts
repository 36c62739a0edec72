/**
 * A real node for the tests of the protocol: a scripted model, the built-in tools, a directory of its own.
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer, type Scope } from "effect"
import { Sessions, type SessionsService } from "../../../src/actors/sessions.ts"
import type { ScriptStep } from "../../../src/models/providers/script-file.ts"
import type { ListedModel, ProtocolService } from "../../../src/protocols/service.ts"
import { SuperPi } from "../../../src/super-pi.ts"
import { ClientFiles, type ClientFilesService } from "../../../src/tools/client-files.ts"
import { protocolService } from "../service.ts"

/** What the model answers to an input that fits. */
export interface Rule {
  readonly match: string
  readonly steps: ReadonlyArray<ScriptStep>
}

export const scriptModel: ListedModel = {
  id: "script/test",
  provider: "script",
  name: "Script",
  contextWindow: 10_000,
  images: true,
  thinking: true,
  isDefault: true,
}

export interface Node {
  readonly sessions: SessionsService
  readonly service: ProtocolService
  /** Canonical. */
  readonly workspace: string
}

/** Runs `use` on a node in memory, or over the database at `path`. */
export const onNode = <A>(
  rules: ReadonlyArray<Rule>,
  use: (node: Node) => Effect.Effect<A, unknown, Scope.Scope>,
  { files, path }: { readonly path?: string; readonly files?: ClientFilesService } = {},
): Promise<A> => {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "super-pi-acp-")))
  const workspace = join(directory, "work")
  mkdirSync(workspace)
  const paths = { configDir: join(directory, "config"), dataDir: join(directory, "data") }
  return Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const service = protocolService(sessions, { models: Effect.succeed([scriptModel]) })
        return yield* use({ sessions, service, workspace })
      }),
    ).pipe(
      Effect.provide(
        SuperPi.layer({
          storage: path === undefined ? "memory" : { path, serve: false },
          // The script is decoded by the provider.
          models: { model: "script/test", script: { rules } as never },
          harness: "super-pi-code",
          paths,
        }).pipe(Layer.provide(files === undefined ? Layer.empty : Layer.succeed(ClientFiles, files))),
      ),
      Effect.ensuring(Effect.sync(() => rmSync(directory, { recursive: true, force: true }))),
    ),
  )
}

export const promise = <A>(run: () => Promise<A>): Effect.Effect<A, unknown> =>
  Effect.tryPromise({ try: run, catch: (error) => error })
