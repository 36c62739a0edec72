/**
 * A harness of one's own: a help desk, declared with `defineHarness`, with a plugin of its own that brings a tool, a section of the prompt and a
 * rule about calls, and takes options from the declaration.
 *
 * The scripted model needs no key. It files a ticket as `critical` first, is told by the plugin why it may not, and files it as `normal`. Run
 * it from the project after `npm run build`, with Node.js 22.18 or newer: `node examples/custom-harness.ts`
 */
import { Console, Effect, Schema, Stream } from "effect"
import {
  anyPlugin,
  defineHarness,
  definePlugin,
  defineTool,
  deriveContext,
  type Event,
  type ModelsOption,
  promptOf,
  SuperPi,
  text,
} from "super-pi"

const Severity = Schema.Literal("low", "normal", "critical")

/** Where tickets go; a real one would be a service that the tool asks for. */
const filed: Array<string> = []

const fileTicket = defineTool({
  name: "file_ticket",
  description: "Files a ticket for the people at the desk",
  parameters: Schema.Struct({ title: Schema.NonEmptyString, severity: Severity }),
  effects: ["state_write"],
  replay: "unsafe",
  execute: ({ severity, title }) =>
    Effect.sync(() => {
      const number = filed.push(`${severity}: ${title}`)
      return { output: [text(`filed as ticket ${number}`)], structuredOutput: { number } }
    }),
})

/** Every hook sees the options that the declaration gave. */
const tickets = definePlugin({
  name: "tickets",
  description: "Files tickets, none above a severity",
  options: Schema.Struct({
    highest: Schema.optionalWith(Severity, { default: () => "critical" as const }),
  }),
  tools: () => [fileTicket],
  hooks: {
    beforeRequest: (_request, { options }) =>
      Effect.succeed({ sections: { tickets: `File one ticket for each problem, at most as ${options.highest}.` } }),
    beforeTool: ({ args, name }, { options }) => {
      const levels: ReadonlyArray<unknown> = Severity.literals
      const tooHigh = levels.indexOf(args.severity) > levels.indexOf(options.highest)
      if (name !== fileTicket.spec.name || !tooHigh) return Effect.succeed(undefined)
      const reason = `only a person files a ${args.severity} ticket; file it as ${options.highest}`
      return Effect.succeed({ type: "block" as const, rule: "severity", reason })
    },
  },
})

const plugins = [anyPlugin(tickets)]

const desk = defineHarness(
  {
    id: "help-desk",
    name: "Help desk",
    description: "Turns what people report into tickets",
    prompt: "You work at a help desk.",
    plugins: ["permissions", ["tickets", { highest: "normal" }]],
    mode: "accept-edits",
    maxMode: "accept-edits",
    workspace: { kind: "none" },
    tools: { only: ["file_ticket"] },
  },
  { plugins },
)

/** What the scripted model does with a report. */
const ticket = (severity: string) => [{ name: "file_ticket", args: { title: "The printer burns", severity } }]
const models = {
  env: {},
  script: {
    rules: [
      {
        match: "printer",
        steps: [
          { tools: ticket("critical") },
          { tools: ticket("normal") },
          { text: "I filed a ticket. Please use the extinguisher." },
        ],
      },
    ],
  },
} satisfies ModelsOption

const show = (event: Event): Effect.Effect<void> => {
  switch (event.type) {
    case "tool_blocked":
      return Console.log(`  ${event.name} was blocked: ${event.reason}`)
    case "tool_completed":
      return Console.log(`  ${event.name}: ${JSON.stringify(event.structured_output)}`)
    case "turn_completed":
      return Console.log(`  says: ${event.text}`)
    default:
      return Effect.void
  }
}

const program = Effect.gen(function* () {
  const conversation = yield* (yield* SuperPi).open()
  const { harness, mode } = yield* conversation.state
  yield* Console.log(`${harness}, mode ${mode}`)
  yield* conversation.run("The printer burns!").pipe(Stream.runForEach(show))
  const { sections, tools } = promptOf(deriveContext(yield* conversation.transcript))
  yield* Console.log(`tools: ${[...tools.keys()].join(", ")}`)
  yield* Console.log(`section: ${sections.get("tickets")}`)
  yield* Console.log(`tickets: ${filed.join("; ")}`)
})

const superPi = SuperPi.layer({
  storage: "memory",
  models,
  defaults: { model: "script/desk" },
  harness: desk.id,
  extraHarnesses: [desk],
  extraPlugins: plugins,
})
await Effect.runPromise(Effect.provide(program, superPi))
