/**
 * Conversations whose harness has plugins of the test: an echo tool, a scripted model, storage in memory or in a file.
 */
import { Effect, Schema, type Scope } from "effect"
import { Sessions, type SessionsService } from "../../src/actors/sessions.ts"
import type { Entry } from "../../src/domain/entry.ts"
import { text, textOf } from "../../src/domain/message.ts"
import { defineHarness } from "../../src/harness/declare.ts"
import { type AnyPlugin, anyPlugin, definePlugin } from "../../src/harness/define.ts"
import type { Harness } from "../../src/harness/harness.ts"
import type { PluginHooks } from "../../src/harness/plugin.ts"
import { SuperPi, type SuperPiService } from "../../src/super-pi.ts"
import { defineTool } from "../../src/tools/define.ts"
import type { Tool } from "../../src/tools/tool.ts"

type Hooks = PluginHooks<Record<never, never>, never>

const echo: Tool = defineTool({
  name: "echo",
  description: "Returns its value.",
  parameters: Schema.Struct({ value: Schema.String }),
  effects: ["read"],
  replay: "safe",
  execute: ({ value }) => Effect.succeed({ output: [text(`echo: ${value}`)] }),
})

export const plugin = (
  name: string,
  hooks: Hooks,
  more: { readonly tools?: ReadonlyArray<Tool>; readonly deadlineMs?: number } = {},
): AnyPlugin =>
  anyPlugin(
    definePlugin({
      name,
      description: name,
      hooks,
      ...(more.deadlineMs === undefined ? {} : { deadlineMs: more.deadlineMs }),
      tools: () => more.tools ?? [],
    }),
  )

export const harnessOf = (plugins: ReadonlyArray<AnyPlugin>, more: Partial<Harness> = {}): Harness =>
  defineHarness(
    {
      id: "test",
      name: "Test",
      description: "For tests",
      prompt: "You are a test.",
      plugins: plugins.map((one) => one.name),
      ...more,
    },
    { plugins },
  )

export const callEcho = (value: string) => [
  { match: "", steps: [{ text: "calling", tools: [{ name: "echo", args: { value } }] }, { text: "done" }] },
]
export const talk = [{ match: "", steps: [{ text: "answer" }] }]

export const run = <A>(
  options: {
    readonly plugins: ReadonlyArray<AnyPlugin>
    readonly harness?: Partial<Harness>
    readonly rules: ReadonlyArray<unknown>
    /** Path of a database; default: in memory. */
    readonly path?: string
    /** Tools of the node beside `echo`. */
    readonly tools?: ReadonlyArray<Tool>
  },
  use: (superPi: SuperPiService, sessions: SessionsService) => Effect.Effect<A, unknown, Scope.Scope>,
): Promise<A> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        return yield* use(yield* SuperPi, yield* Sessions)
      }),
    ).pipe(
      Effect.provide(
        SuperPi.layer({
          storage: options.path === undefined ? "memory" : { path: options.path },
          models: { model: "script/test", script: { rules: options.rules } as never },
          builtinTools: false,
          tools: [echo, ...(options.tools ?? [])],
          harness: "test",
          extraPlugins: options.plugins,
          extraHarnesses: [harnessOf(options.plugins, options.harness)],
        }),
      ),
    ),
  )

export const results = (entries: ReadonlyArray<Entry>): ReadonlyArray<string> =>
  entries.flatMap((entry) => entry.model.flatMap((one) => (one.role === "tool" ? [textOf(one.content)] : [])))
