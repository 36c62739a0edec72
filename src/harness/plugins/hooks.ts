/**
 * Plugin Hooks: runs the commands of `hooks.json` when a session starts, before and after a tool call, and when the model is done.
 * docs/hooks.md has the format.
 *
 * A `PreToolUse` hook that does not answer (it cannot be started, takes too long, answers what nobody understands) blocks the call: it is
 * there to refuse. One that ends with another code than 0 or 2 is reported, as the public format has it.
 */
import { dirname } from "node:path"
import { isDeepStrictEqual } from "node:util"
import { Effect, Schema } from "effect"
import type { JsonObject } from "../../domain/json.ts"
import { text, textOf } from "../../domain/message.ts"
import { commandEnvironment } from "../../tools/environment.ts"
import type { ToolResult } from "../../tools/tool.ts"
import { Bounded } from "../bounded.ts"
import { definePlugin } from "../define.ts"
import { rootsOf } from "../discovery.ts"
import { DiscoveryFiles } from "../discovery-files.ts"
import { conversationKey, Reports } from "../discovery-report.ts"
import type { HookContext, ToolDecision } from "../plugin.ts"
import { answerOf, type HookAnswer, strictest } from "./hooks/answer.ts"
import { type CommandHook, type HookEvent, hooksFor } from "./hooks/config.ts"
import { HooksFiles } from "./hooks/find.ts"
import { runHook } from "./hooks/run.ts"

const HooksOptions = Schema.Struct({
  /** Milliseconds that a hook may take which says nothing of it. */
  timeoutMs: Schema.optionalWith(Schema.Int.pipe(Schema.between(1, 600_000)), { default: () => 60_000 }),
  /** Bytes of stdout and of stderr that are read. */
  maxOutputBytes: Schema.optionalWith(Schema.Int.pipe(Schema.between(1, 1024 * 1024)), { default: () => 64 * 1024 }),
  /** Hashes (`sha256:…`) of hooks files of projects that run without having been approved on this machine. */
  trusted: Schema.optionalWith(Schema.Array(Schema.String.pipe(Schema.pattern(/^sha256:[0-9a-f]{64}$/))), {
    default: () => [],
  }),
})
type Context = HookContext<typeof HooksOptions.Type>

const maxBytes = 256 * 1024
const contextChars = 10_000
const atOnce = 4

export const hooksSection = "hooks"

interface Ran {
  readonly hook: CommandHook
  readonly answer: HookAnswer
}

/** What is remembered of a conversation; lost with the process, and then found anew. */
interface Remembered {
  /** What its SessionStart hooks said; null before they ran. */
  session: string | null
  /** Whether the model goes on because a Stop hook wanted it. */
  stopActive: boolean
}

const ruleOf = ({ command, event, file }: CommandHook): string =>
  `${event} hook of ${file}: ${command.length > 120 ? `${command.slice(0, 119)}…` : command}`

const contextOf = (ran: ReadonlyArray<Ran>): string =>
  ran.flatMap(({ answer }) => (answer.context === null ? [] : [answer.context.slice(0, contextChars)])).join("\n\n")

/** Adds what hooks have to say behind the output of a call. */
const withNotes = (result: ToolResult, notes: ReadonlyArray<string>): ToolResult | undefined => {
  const said = notes.filter((note) => note !== "")
  if (said.length === 0) return undefined
  return { ...result, output: [...result.output, ...said.map((note) => text(`\n[hook] ${note}`))] }
}

/** One instance remembers files and conversations. */
export const makeHooks = () => {
  const found = new HooksFiles(new DiscoveryFiles(maxBytes))
  const reports = new Reports()
  const conversations = new Bounded<string, Remembered>(1_000)
  /** What PreToolUse hooks want the model to know of a call, by conversation and call. */
  const notesOfCalls = new Bounded<string, string>(1_000)

  const remembered = (context: Context): Remembered => {
    const key = conversationKey(context)
    const known = conversations.get(key) ?? { session: null, stopActive: false }
    conversations.set(key, known)
    return known
  }

  /** Runs the hooks of an event. What failed or warned is told once. */
  const run = (
    event: HookEvent,
    tool: string | null,
    facts: () => JsonObject,
    context: Context,
  ): Effect.Effect<ReadonlyArray<Ran>> =>
    Effect.gen(function* () {
      const { options, places, workspace } = context
      const roots = yield* rootsOf(workspace.root, places)
      const all = yield* Effect.promise(() => found.runnable(roots, places.dataDir, options.trusted))
      yield* reports.tell(all.reports, context)
      const due = hooksFor(all.hooks, event, tool)
      if (due.length === 0) return []
      // Without a workspace there is no directory to work in but the hooks' own.
      const cwdOf = ({ file }: CommandHook) => (roots.project.length === 0 ? dirname(file) : workspace.root)
      const input: JsonObject = {
        session_id: String(context.conversation),
        hook_event_name: event,
        permission_mode: context.mode,
        harness: context.harness,
        depth: context.depth,
        ...facts(),
      }
      const one = (hook: CommandHook) => {
        const cwd = cwdOf(hook)
        const env = commandEnvironment(process.env, {
          ...workspace.env,
          SUPER_PI_PROJECT_DIR: cwd,
          CLAUDE_PROJECT_DIR: cwd,
          SUPER_PI_HOOK_EVENT: event,
        })
        const limits = { timeoutMs: hook.timeoutMs ?? options.timeoutMs, maxBytes: options.maxOutputBytes }
        return Effect.map(
          runHook({ ...limits, command: hook.command, cwd, env, input: { ...input, cwd } }),
          (exit): Ran => ({ hook, answer: answerOf(hook, exit, event === "SessionStart") }),
        )
      }
      const ran = yield* Effect.forEach(due, one, { concurrency: atOnce })
      const told = ran.flatMap(({ answer, hook }) => {
        const what = answer.failure ?? answer.warning
        return what === null
          ? []
          : [{ level: "warning" as const, message: `hooks: ${ruleOf(hook)}: ${what}`, version: "" }]
      })
      yield* reports.tell(told, context)
      return ran
    })

  const decide = (ran: ReadonlyArray<Ran>, args: JsonObject, title: string): ToolDecision | undefined => {
    const broken = ran.find(({ answer }) => answer.failure !== null)
    if (broken !== undefined) {
      const reason = `the hook did not answer: ${broken.answer.failure}`
      return { type: "block", rule: ruleOf(broken.hook), reason }
    }
    const decision = strictest(ran.map(({ answer }) => answer))
    const decisive = ran.find(({ answer }) => answer.decision === decision)
    if (decision === "deny" && decisive !== undefined) {
      return { type: "block", rule: ruleOf(decisive.hook), reason: decisive.answer.reason ?? "a hook refused it" }
    }
    const rewriting = ran.find(({ answer }) => answer.input !== null && !isDeepStrictEqual(answer.input, args))
    if (rewriting?.answer.input != null) {
      return { type: "rewrite", rule: ruleOf(rewriting.hook), args: rewriting.answer.input }
    }
    if (decision === null || decisive === undefined) return undefined
    const rule = ruleOf(decisive.hook)
    return decision === "ask"
      ? { type: "ask", rule, reason: decisive.answer.reason ?? "a hook wants a person to decide", title }
      : { type: "allow", rule }
  }

  const callKey = (context: Context, call: string) => `${conversationKey(context)}\0${call}`

  return definePlugin({
    name: "hooks",
    aliases: ["lifecycle-hooks"],
    description: "Commands of hooks.json on SessionStart, PreToolUse, PostToolUse and Stop",
    options: HooksOptions,
    // Hooks have deadlines of their own, of 600 s at most.
    deadlineMs: 620_000,
    hooks: {
      beforeAgentStart: (_, context) =>
        Effect.sync(() => {
          remembered(context).stopActive = false
          return undefined
        }),
      beforeRequest: (request, context) =>
        Effect.gen(function* () {
          const memory = remembered(context)
          if (memory.session === null) {
            const resumed = request.turn > 1 || request.messages.some((message) => message.role === "assistant")
            const source = resumed ? "resume" : "startup"
            const ran = yield* run("SessionStart", null, () => ({ source, model: request.model }), context)
            memory.session = contextOf(ran)
          }
          return { sections: { [hooksSection]: memory.session === "" ? null : memory.session } }
        }),
      beforeTool: (call, context) =>
        Effect.gen(function* () {
          const facts = () => ({ tool_name: call.name, tool_input: call.args, tool_use_id: call.id })
          const ran = yield* run("PreToolUse", call.name, facts, context)
          if (ran.length === 0) return undefined
          notesOfCalls.set(callKey(context, call.id), contextOf(ran))
          return decide(ran, call.args, `${call.name}: a hook asks`)
        }),
      afterTool: (call, result, context) =>
        Effect.gen(function* () {
          const key = callKey(context, call.id)
          const before = notesOfCalls.get(key) ?? ""
          notesOfCalls.delete(key)
          const response = {
            output: textOf(result.output),
            is_error: result.isError === true,
            ...(result.structuredOutput === undefined ? {} : { structured_output: result.structuredOutput }),
          }
          const facts = () => ({
            tool_name: call.name,
            tool_input: call.args,
            tool_use_id: call.id,
            tool_response: response,
          })
          const ran = yield* run("PostToolUse", call.name, facts, context)
          const refused = ran.flatMap(({ answer }) =>
            answer.decision === "deny" ? [answer.reason ?? "a hook does not accept this result"] : [],
          )
          return withNotes(result, [before, ...refused, contextOf(ran)])
        }),
      onYield: (answer, context) =>
        Effect.gen(function* () {
          // A subagent is done when it is done: its parent's hook judges the whole.
          if (context.depth > 0) return undefined
          const memory = remembered(context)
          const facts = () => ({ stop_hook_active: memory.stopActive, last_assistant_message: answer.text })
          const ran = yield* run("Stop", null, facts, context)
          const more = ran.flatMap(({ answer: said }) =>
            said.decision === "deny" ? [said.reason ?? "a hook wants you to go on"] : [],
          )
          memory.stopActive = more.length > 0
          return more.length === 0 ? undefined : { continue: more.join("\n\n") }
        }),
    },
  })
}

export const hooks = makeHooks()
