/**
 * How a tool is made: {@link defineTool} turns an Effect Schema into the tool's JSON Schema, its argument check with messages that a
 * model can act on, and typed arguments for its code.
 */
import { Data, Effect, Either, type ParseResult, Schema } from "effect"
import type { Json, JsonObject } from "../domain/json.ts"
import { nearestNames } from "../domain/nearest.ts"
import { shown } from "../domain/shown.ts"
import { expectedAt, namesAt, parametersOf, repairArguments } from "./parameters.ts"
import type {
  InvalidArguments,
  Reconciliation,
  Tool,
  ToolContext,
  ToolEffect,
  ToolFailure,
  ToolResult,
} from "./tool.ts"

class InvalidArgumentsError extends Data.TaggedError("InvalidArguments")<{
  readonly tool: string
  readonly detail: string
}> {
  override get message() {
    return `${this.tool}: ${this.detail}`
  }
}

class ToolFailureError extends Data.TaggedError("ToolFailure")<{
  readonly tool: string
  readonly message: string
  readonly details?: Json
  readonly inDoubt?: boolean
}> {}

/** The arguments of a call of `tool` are wrong; `detail` has one line per fault, `path: expected X, got Y`. */
export const invalidArguments = (tool: string, detail: string): InvalidArguments =>
  new InvalidArgumentsError({ tool, detail })

/** A failure for the model to read: what went wrong and what to do instead. */
export const toolFailure = (tool: string, message: string, details?: Json): ToolFailure =>
  new ToolFailureError(details === undefined ? { tool, message } : { tool, message, details })

/** A failure after which nobody knows whether the effect happened, for example a payment request that timed out. */
export const effectInDoubt = (tool: string, message: string, details?: Json): ToolFailure =>
  new ToolFailureError({ tool, message, inDoubt: true, ...(details === undefined ? {} : { details }) })

/** What {@link defineTool} takes. `A` is the decoded side of `parameters`. */
export interface ToolDefinition<A, I, R> {
  readonly name: string
  /** For the model: what it does, when to use it, its limits. */
  readonly description: string
  /** Schema of an object; field descriptions go to the model. */
  readonly parameters: Schema.Schema<A, I>
  readonly effects: ReadonlyArray<ToolEffect>
  /** What one call may touch, where that depends on its arguments. */
  readonly effectsOf?: (args: A) => ReadonlyArray<ToolEffect>
  /** Default `unsafe`. */
  readonly replay?: "safe" | "unsafe"
  /** Default `parallel`. */
  readonly execution?: "parallel" | "sequential"
  /** Default `settled`. */
  readonly whenInterrupted?: "settled" | "inDoubt"
  readonly execute: (args: A, context: ToolContext) => Effect.Effect<ToolResult, ToolFailure, R>
  /** Finds out what became of an unsafe call that was cut off; see {@link Tool.reconcile}. */
  readonly reconcile?: (args: A, context: ToolContext) => Effect.Effect<Reconciliation, ToolFailure, R>
}

interface Fault {
  readonly path: ReadonlyArray<PropertyKey>
  readonly actual: unknown
  readonly unexpected: boolean
}

/** The leaves of a parse issue, each with the path that it is at. */
const faultsOf = (issue: ParseResult.ParseIssue, path: ReadonlyArray<PropertyKey>): ReadonlyArray<Fault> => {
  switch (issue._tag) {
    case "Pointer":
      return faultsOf(issue.issue, path.concat(issue.path))
    case "Composite": {
      const issues = "_tag" in issue.issues ? [issue.issues] : issue.issues
      if (issue.ast._tag !== "Union") return issues.flatMap((each) => faultsOf(each, path))
      // Of an optional field only the branch that is not `undefined` says anything; of a real union no single branch does.
      const real = issues.filter((each) => !(each._tag === "Type" && each.ast._tag === "UndefinedKeyword"))
      const [only] = real
      return real.length === 1 && only !== undefined
        ? faultsOf(only, path)
        : [{ path, actual: issue.actual, unexpected: false }]
    }
    case "Refinement":
    case "Transformation":
      return faultsOf(issue.issue, path)
    case "Missing":
      return [{ path, actual: undefined, unexpected: false }]
    case "Unexpected":
      return [{ path, actual: issue.actual, unexpected: true }]
    case "Type":
    case "Forbidden":
      return [{ path, actual: issue.actual, unexpected: false }]
  }
}

const render = (path: ReadonlyArray<PropertyKey>): string =>
  path.length === 0
    ? "arguments"
    : path
        .map((step, index) => (typeof step === "number" ? `[${step}]` : `${index > 0 ? "." : ""}${String(step)}`))
        .join("")

const explain = (parameters: JsonObject, fault: Fault): string => {
  if (!fault.unexpected)
    return `${render(fault.path)}: expected ${expectedAt(parameters, fault.path)}, got ${shown(fault.actual)}`
  const names = namesAt(parameters, fault.path.slice(0, -1))
  const near = nearestNames(String(fault.path.at(-1)), names, 1)[0]
  const instead = near === undefined ? `one of the fields ${names.join(", ")}` : `the field name "${near}"`
  return `${render(fault.path)}: expected ${instead}, got an unknown field with ${shown(fault.actual)}`
}

/**
 * Makes a {@link Tool}. `decode` repairs what models commonly get wrong (see `repairArguments`), validates, and returns the plain JSON
 * that is committed as the call's intent; `execute` decodes it again, so that a call resumed by a newer version is validated too.
 */
export const defineTool = <A, I, R = never>(definition: ToolDefinition<A, I, R>): Tool<R> => {
  const { name } = definition
  const parameters = parametersOf(definition.parameters)
  const parse = Schema.decodeUnknownEither(definition.parameters, { errors: "all", onExcessProperty: "error" })
  const check = (args: Json): Either.Either<A, InvalidArguments> =>
    Either.mapLeft(parse(args), (error) =>
      invalidArguments(
        name,
        faultsOf(error.issue, [])
          .map((fault) => explain(parameters, fault))
          .join("\n"),
      ),
    )
  const { effectsOf, reconcile } = definition
  /** Runs `use` on the arguments as they are decoded now. */
  const decoded = <B>(args: Json, use: (args: A) => Effect.Effect<B, ToolFailure, R>) =>
    Effect.suspend((): Effect.Effect<B, ToolFailure, R> => {
      const checked = check(args)
      return Either.isLeft(checked) ? Effect.fail(toolFailure(name, checked.left.detail)) : use(checked.right)
    })
  return {
    spec: { name, description: definition.description, parameters },
    decode: (args) => {
      const repaired = repairArguments(args, parameters)
      return Either.map(check(repaired), () => repaired)
    },
    effects: definition.effects,
    ...(effectsOf === undefined
      ? {}
      : {
          effectsOf: (args) =>
            Either.match(check(args), { onLeft: () => definition.effects, onRight: (valid) => effectsOf(valid) }),
        }),
    replay: definition.replay ?? "unsafe",
    execution: definition.execution ?? "parallel",
    whenInterrupted: definition.whenInterrupted ?? "settled",
    execute: (args, context) => decoded(args, (valid) => definition.execute(valid, context)),
    ...(reconcile === undefined
      ? {}
      : {
          reconcile: (args, context) => decoded(args, (valid) => reconcile(valid, context)),
        }),
  }
}
