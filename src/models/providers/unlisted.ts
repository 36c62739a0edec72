/**
 * Models that only who knows them asks, by their full name: the test models `mock/*` and `script/*`. They are never listed and never become a
 * default.
 */
import type { ModelInfo, ModelProvider } from "../model.ts"

/** What such a provider says about its names; every one that begins with `id/` is a model of it. */
export const unlisted = (
  id: string,
  { thinking }: { readonly thinking: boolean },
): Pick<ModelProvider, "id" | "onlyByName" | "handles" | "wireName" | "info"> => {
  const prefix = `${id}/`
  const nameOf = (model: string): string => (model.startsWith(prefix) ? model.slice(prefix.length) : model)
  const info = (model: string): ModelInfo => ({
    id: prefix + nameOf(model),
    provider: id,
    name: nameOf(model),
    contextWindow: 200_000,
    images: true,
    thinking,
    isDefault: false,
  })
  return {
    id,
    onlyByName: true,
    handles: (model) => model.startsWith(prefix) && model.length > prefix.length,
    wireName: nameOf,
    info,
  }
}
