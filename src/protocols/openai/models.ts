/**
 * What `model` may be: a harness (a virtual model, with its older ids), or a model that a provider serves.
 */
import { Effect } from "effect"
import type { AgentDocument } from "../../domain/document.ts"
import type { Failure } from "../../domain/failure.ts"
import type { HarnessCapabilities, HarnessListing } from "../../domain/harness-view.ts"
import type { ListedModel, ProtocolService } from "../service.ts"

export interface ModelObject {
  readonly id: string
  readonly object: "model"
  /** Seconds since the epoch: no model says when it was made, so 0. */
  readonly created: 0
  readonly owned_by: string
  readonly name: string
  readonly context_window?: number
  readonly capabilities: HarnessCapabilities | { readonly images: boolean; readonly thinking: boolean }
}

const harnessObject = (capabilities: HarnessCapabilities): ModelObject => ({
  id: capabilities.id,
  object: "model",
  created: 0,
  owned_by: "super-pi",
  name: capabilities.name,
  capabilities,
})

const providerObject = ({ contextWindow, id, images, name, provider, thinking }: ListedModel): ModelObject => ({
  id,
  object: "model",
  created: 0,
  owned_by: provider,
  name,
  ...(contextWindow === null ? {} : { context_window: contextWindow }),
  capabilities: { images, thinking },
})

/** Harnesses first. */
export const listModels = ({ models, sessions }: ProtocolService): Effect.Effect<ReadonlyArray<ModelObject>, Failure> =>
  Effect.zipWith(sessions.harnesses, models, ({ harnesses }, served) => [
    ...harnesses.map(harnessObject),
    ...served.map(providerObject),
  ])

/** What a name stands for. Whether a provider serves one that is no harness is found out by whoever uses it. */
export const chosenBy = (
  model: string,
  { aliases = {}, harnesses }: HarnessListing,
): Pick<AgentDocument, "harness" | "model"> => {
  const known = (id: string | undefined) => harnesses.some((one) => one.id === id)
  if (known(model)) return { harness: model }
  const meant = Object.hasOwn(aliases, model) ? aliases[model] : undefined
  return meant !== undefined && known(meant) ? { harness: meant } : { model }
}
