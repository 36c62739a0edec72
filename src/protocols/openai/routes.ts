/**
 * The OpenAI-compatible routes: models, chat completions and responses. docs/openai.md.
 */
import { Effect } from "effect"
import type { GatewayLog } from "../http/log.ts"
import type { HttpReply, Problem, RouteGroup } from "../http/route.ts"
import type { ProtocolService } from "../service.ts"
import { asProblem, chatHandler } from "./chat.ts"
import { makeLocks } from "./locks.ts"
import { listModels } from "./models.ts"
import { problemReply } from "./problems.ts"
import { createResponse } from "./responses.ts"
import { cancelResponse, deleteResponse, readResponseById } from "./stored-responses.ts"

export interface OpenAiOptions {
  readonly log: GatewayLog
}

export const openaiRoutes = (service: ProtocolService, { log }: OpenAiOptions): RouteGroup => {
  const parts = { service, log, locks: makeLocks() }
  const models = Effect.mapError(listModels(service), asProblem)

  const model = (id: string): Effect.Effect<HttpReply, Problem> =>
    Effect.flatMap(models, (listed) => {
      const found = listed.find((one) => one.id === id)
      const message = `model: expected one that GET /v1/models lists, got ${JSON.stringify(id)}`
      return found === undefined
        ? Effect.fail({ status: 404, code: "model_not_found", message, param: "model" })
        : Effect.succeed({ type: "json", body: found })
    })

  return {
    name: "openai",
    prefixes: ["/v1"],
    routes: [
      {
        method: "GET",
        path: "/v1/models",
        handle: () => Effect.map(models, (data) => ({ type: "json", body: { object: "list", data } })),
      },
      { method: "GET", path: "/v1/models/:id", handle: ({ params }) => model(params.id ?? "") },
      {
        method: "GET",
        path: "/v1/models/:provider/:name",
        handle: ({ params }) => model(`${params.provider}/${params.name}`),
      },
      { method: "POST", path: "/v1/chat/completions", handle: chatHandler(parts) },
      { method: "POST", path: "/v1/responses", handle: createResponse(parts) },
      { method: "GET", path: "/v1/responses/:id", handle: readResponseById(parts) },
      { method: "DELETE", path: "/v1/responses/:id", handle: deleteResponse(parts) },
      { method: "POST", path: "/v1/responses/:id/cancel", handle: cancelResponse(parts) },
    ],
    problem: problemReply,
  }
}
