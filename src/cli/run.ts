/**
 * `super-pi run`: one prompt (or one per line of input), the answer on stdout.
 */
import { createInterface } from "node:readline"
import { text as readAll } from "node:stream/consumers"
import { Deferred, Effect, Stream } from "effect"
import type { SessionsService } from "../actors/sessions.ts"
import type { Event } from "../domain/event.ts"
import type { Failure } from "../domain/failure.ts"
import type { ConversationId } from "../domain/ids.ts"
import type { JsonObject } from "../domain/json.ts"
import { oneLine, sanitize } from "../protocols/terminal/sanitize.ts"
import type { Invocation } from "./arguments.ts"
import { nodeOptionsOf } from "./context.ts"
import { type Choice, choiceOf, openConversation, titleOf } from "./conversation.ts"
import { type CommandFailure, ExitCode, usageFailure } from "./exit.ts"
import { readJsonSchema, type Structured, structuredOf } from "./json-schema.ts"
import { modelOf } from "./model-check.ts"
import { openSessions } from "./node.ts"
import * as option from "./options.ts"
import { makeProgress } from "./progress.ts"
import { readPromptLine } from "./prompt-lines.ts"
import { type Outcome, runPrompt } from "./prompt-run.ts"
import { errorOf, failedResult, type RunResult, resultOf } from "./result.ts"
import { lineOf, runCommand, type Signals } from "./runtime.ts"

type Format = "text" | "json" | "stream-json"

const printLine = (value: unknown): void => void process.stdout.write(`${JSON.stringify(value)}\n`)
const complain = (line: string): void => void process.stderr.write(`super-pi: ${line}\n`)

/** The prompt from `-p`, the words, or stdin. */
const promptOf = async (invocation: Invocation): Promise<string> => {
  const words = invocation.words.join(" ")
  const flagged = invocation.get(option.prompt)
  if (flagged !== undefined && flagged !== "" && words !== "") {
    throw usageFailure(`two prompts: -p "${flagged}" and "${words}"; give one of them`)
  }
  const given = words !== "" ? words : (flagged ?? "")
  if (given !== "" && given !== "-") return given
  if (process.stdin.isTTY === true) throw usageFailure('no prompt; give one: super-pi run "…", or pipe it into stdin')
  const piped = await readAll(process.stdin)
  if (piped.trim() === "")
    throw usageFailure('stdin holds no prompt; give one: super-pi run "…", or pipe it into stdin')
  return piped.trimEnd()
}

/** Runs one prompt; Ctrl-C cancels it durably, a second one leaves at once. */
const ask = (
  sessions: SessionsService,
  conversationId: ConversationId,
  prompt: string,
  format: Format,
  signals: Signals,
): Effect.Effect<Outcome, Failure> =>
  Effect.gen(function* () {
    const interrupt = yield* Deferred.make<void>()
    const progress = format === "text" ? makeProgress(process.stderr, process.env) : null
    signals.onInterrupt(() => {
      signals.onInterrupt(undefined)
      progress?.say("cancelling; Ctrl-C again leaves at once")
      Deferred.unsafeDone(interrupt, Effect.void)
    })
    // Also where nothing is shown: an event says whether the answer was cut off.
    const onEvent = format === "stream-json" ? printLine : (progress?.event ?? trouble())
    return yield* runPrompt({
      sessions,
      conversationId,
      prompt,
      interrupt,
      onEvent: (event) => Effect.sync(() => onEvent(event)),
    }).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          signals.onInterrupt(undefined)
          progress?.end()
        }),
      ),
    )
  })

/** In a pipe nothing is shown but trouble that holds the run up, such as a full disk: once each, on stderr. */
const trouble = () => {
  const told = new Set<string>()
  return (event: Event): void => {
    if (event.type !== "notice" || event.level === "info" || told.has(event.message)) return
    told.add(event.message)
    process.stderr.write(`super-pi: ${oneLine(event.message)}\n`)
  }
}

/** Prints how a prompt ended; gives the exit code. */
const conclude = ({ outcome, structured }: Asked, format: Format): number => {
  const error = errorOf(outcome) ?? structured?.error ?? null
  if (format !== "text") printLine(resultOf(outcome, structured))
  else if (structured !== null) {
    if (error === null) printLine(structured.value)
  } else if (error === null) {
    const answer = outcome.settled.text ?? ""
    const shown = process.stdout.isTTY === true ? sanitize(answer) : answer
    process.stdout.write(shown === "" || shown.endsWith("\n") ? shown : `${shown}\n`)
    if (outcome.stopReason === "length") complain("warning: the answer was cut off at the model's output limit")
  }
  if (error !== null) complain(error)
  return outcome.interrupted ? ExitCode.interrupted : error === null ? ExitCode.ok : ExitCode.failure
}

/** How a prompt ended, and what came of the value that was wanted; null where none was. */
interface Asked {
  readonly outcome: Outcome
  readonly structured: Structured | null
}

/** Asks one prompt, where a schema is given for a value that fits it: for this prompt, and not for those that follow. */
const answered = (
  sessions: SessionsService,
  conversationId: ConversationId,
  prompt: string,
  { format, schema, signals }: Way,
): Effect.Effect<Asked, Failure> => {
  const asked = ask(sessions, conversationId, prompt, format, signals)
  if (schema === null) return Effect.map(asked, (outcome) => ({ outcome, structured: null }))
  return Effect.gen(function* () {
    const outcome = yield* asked
    const structured = errorOf(outcome) === null ? yield* structuredOf(sessions, schema, outcome) : noValue
    return { outcome, structured }
  }).pipe(Effect.ensuring(Effect.ignore(sessions.configure({ conversationId, agent: { outputSchema: null } }))))
}

/** Why there is none is the outcome's to say. */
const noValue: Structured = { value: null, error: "" }

/** How prompts are asked. */
interface Way {
  readonly format: Format
  readonly signals: Signals
  readonly schema: JsonObject | null
}

const runOne = (sessions: SessionsService, choice: Choice, prompt: string, way: Way) =>
  Effect.gen(function* () {
    const { conversation_id } = yield* openConversation(sessions, choice, titleOf(prompt))
    return conclude(yield* answered(sessions, conversation_id, prompt, way), way.format)
  })

/** One result line per input line; a failing one does not end the others. The exit code is that of the worst. */
const runLines = (sessions: SessionsService, first: Choice, way: Way) =>
  Effect.gen(function* () {
    let current: Choice = first
    let code: number = ExitCode.ok
    const fail = (result: RunResult) => {
      printLine(result)
      complain(result.error ?? "failed")
      code = ExitCode.failure
    }
    const one = (line: string) =>
      Effect.gen(function* () {
        const input = readPromptLine(line)
        if (!input.ok) return fail(failedResult(input.error, null))
        const fresh = { ...first, latest: false, id: null }
        const choice =
          input.conversation === "current"
            ? current
            : input.conversation === "new"
              ? fresh
              : { ...fresh, id: input.conversation }
        yield* Effect.gen(function* () {
          const { conversation_id } = yield* openConversation(sessions, choice, titleOf(input.prompt))
          current = { ...fresh, id: conversation_id }
          const ended = conclude(yield* answered(sessions, conversation_id, input.prompt, way), way.format)
          if (ended !== ExitCode.ok) code = ended
        }).pipe(
          Effect.catchAll((error: Failure | CommandFailure) =>
            Effect.sync(() => fail(failedResult(lineOf(error), choice.id))),
          ),
        )
      })
    const lines = createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY })
    yield* Stream.fromAsyncIterable(lines, (error) => (error instanceof Error ? error : new Error(String(error)))).pipe(
      Stream.filter((line) => line.trim() !== ""),
      Stream.takeWhile(() => code !== ExitCode.interrupted),
      Stream.runForEach(one),
      Effect.ensuring(Effect.sync(() => lines.close())),
    )
    return code
  })

/** The choices of conversations that answer by a schema. */
const withSchema = (choice: Choice, outputSchema: JsonObject | null): Choice =>
  outputSchema === null
    ? choice
    : {
        ...choice,
        fresh: { ...choice.fresh, outputSchema },
        overrides: { ...choice.overrides, outputSchema },
      }

export const main = async (invocation: Invocation): Promise<number> => {
  const lines = invocation.get(option.inputFormat) === "stream-json"
  const format: Format = invocation.get(option.outputFormat) ?? (lines ? "json" : "text")
  if (lines && format === "text")
    throw usageFailure("--input-format stream-json prints JSON; give --output-format json or stream-json")
  if (lines && (invocation.words.length > 0 || (invocation.get(option.prompt) ?? "") !== "")) {
    throw usageFailure("--input-format stream-json reads its prompts from stdin; leave the prompt out")
  }
  const schemaGiven = invocation.get(option.jsonSchema)
  const schema = schemaGiven === undefined ? null : await readJsonSchema(schemaGiven)
  const choice = withSchema(choiceOf(invocation), schema)
  const prompt = lines ? "" : await promptOf(invocation)
  const options = nodeOptionsOf(invocation)
  return runCommand((signals) => {
    const way: Way = { format, signals, schema }
    const program = Effect.gen(function* () {
      yield* modelOf(choice, options)
      const sessions = yield* openSessions(options)
      return yield* lines ? runLines(sessions, choice, way) : runOne(sessions, choice, prompt, way)
    })
    if (format === "text") return program
    return Effect.tapError(program, (error) => Effect.sync(() => printLine(failedResult(lineOf(error), choice.id))))
  })
}
