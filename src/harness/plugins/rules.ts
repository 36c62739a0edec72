/**
 * Plugin Rules: puts `AGENTS.md`, `GEMINI.md`, `CLAUDE.md` and `.agents/rules/*.md` into the prompt within a budget of tokens, and those of
 * a subdirectory once work happens there. docs/rules.md has the places and the order.
 */
import { Effect, Schema } from "effect"
import { definePlugin } from "../define.ts"
import { projectOf, rootsOf } from "../discovery.ts"
import { DiscoveryFiles } from "../discovery-files.ts"
import { Reports } from "../discovery-report.ts"
import type { PluginPlaces } from "../plugin.ts"
import { findNestedRules, findRules } from "./rules/find.ts"
import { placesOfWork } from "./rules/places-of-work.ts"
import { type Fitted, fitInto, render } from "./rules/render.ts"

const RulesOptions = Schema.Struct({
  /** Tokens that all rules of one prompt may take. */
  budgetTokens: Schema.optionalWith(Schema.Int.pipe(Schema.between(0, 200_000)), { default: () => 8_000 }),
  /** Names of rules files, looked for in every directory. */
  files: Schema.optionalWith(Schema.Array(Schema.String.pipe(Schema.pattern(/^[^/\\\0]{1,255}$/))), {
    default: () => ["AGENTS.md", "GEMINI.md", "CLAUDE.md"],
  }),
  /** Whether directories below the workspace root count once work happens in them. */
  nested: Schema.optionalWith(Schema.Boolean, { default: () => true }),
})

const maxBytes = 256 * 1024

const intro = `Rules for work here, the general ones first; later ones win over earlier ones, and what the person says wins over all of them.`
const nestedIntro = "Rules of directories in which work has happened; they hold for the files below their directory."

export const sectionNames = { rules: "rules", nested: "nested_rules" } as const

/** One instance remembers the files that it has read. */
export const makeRules = () => {
  const files = new DiscoveryFiles(maxBytes)
  const reports = new Reports()
  return definePlugin({
    name: "rules",
    aliases: ["agents-md"],
    description:
      "Rules of the repository and of the person in the prompt: AGENTS.md, GEMINI.md, CLAUDE.md, .agents/rules/*.md",
    options: RulesOptions,
    hooks: {
      beforeRequest: (request, context) =>
        Effect.gen(function* () {
          const { options, places, workspace } = context
          const search = { files, workspace: workspace.root, names: options.files }
          const roots = yield* rootsOf(workspace.root, places)
          const found = yield* Effect.promise(() => findRules(search, roots))
          const work = options.nested && projectOf(roots) !== null ? placesOfWork(workspace.root, request.messages) : []
          const nested = yield* Effect.promise(() => findNestedRules(search, work, found.files))
          yield* reports.tell([...found.reports, ...nested.reports], context)
          // The nearest are cut last, and nothing is nearer than where work happens.
          const near = fitInto(nested.files, options.budgetTokens)
          const far = fitInto(found.files, options.budgetTokens - near.tokens)
          return {
            sections: {
              [sectionNames.rules]: render(intro, far),
              [sectionNames.nested]: render(nestedIntro, near),
            },
          }
        }),
    },
  })
}

export const rules = makeRules()

/** What the first prompt of a conversation in a workspace has, with the defaults of the plugin. `root` is empty where there are no files. */
export const rulesFor = (root: string, places: PluginPlaces): Effect.Effect<Fitted> =>
  Effect.gen(function* () {
    const { budgetTokens, files: names } = yield* Effect.orDie(Schema.decode(RulesOptions)({}))
    const roots = yield* rootsOf(root, places)
    const search = { files: new DiscoveryFiles(maxBytes), workspace: root, names }
    return fitInto((yield* Effect.promise(() => findRules(search, roots))).files, budgetTokens)
  })
