/**
 * One turn with a tool on a real provider: the model is asked for a sum that it has to work out with a tool. It costs a fraction of a cent, so it
 * runs only when it is asked to: without `SUPER_PI_LIVE=1` and the key of a provider it says what to set, and ends.
 *
 * Run it from the project after `npm run build`, with Node.js 22.18 or newer:
 * `SUPER_PI_LIVE=1 GEMINI_API_KEY=… node examples/live-provider.ts`
 */
import { Console, Effect, Schema, Stream } from "effect"
import { defineTool, type Event, SuperPi, text } from "super-pi"

/** A cheap model of each service, by the variable that has its key. */
const services: Readonly<Record<string, string>> = {
  GEMINI_API_KEY: "google/gemini-3-flash-preview",
  ANTHROPIC_API_KEY: "anthropic/claude-haiku-4-5",
  OPENAI_API_KEY: "openai/gpt-5-mini",
}

const env = process.env
const isSet = (name: string): boolean => (env[name] ?? "").trim() !== ""

/** What keeps this from running; null when nothing does. */
const missing = (): string | null => {
  const keys = Object.keys(services)
  const hasKey = keys.some(isSet)
  if (env.SUPER_PI_LIVE === "1" && hasKey) return null
  const wanted = [
    ...(env.SUPER_PI_LIVE === "1" ? [] : ["SUPER_PI_LIVE=1 (this asks a real service, which costs money)"]),
    ...(hasKey ? [] : [`the key of a provider: ${keys.join(", ")}`]),
  ]
  return `nothing was asked; set ${wanted.join(" and ")}`
}

const add = defineTool({
  name: "add_prices",
  description: "Adds prices exactly, in cents",
  parameters: Schema.Struct({ cents: Schema.Array(Schema.Int) }),
  effects: ["read"],
  replay: "safe",
  execute: ({ cents }) => Effect.succeed({ output: [text(String(cents.reduce((sum, one) => sum + one, 0)))] }),
})

const show = (event: Event): Effect.Effect<void> => {
  switch (event.type) {
    case "text_delta":
      return Effect.sync(() => void process.stdout.write(event.text))
    case "tool_started":
      return Console.log(`→ ${event.name} ${JSON.stringify(event.arguments)}`)
    case "tool_completed":
      return Console.log(`← ${event.output.map((part) => (part.type === "text" ? part.text : "")).join("")}`)
    case "turn_error":
      return Console.error(`failed: ${event.message}`)
    case "usage_updated":
      return Console.log(`\n(${event.usage.input} tokens in, ${event.usage.output} out)`)
    default:
      return Effect.void
  }
}

const turn = (model: string) =>
  Effect.gen(function* () {
    const conversation = yield* (yield* SuperPi).open({ agent: { model, effort: "low" } })
    yield* Console.log(model)
    const prompt = "What do 1999, 349 and 12 cents come to? Use the tool, then answer in one short sentence."
    yield* conversation.run(prompt).pipe(Stream.runForEach(show))
  }).pipe(Effect.provide(SuperPi.layer({ storage: "memory", models: { env }, tools: [add], builtinTools: false })))

const why = missing()
const model = env.SUPER_PI_DEFAULT_MODEL ?? Object.entries(services).find(([name]) => isSet(name))?.[1] ?? ""
await Effect.runPromise(why === null ? turn(model) : Console.log(why))
