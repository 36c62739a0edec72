/**
 * The `Models` service: picks the provider of a name and hands requests to it. The first provider that handles a name serves it; a
 * name without a provider, or a provider without credentials, is an error and never another model.
 */
import { Chunk, Effect, Stream } from "effect"
import { byLikeness } from "../domain/nearest.ts"
import {
  ModelNotFound,
  type ModelProvider,
  type ModelRequest,
  type ModelsService,
  type PartSink,
  ProviderNotConfigured,
} from "./model.ts"
import { builtinProviders } from "./providers/builtin.ts"
import type { Script } from "./providers/script-file.ts"
import { type Env, envValue, type ModelSettings } from "./settings.ts"

/** What `Models.layer` is made from; everything else has a default. */
export interface ModelsOptions {
  /** Environment variables. */
  readonly env: Env
  /** The decoded `models` section of the settings file. */
  readonly settings?: ModelSettings
  /** The `--model` flag; comes before every other default. */
  readonly model?: string | undefined
  /** Script of the `script/*` models; comes before `SUPER_PI_SCRIPT`. */
  readonly script?: Script
  /** Asked before the built-in providers, in order. */
  readonly providers?: ReadonlyArray<ModelProvider>
}

/** The service over a list of providers, in order of precedence. */
export const modelsOver = (
  providers: ReadonlyArray<ModelProvider>,
  /** Names chosen by flag, environment and settings, first one wins. */
  chosen: ReadonlyArray<string | undefined>,
): ModelsService => {
  const listed = providers.filter((provider) => provider.onlyByName !== true)
  const configured = Effect.filter(listed, (provider) => provider.configured)
  const explicit = chosen.find((name) => name !== undefined)

  const defaultModel: ModelsService["defaultModel"] =
    explicit !== undefined
      ? Effect.succeed(explicit)
      : Effect.flatMap(configured, ([first]) =>
          first !== undefined
            ? Effect.succeed(first.info(first.defaultModel).id)
            : Effect.fail(
                new ProviderNotConfigured({
                  provider: "",
                  model: "",
                  variables: [...new Set(listed.flatMap((provider) => provider.variables))],
                }),
              ),
        )

  /** A service that cannot list its models right now lists none; asking one of them still says why. */
  const modelsOf = (from: ReadonlyArray<ModelProvider>) =>
    Effect.map(
      Effect.forEach(from, (provider) => Effect.orElseSucceed(provider.models, () => [])),
      (lists) => lists.flat(),
    )

  const list: ModelsService["list"] = Effect.gen(function* () {
    const byDefault = yield* Effect.orElseSucceed(defaultModel, () => null)
    const all = yield* Effect.flatMap(configured, modelsOf)
    return all.map((info) => ({ ...info, isDefault: info.id === byDefault || info.name === byDefault }))
  })

  const notFound = (model: string): Effect.Effect<never, ModelNotFound> =>
    Effect.gen(function* () {
      const usable = yield* configured
      const all = yield* modelsOf(usable.length > 0 ? usable : listed)
      const known = byLikeness(
        model,
        all.map(({ id }) => id),
        (id) => [id, id.slice(id.indexOf("/") + 1)],
      )
      return yield* new ModelNotFound({ model, known: known.slice(0, 20) })
    })

  const providerOf = (model: string): Effect.Effect<ModelProvider, ModelNotFound | ProviderNotConfigured> => {
    const provider = providers.find((candidate) => candidate.handles(model))
    if (provider === undefined) return notFound(model)
    return Effect.flatMap(provider.configured, (ready) =>
      ready
        ? Effect.succeed(provider)
        : new ProviderNotConfigured({ provider: provider.id, model, variables: provider.variables }),
    )
  }

  return {
    providers,
    defaultModel,
    list,
    resolve: (model) => Effect.map(providerOf(model), (provider) => provider.info(model)),
    stream: (request: ModelRequest) =>
      Stream.unwrap(Effect.map(providerOf(request.model), (provider) => provider.stream(request))),
    respond: (request: ModelRequest, sink: PartSink) =>
      Effect.flatMap(
        providerOf(request.model),
        (provider) =>
          provider.respond?.(request, sink) ??
          Stream.runForEachChunk(provider.stream(request), (parts) => sink(Chunk.toReadonlyArray(parts))),
      ),
  }
}

/** The service with the built-in providers. */
export const makeModels = (options: ModelsOptions): ModelsService => {
  const settings = options.settings ?? {}
  return modelsOver(
    [...(options.providers ?? []), ...builtinProviders(options.env, settings, options.script)],
    [options.model, envValue(options.env, "SUPER_PI_DEFAULT_MODEL"), settings.defaultModel],
  )
}
