/**
 * AG-UI over HTTP: the routes of front ends. See docs/ag-ui.md.
 */
import { plainProblem } from "../http/problems.ts"
import type { RouteGroup } from "../http/route.ts"
import type { ProtocolService } from "../service.ts"
import { eventsHandler } from "./events-route.ts"
import { inputHandler } from "./input-route.ts"
import { runHandler } from "./run-route.ts"

export const aguiRoutes = (service: ProtocolService): RouteGroup => ({
  name: "agui",
  prefixes: ["/agui/"],
  routes: [
    { method: "POST", path: "/agui/v1/run", handle: runHandler(service) },
    { method: "GET", path: "/agui/v1/sessions/:id/events", handle: eventsHandler(service) },
    { method: "POST", path: "/agui/v1/sessions/:id/input", handle: inputHandler(service) },
  ],
  problem: plainProblem,
})
