/**
 * Plugin TranscriptLogger: writes what a conversation's transcript holds as lines of JSON below the data directory, for people and other
 * programs. The database stays the truth: a transcript goes on where its file ends, and what a death left out comes with the next lines.
 */
import { join } from "node:path"
import { Clock, Effect, Schema } from "effect"
import { DocumentKind } from "../../domain/document.ts"
import { EntryId } from "../../domain/ids.ts"
import { isJsonObject, type JsonObject } from "../../domain/json.ts"
import { secretsOf } from "../../domain/redact.ts"
import { makeDirectories } from "../../storage/directories.ts"
import { Store, type StoreService } from "../../storage/store.ts"
import { reasonOf } from "../../tools/workspace.ts"
import { Bounded } from "../bounded.ts"
import { definePlugin } from "../define.ts"
import { Reports } from "../discovery-report.ts"
import type { HookContext } from "../plugin.ts"
import { append, type Standing, standingNow } from "./transcript-logger/file.ts"
import { entryLine, lineOf } from "./transcript-logger/lines.ts"

const mebibyte = 1024 * 1024

const TranscriptLoggerOptions = Schema.Struct({
  /** Bytes after which a file is rotated. */
  maxBytes: Schema.optionalWith(Schema.Int.pipe(Schema.between(1024, 1024 * mebibyte)), {
    default: () => 16 * mebibyte,
  }),
  /** Rotated files of a conversation that are kept. */
  keep: Schema.optionalWith(Schema.Int.pipe(Schema.between(0, 100)), { default: () => 5 }),
  /** Characters of one text; the rest of it is left out. */
  maxTextChars: Schema.optionalWith(Schema.Int.pipe(Schema.positive()), { default: () => 100_000 }),
  /** Whether known secrets are taken out. */
  redact: Schema.optionalWith(Schema.Boolean, { default: () => true }),
})
type Context = HookContext<typeof TranscriptLoggerOptions.Type>

/** A conversation's file in this process. */
interface Log {
  readonly path: string
  /** One append at a time. */
  readonly lock: Effect.Semaphore
  /** Null before the file was looked at, and after an append that failed. */
  standing: Standing | null
}

const forget = (log: Log): void => {
  log.standing = null
}

/** Entries that one append takes. */
const entriesAtOnce = 500

/** Directory of the transcripts. */
export const transcriptsIn = (dataDir: string): string => join(dataDir, "transcripts")

/** One instance remembers where files stand. */
export const makeTranscriptLogger = () => {
  const logs = new WeakMap<StoreService, Bounded<string, Log>>()
  const reports = new Reports()

  /** Named by number and by an id that is unique over databases: two of them may share a data directory. */
  const logOf = (context: Context): Effect.Effect<Log, unknown, Store> =>
    Effect.gen(function* () {
      const store = yield* Store
      const known = logs.get(store) ?? new Bounded<string, Log>(1_000)
      logs.set(store, known)
      const directory = transcriptsIn(context.places.dataDir)
      const key = `${directory}\0${context.conversation}`
      const before = known.get(key)
      if (before !== undefined) return before
      const documents = yield* store.documents(context.conversation)
      const { value = null } = documents.find(({ kind }) => kind === DocumentKind.provider) ?? {}
      const session = isJsonObject(value) && typeof value.sessionId === "string" ? value.sessionId : ""
      const name = `${context.conversation}-${session.replace(/[^\w-]/g, "")}.jsonl`
      const log: Log = { path: join(directory, name), lock: Effect.unsafeMakeSemaphore(1), standing: null }
      // Another call may have been faster meanwhile: there is one lock for a file.
      const meanwhile = known.get(key)
      if (meanwhile === undefined) known.set(key, log)
      return meanwhile ?? log
    })

  const write = (context: Context, run: JsonObject | null): Effect.Effect<void, unknown, Store> =>
    Effect.gen(function* () {
      const store = yield* Store
      const log = yield* logOf(context)
      const { agent, conversation, harness, mode, options } = context
      const lineOptions = {
        secrets: options.redact ? secretsOf(process.env) : [],
        maxTextChars: options.maxTextChars,
      }
      const record = yield* store.conversation(conversation)
      const head = (after: number) => () =>
        lineOf(
          {
            ...{ type: "transcript", version: 1, conversation, title: record?.title ?? null, after, harness },
            parent: record?.parent ?? null,
            agent: { model: agent.model ?? null, effort: agent.effort ?? null, mode, cwd: context.workspace.root },
          },
          lineOptions,
        )
      const put = (at: Standing, lines: ReadonlyArray<string>, lastEntry: number, runs: ReadonlySet<number>) =>
        Effect.tryPromise(() => append(log.path, at, lines, options, head(at.lastEntry))).pipe(
          Effect.tap((bytes) => Effect.sync(() => Object.assign(log, { standing: { lastEntry, runs, bytes } }))),
        )
      yield* Effect.gen(function* () {
        log.standing = yield* Effect.tryPromise(async () => {
          makeDirectories(transcriptsIn(context.places.dataDir), 0o700)
          return standingNow(log.path, log.standing)
        })
        for (;;) {
          const at = log.standing
          const from = EntryId.make(at.lastEntry + 1)
          const entries = yield* store.entries(conversation, { from })
          const next = entries.slice(0, entriesAtOnce)
          const last = next.at(-1)
          if (last === undefined) break
          yield* put(
            at,
            next.map((entry) => lineOf(entryLine(entry), lineOptions)),
            last.id,
            at.runs,
          )
          if (next.length === entries.length) break
        }
        const at = log.standing
        if (run === null || typeof run.task !== "number" || at.runs.has(run.task)) return
        yield* put(at, [lineOf(run, lineOptions)], at.lastEntry, new Set([...at.runs, run.task].slice(-100)))
      }).pipe(
        // What is in the file after a failure is looked at anew.
        Effect.onError(() => Effect.sync(() => forget(log))),
        log.lock.withPermits(1),
      )
    })

  /** Not being able to write it down is told once and disturbs nothing. */
  const record = (context: Context, run: JsonObject | null = null): Effect.Effect<undefined, never, Store> =>
    write(context, run).pipe(
      Effect.catchAll((error) => {
        const cause = error instanceof Error && "error" in error ? error.error : error
        const message = `transcripts: ${transcriptsIn(context.places.dataDir)}: ${reasonOf(cause)}; what is missing is written when it works again`
        return reports.tell([{ level: "warning", message, version: "" }], context)
      }),
      Effect.as(undefined),
    )

  return definePlugin({
    name: "transcript-logger",
    aliases: ["transcripts"],
    description: "JSONL transcripts below the data directory, with known secrets taken out",
    options: TranscriptLoggerOptions,
    hooks: {
      beforeAgentStart: (_, context) => record(context),
      afterTools: (_, context) => record(context),
      afterRun: ({ outcome, task, tools }, context) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) =>
          record(context, { type: "run", task, outcome, tools, at: new Date(now).toISOString() }),
        ),
    },
  })
}

export const transcriptLogger = makeTranscriptLogger()
