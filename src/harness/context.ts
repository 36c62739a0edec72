/**
 * One conversation's hooks at work: their context, their deadline, and what becomes of one that fails. A hook that throws, fails, gives no
 * Effect or takes too long is reported once per plugin and hook, with a reference that finds the cause in the log, and is skipped.
 */
import { Cause, Clock, Duration, Effect, Either, Exit } from "effect"
import type { AgentDocument, ExecutionMode } from "../domain/document.ts"
import type { ConversationId } from "../domain/ids.ts"
import type { JsonObject } from "../domain/json.ts"
import type { Workspace } from "../tools/tool.ts"
import type { ActivePlugin } from "./options.ts"
import type { HookContext, HookName } from "./plugin.ts"
import { withServices } from "./plugin-tools.ts"
import type { HarnessesService, Pipeline } from "./registry.ts"

type Level = "info" | "warning" | "error"

/** What the hooks of one conversation are told; asked anew for every hook. */
export interface HookFacts {
  readonly conversation: ConversationId
  readonly agent: AgentDocument & { readonly mode: ExecutionMode }
  readonly workspace: Workspace
  readonly depth: number
}

export interface HookHost {
  readonly facts: () => HookFacts
  /** Tells the watchers. */
  readonly notify: (level: Level, message: string) => void
  /** A fresh reference for the log. */
  readonly reference: () => string
}

/** The first line of why something failed. */
const lineOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  const message =
    typeof error === "object" && error !== null && "message" in error ? String(error.message) : String(error)
  return message.split("\n", 1)[0] || "unknown"
}

/** What a hook is to do; `undefined` where the plugin has none of that name. */
export type Call<A> = (
  active: ActivePlugin,
  context: HookContext<JsonObject>,
) => Effect.Effect<A, unknown, unknown> | undefined

export class HookRunner {
  readonly pipeline: Pipeline
  private readonly harnesses: HarnessesService
  private readonly host: HookHost
  private readonly reported = new Set<string>()

  constructor(pipeline: Pipeline, harnesses: HarnessesService, host: HookHost) {
    this.pipeline = pipeline
    this.harnesses = harnesses
    this.host = host
  }

  get mode(): ExecutionMode {
    return this.host.facts().agent.mode
  }

  contextOf({ options }: ActivePlugin): HookContext<JsonObject> {
    const { agent, conversation, depth, workspace } = this.host.facts()
    return {
      options,
      conversation,
      harness: this.pipeline.harness?.id ?? "",
      agent,
      mode: agent.mode,
      workspace,
      places: this.harnesses.places,
      depth,
      notify: (level, message) => Effect.sync(() => this.host.notify(level, message)),
    }
  }

  /** The hook's code with its services; whatever it throws is a defect of the Effect. */
  prepare<A>(active: ActivePlugin, hook: HookName, call: Call<A>): Effect.Effect<A, unknown> {
    const started = Effect.suspend((): Effect.Effect<A, unknown, unknown> => {
      const effect: unknown = call(active, this.contextOf(active))
      if (!Effect.isEffect(effect)) return Effect.dieMessage(`${hook} gave no Effect`)
      return effect as Effect.Effect<A, unknown, unknown>
    })
    return withServices(this.harnesses.services, started)
  }

  /** One plugin's hook within its deadline: what it answered, or why it did not in one line. */
  attempt<A>(active: ActivePlugin, hook: HookName, call: Call<A>): Effect.Effect<Either.Either<A, string>> {
    const { deadlineMs } = active.plugin
    const late = () => new Error(`it took longer than ${deadlineMs} ms`)
    const limited = Effect.timeoutFail(this.prepare(active, hook, call), {
      duration: Duration.millis(deadlineMs),
      onTimeout: late,
    })
    return Effect.flatMap(Effect.exit(limited), (exit): Effect.Effect<Either.Either<A, string>> => {
      if (Exit.isSuccess(exit)) return Effect.succeed(Either.right(exit.value))
      return Effect.map(this.failed(active, hook, exit.cause), (line) => Either.left(line))
    })
  }

  /** Reports a failure once, and gives its line. */
  failed(active: ActivePlugin, hook: HookName, cause: Cause.Cause<unknown>): Effect.Effect<string> {
    return Effect.suspend(() => {
      const line = lineOf(cause)
      const key = `${active.plugin.name}.${hook}`
      if (this.reported.has(key)) return Effect.succeed(line)
      this.reported.add(key)
      const reference = this.host.reference()
      const became = hook === "beforeTool" ? "the call is blocked" : "it is skipped"
      const message = `plugin ${active.plugin.name}: ${hook} failed: ${line}; ${became} (reference ${reference}; see the log)`
      this.host.notify("warning", message)
      return Effect.as(
        Effect.logError(`plugin ${active.plugin.name}: ${hook} failed`, cause).pipe(
          Effect.annotateLogs({ reference, conversation_id: this.host.facts().conversation }),
        ),
        line,
      )
    })
  }

  /** The plugins that have a hook, in their order. */
  having(hook: HookName): ReadonlyArray<ActivePlugin> {
    return this.pipeline.plugins.filter(({ plugin }) => plugin.hooks[hook] !== undefined)
  }

  /** Runs a hook of every plugin that has it, one after the other; `take` gets what each answered. */
  each<A>(
    hook: HookName,
    call: Call<A>,
    take: (answer: NonNullable<A>, active: ActivePlugin) => void = () => undefined,
  ): Effect.Effect<void> {
    return Effect.forEach(
      this.having(hook),
      (active) =>
        Effect.map(this.attempt(active, hook, call), (answer) => {
          if (Either.isRight(answer) && answer.right != null) take(answer.right, active)
        }),
      { discard: true },
    )
  }

  /** Runs an effect and says how long it took, in whole ms, and when it began. */
  timed<A>(effect: Effect.Effect<A>): Effect.Effect<{ readonly value: A; readonly at: number; readonly ms: number }> {
    return Effect.flatMap(Clock.currentTimeMillis, (at) =>
      Effect.flatMap(effect, (value) =>
        Effect.map(Clock.currentTimeMillis, (now) => ({ value, at, ms: Math.max(0, now - at) })),
      ),
    )
  }
}
