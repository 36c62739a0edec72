/**
 * Plugin SlashCommands: an input that begins with `/plan`, `/goal`, `/boost`, `/model`, `/mode` or the name of a custom command becomes what
 * it stands for, whichever client sent it. docs/slash-commands.md has them all. In a subagent nothing is expanded: a model wrote its inputs.
 */
import { Effect, Either, Option, Schema } from "effect"
import { type AgentDocument, Effort } from "../../domain/document.ts"
import { text, type UserPart } from "../../domain/message.ts"
import { nearestNames } from "../../domain/nearest.ts"
import { Models } from "../../models/model.ts"
import { definePlugin } from "../define.ts"
import { rootsOf } from "../discovery.ts"
import { DiscoveryFiles } from "../discovery-files.ts"
import { Reports } from "../discovery-report.ts"
import type { HookContext } from "../plugin.ts"
import { builtinNames, type Expansion, expandBuiltin } from "./slash-commands/builtin.ts"
import { expand, readTyped, type Typed, unescaped } from "./slash-commands/expand.ts"
import { findCommands, readCommand } from "./slash-commands/find.ts"

const SlashCommandsOptions = Schema.Struct({
  /** Effort of a run that `/boost` began. */
  boostEffort: Schema.optionalWith(Effort, { default: () => "max" as const }),
  /** Model of such a run; absent: the conversation's. */
  boostModel: Schema.optional(Schema.NonEmptyString),
  /** Whether `/mode` may raise the mode, up to the harness's ceiling. Any client may send it: leave it off where some may not. */
  raiseMode: Schema.optionalWith(Schema.Boolean, { default: () => false }),
})
type Context = HookContext<typeof SlashCommandsOptions.Type>

const maxBytes = 256 * 1024
export const goalSection = "goal"

/** A change to a model that nobody serves is none. */
const served = (expansion: Expansion): Effect.Effect<Expansion> =>
  Effect.gen(function* () {
    if (expansion.type === "fault" || expansion.agent.model === undefined) return expansion
    const models = yield* Effect.serviceOption(Models)
    if (Option.isNone(models)) return expansion
    const resolved = yield* Effect.either(models.value.resolve(expansion.agent.model))
    return Either.isRight(resolved)
      ? expansion
      : { type: "fault", message: `/model: ${resolved.left.message}; the input stays as it is` }
  })

/** One instance remembers the files that it has read. */
export const makeSlashCommands = () => {
  const files = new DiscoveryFiles(maxBytes)
  const reports = new Reports()

  /** Null for what is no command: it stays text. */
  const expansionOf = (typed: Typed, context: Context): Effect.Effect<Expansion | null> =>
    Effect.gen(function* () {
      const { agent, mode, options, places, workspace } = context
      const own = expandBuiltin(typed, { agent, mode, raiseMode: options.raiseMode })
      if (own !== null) return yield* served(own)
      const roots = yield* rootsOf(workspace.root, places)
      const found = yield* Effect.promise(() => findCommands(roots, builtinNames))
      yield* reports.tell(found.reports, context)
      const command = found.commands.get(typed.name)
      if (command === undefined) {
        const [near] = nearestNames(typed.name, [...builtinNames, ...found.commands.keys()], 1)
        if (near !== undefined && !typed.name.startsWith("skill:")) {
          yield* context.notify("info", `/${typed.name} is no command and stays text; did you mean /${near}?`)
        }
        return null
      }
      const read = yield* Effect.promise(() => readCommand(files, command))
      if (read.type === "fault") return yield* Effect.as(reports.tell([read.report], context), null)
      const changes: AgentDocument = read.model === null ? {} : { model: read.model }
      return { type: "expanded", text: expand(read.template, typed.rest), agent: changes }
    })

  return definePlugin({
    name: "slash-commands",
    aliases: ["commands"],
    description: "/plan, /goal, /boost, /model, /mode and the commands of .agents/commands in any client",
    options: SlashCommandsOptions,
    hooks: {
      onInput: ({ content }, context) =>
        Effect.gen(function* () {
          // A boost is for one input.
          const ends: AgentDocument | undefined = context.agent.boost === true ? { boost: false } : undefined
          const untouched = ends === undefined ? undefined : { agent: ends }
          const [first, ...others] = content
          if (context.depth > 0 || first?.type !== "text") return untouched
          const instead = (words: string): ReadonlyArray<UserPart> => [text(words), ...others]
          const plain = unescaped(first.text)
          if (plain !== null) return { ...untouched, content: instead(plain) }
          const typed = readTyped(first.text)
          const expansion = typed === null ? null : yield* expansionOf(typed, context)
          if (expansion?.type === "fault") yield* context.notify("warning", expansion.message)
          if (expansion?.type !== "expanded") return untouched
          const changed = { content: instead(expansion.text), agent: { ...ends, ...expansion.agent } }
          // What comes with it, an image, is there to be asked about.
          return expansion.bare === true && others.length === 0 ? { ...changed, settles: expansion.text } : changed
        }),
      beforeRequest: (_, { agent, options }) => {
        const { goal } = agent
        const model = agent.boost === true ? options.boostModel : undefined
        return Effect.succeed({
          sections: {
            [goalSection]:
              goal == null || goal === "" ? null : `What all of this is for, until it is reached:\n${goal}`,
          },
          ...(model === undefined ? {} : { model }),
        })
      },
      beforeProviderRequest: (request, { agent, options }) =>
        Effect.succeed(agent.boost === true ? { ...request, effort: options.boostEffort } : undefined),
    },
  })
}

export const slashCommands = makeSlashCommands()
