/**
 * Any provider package of the AI SDK (provider specification v3) as a model provider. The package is loaded at the first request;
 * its own retries are not used (the conversation's machine retries); an interruption closes the connection at once.
 */
import type { LanguageModelV3, LanguageModelV3CallOptions, SharedV3ProviderOptions } from "@ai-sdk/provider"
import { Chunk, Effect, Option, Stream } from "effect"
import { type Repaired, repair, type ValidityRules, validityRules } from "../../domain/validity.ts"
import { AuthCommandFailed } from "../auth-command.ts"
import type { ModelError, ModelInfo, ModelPart, ModelProvider, ModelRequest } from "../model.ts"
import { ProviderNotConfigured } from "../model.ts"
import { callIds } from "../providers/script-view.ts"
import { modelError, truncated } from "./failure.ts"
import { type Prompt, type PromptTraits, toPrompt } from "./prompt.ts"
import { redactor } from "./redact.ts"
import { ResponseFold } from "./response.ts"
import { type TokenSource, transport } from "./transport.ts"

/** What a package is set up with; its factory takes an object with at least these fields. */
export interface AiSdkSetup {
  readonly apiKey: string
  readonly fetch: typeof globalThis.fetch
}

/** What a request adds to the plain call. */
export interface AiSdkCall {
  readonly providerOptions?: SharedV3ProviderOptions
  readonly maxOutputTokens?: number
  readonly headers?: Record<string, string>
  /** Changes the prompt, for example to place cache breakpoints. */
  readonly prompt?: (prompt: Prompt) => Prompt
}

export interface AiSdkProviderOptions {
  /** Prefix of its models: `id/name`. */
  readonly id: string
  /** Loads the package and makes a model; called once per wire name. */
  readonly create: (setup: AiSdkSetup, name: string) => Promise<LanguageModelV3>
  /** Names served without the prefix; absent means that every name needs it. */
  readonly names?: (name: string) => boolean
  /** Models to list; the first is the default. */
  readonly models: ReadonlyArray<string>
  /** The key, or undefined where it is not configured. */
  readonly apiKey?: string | undefined
  /** Tokens per request instead of a key. */
  readonly tokens?: TokenSource | undefined
  /** Environment names that configure it. */
  readonly variables: ReadonlyArray<string>
  /** What is known of a model; defaults are text only, unknown window. */
  readonly info?: (name: string) => Partial<Pick<ModelInfo, "contextWindow" | "images" | "thinking">>
  readonly traits?: (name: string) => Partial<Omit<PromptTraits, "model" | "images" | "metadata">>
  /** What its history must look like; default: what every service accepts. */
  readonly rules?: (name: string) => ValidityRules
  /** Provider options of a request. */
  readonly call?: (request: ModelRequest & { readonly name: string }, prompt: Prompt) => AiSdkCall
  /** Milliseconds without a byte after which a request fails as transient; default 120,000. */
  readonly idleMs?: number | undefined
}

/** What most services take. */
const plainTraits: Omit<PromptTraits, "model" | "images"> = {
  imagesInResults: false,
  errorFlag: false,
  systemChanges: "note",
  replays: (part) => part.meta !== undefined,
  metadata: true,
  callIdLength: 40,
  lenientTools: false,
}

/** Whether a package refused the request itself, before anything was sent. */
const isRefusedByPackage = (error: unknown): boolean =>
  error instanceof TypeError
    ? error.cause === undefined
    : error instanceof Error &&
      /^AI_(InvalidArgument|TypeValidation|UnsupportedFunctionality|InvalidPrompt)/.test(error.name)

/** Ends a fiber's request: the connection closes as soon as the scope does. */
const abortable = Effect.acquireRelease(
  Effect.sync(() => new AbortController()),
  (controller) => Effect.sync(() => controller.abort()),
)

/**
 * Makes a provider of an AI SDK package:
 *
 * ```ts
 * const mistral = aiSdkProvider({
 *   id: "mistral",
 *   variables: ["MISTRAL_API_KEY"],
 *   apiKey: env.MISTRAL_API_KEY,
 *   models: ["mistral-large-latest"],
 *   create: async (setup, name) => (await import("@ai-sdk/mistral")).createMistral(setup).languageModel(name),
 * })
 * Models.layer({ env, providers: [mistral] })
 * ```
 */
export const aiSdkProvider = (options: AiSdkProviderOptions): ModelProvider => {
  const prefix = `${options.id}/`
  const wireName = (model: string) => (model.startsWith(prefix) ? model.slice(prefix.length) : model)
  const { tokens } = options
  const configured = options.apiKey !== undefined || tokens !== undefined
  const loaded = new Map<string, Promise<LanguageModelV3>>()
  let lastToken: string | undefined
  const remembered: TokenSource | undefined =
    tokens === undefined
      ? undefined
      : {
          refused: (token) => tokens.refused(token),
          token: async () => {
            lastToken = await tokens.token()
            return lastToken
          },
        }
  const redact = (text: string) => redactor([options.apiKey, lastToken])(text)
  const idleMs = options.idleMs ?? 120_000

  const info = (model: string): ModelInfo => {
    const name = wireName(model)
    return {
      contextWindow: null,
      images: false,
      thinking: false,
      ...options.info?.(name),
      id: prefix + name,
      provider: options.id,
      name,
      isDefault: false,
    }
  }

  const load = (name: string): Promise<LanguageModelV3> => {
    const known = loaded.get(name)
    if (known !== undefined) return known
    const fetch = transport({ idleMs, ...(remembered === undefined ? {} : { tokens: remembered }) })
    // A package insists on a key, also where the transport sets the header.
    const made = options.create({ apiKey: options.apiKey ?? "token-per-request", fetch }, name)
    loaded.set(name, made)
    made.catch(() => loaded.delete(name))
    return made
  }

  /** What is sent: the checked history in the package's shape, with or without the metadata of the model's own parts. */
  const callOptions = (
    request: ModelRequest,
    model: ModelInfo,
    checked: Repaired,
    metadata: boolean,
  ): LanguageModelV3CallOptions => {
    const traits = { ...plainTraits, ...options.traits?.(model.name), model: model.id, images: model.images, metadata }
    const plain = toPrompt(checked.messages, traits)
    const call = options.call?.({ ...request, name: model.name }, plain) ?? {}
    const prompt = call.prompt?.(plain) ?? plain
    const maxOutputTokens = request.maxOutputTokens ?? call.maxOutputTokens
    const { traceparent } = request
    const headers = traceparent === undefined ? call.headers : { traceparent, ...call.headers }
    return {
      prompt: [...prompt.messages],
      ...(prompt.tools.length === 0 ? {} : { tools: [...prompt.tools] }),
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
      ...(call.providerOptions === undefined ? {} : { providerOptions: call.providerOptions }),
      ...(headers === undefined ? {} : { headers }),
    }
  }

  const failed =
    (model: ModelInfo) =>
    (error: unknown): ModelError =>
      error instanceof AuthCommandFailed
        ? new ProviderNotConfigured({
            provider: options.id,
            model: model.id,
            variables: options.variables,
            detail: error.message,
          })
        : modelError(model.id, error, redact, Date.now())

  const open = (request: ModelRequest) =>
    Effect.gen(function* () {
      const model = info(request.model)
      const controller = yield* abortable
      const attempt = <A>(run: () => Promise<A>) => Effect.tryPromise({ try: run, catch: failed(model) })
      const language = yield* attempt(() => load(model.name))
      const checked = repair(request.messages, options.rules?.(model.name) ?? validityRules.strict)
      if (checked.repairs.length > 0) yield* Effect.logDebug("history repaired", ...checked.repairs)
      const send = async (metadata: boolean) =>
        language.doStream({ ...callOptions(request, model, checked, metadata), abortSignal: controller.signal })
      // Stored metadata that a package refuses to read must not end the conversation: the same request goes without it.
      const { stream } = yield* attempt(() =>
        send(true).catch((error: unknown) => (isRefusedByPackage(error) ? send(false) : Promise.reject(error))),
      )
      const reader = stream.getReader()
      yield* Effect.addFinalizer(() => Effect.sync(() => void reader.cancel().catch(() => {})))
      const fold = new ResponseFold(callIds(checked.messages))
      let finished = false

      const pull: Effect.Effect<Chunk.Chunk<ModelPart>, Option.Option<ModelError>> = Effect.suspend(() =>
        finished
          ? Effect.fail(Option.none())
          : attempt(() => reader.read()).pipe(
              Effect.mapError(Option.some),
              Effect.flatMap((next) => {
                if (next.done) return Effect.fail(Option.some<ModelError>(truncated(model.id)))
                const folded = fold.take(next.value)
                if (folded.type === "error") return Effect.fail(Option.some(failed(model)(folded.error)))
                if (folded.type === "truncated") return Effect.fail(Option.some<ModelError>(truncated(model.id)))
                finished = folded.parts.at(-1)?.type === "finish"
                return folded.parts.length === 0 ? pull : Effect.succeed(Chunk.fromIterable(folded.parts))
              }),
            ),
      )
      return Stream.repeatEffectChunkOption(pull)
    })

  return {
    id: options.id,
    handles: (model) => (model.startsWith(prefix) ? model.length > prefix.length : (options.names?.(model) ?? false)),
    wireName,
    variables: options.variables,
    configured: Effect.succeed(configured),
    defaultModel: options.models[0] ?? "",
    models: Effect.succeed(options.models.map(info)),
    info,
    stream: (request) => Stream.unwrapScoped(open(request)),
  }
}
