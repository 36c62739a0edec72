/**
 * The model where plugins have a say: `beforeProviderRequest` has the last look at a request, `afterResponse` at a response before it is
 * committed. What streamed before stays as it was shown.
 */
import { Effect } from "effect"
import type { HookRunner } from "../../harness/context.ts"
import { afterResponse, beforeProviderRequest } from "../../harness/pipeline.ts"
import type { ModelPart, ModelsService } from "../../models/model.ts"

export const hookedModels = (models: ModelsService, runner: HookRunner): Pick<ModelsService, "respond"> => {
  const { hooks } = runner.pipeline
  return {
    respond: (request, sink) => {
      const asked = hooks.has("beforeProviderRequest")
        ? beforeProviderRequest(runner, request)
        : Effect.succeed(request)
      return Effect.flatMap(asked, (final) => {
        if (!hooks.has("afterResponse")) return models.respond(final, sink)
        return models.respond(final, (parts) => {
          const finish = parts.find((part) => part.type === "finish")
          if (finish?.type !== "finish") return sink(parts)
          const { content, usage } = finish
          return Effect.flatMap(afterResponse(runner, { content, usage, model: final.model }), (changed) =>
            sink(
              changed === content
                ? parts
                : parts.map((part): ModelPart => (part === finish ? { ...finish, content: changed } : part)),
            ),
          )
        })
      })
    },
  }
}
