/**
 * `super-pi chat`: a chat line by line.
 *
 * One loop takes what happens in order: lines, Ctrl-C, the end of input, submissions that ended.
 * 1. On a terminal a line is submitted at once, also while a turn runs (it is queued, or steers with `!`).
 * 2. From anything else a line waits until the one before has its answer, and the chat leaves after the last.
 * 3. Ctrl-C cancels the running turn; pressed again before anything else is typed, it leaves.
 *    While a question is open, it rejects that first; so does Esc.
 * 4. A prompt behind a parked run counts as unanswered; `/retry` makes the chat busy until the conversation rests again.
 * 5. `/new`, `/fork` and `/resume` change the conversation; what runs in the former one goes on.
 */
import { Effect, Fiber, Queue, type Scope, Stream } from "effect"
import type { SessionsService } from "../actors/sessions.ts"
import type { SessionState } from "../domain/event.ts"
import { type Failure, InvalidRequest } from "../domain/failure.ts"
import type { SubmissionId } from "../domain/ids.ts"
import { text } from "../domain/message.ts"
import { restorePaste } from "../protocols/terminal/paste.ts"
import { oneLine } from "../protocols/terminal/sanitize.ts"
import { transcriptText } from "../protocols/terminal/transcript.ts"
import type { Invocation } from "./arguments.ts"
import { type ChatAsks, makeChatAsks } from "./chat-ask.ts"
import { runSlashCommand } from "./chat-commands.ts"
import { candidatesOf, complete } from "./chat-complete.ts"
import { passedOn } from "./chat-custom.ts"
import { openEditor } from "./chat-editor.ts"
import { type Follower, makeFollower } from "./chat-follow.ts"
import { isChatCommand, readChatLine } from "./chat-input.ts"
import { type Meter, makeMeter } from "./chat-meter.ts"
import { type ChatModels, makeChatModels } from "./chat-models.ts"
import { type ChatScreen, makeChatScreen } from "./chat-screen.ts"
import { nodeOptionsOf, pathsOf } from "./context.ts"
import { type Choice, choiceOf, forkConversation, openConversation } from "./conversation.ts"
import { CommandFailure, ExitCode } from "./exit.ts"
import { modelOf } from "./model-check.ts"
import { openSessions } from "./node.ts"
import { version } from "./package.ts"
import type { NodeOptions } from "./ports.ts"
import { lineOf, runCommand, type Signals } from "./runtime.ts"

type Happening =
  | { readonly kind: "line"; readonly line: string }
  | { readonly kind: "interrupt" }
  /** Esc. */
  | { readonly kind: "escape" }
  | { readonly kind: "end" }
  | { readonly kind: "settled"; readonly id: SubmissionId; readonly answered: boolean }
  /** The conversation was idle at the event of this number. */
  | { readonly kind: "rest"; readonly at: number }
  | { readonly kind: "lost"; readonly why: string }

interface Chat {
  readonly sessions: SessionsService
  readonly screen: ChatScreen
  readonly asks: ChatAsks
  readonly models: ChatModels
  readonly meter: Meter
  readonly follower: Follower
  readonly options: NodeOptions
  readonly happenings: Queue.Queue<Happening>
  /** Where the present conversation works, for whoever asks while a line is typed. */
  readonly place: { cwd: string | null }
  /** Commands that the conversation expands, where it works in this directory. */
  readonly passedOn: (cwd: string | null) => Effect.Effect<ReadonlySet<string>>
  readonly choice: Choice
  /** The model of conversations that name none, where it is known. */
  readonly defaultModel: string | null
  /** Whether a person types: see rule 1. */
  readonly interactive: boolean
}

/** Entries of an earlier conversation that are shown when it is gone on with. */
const recalled = 4

/** How long the events may lag behind the end of a submission. */
const eventLag = "1 second"

const greet = (
  { defaultModel, follower, meter, place, screen, sessions }: Chat,
  session: SessionState,
): Effect.Effect<void, Failure> =>
  Effect.gen(function* () {
    const facts = [
      `conversation ${session.conversation_id}`,
      session.model || (defaultModel ?? ""),
      session.cwd ?? "",
    ].filter((fact) => fact !== "")
    screen.say(`super-pi ${version()} · ${facts.map(oneLine).join(" · ")}`, "dim")
    if (screen.cursor) screen.say("/help lists what can be typed", "dim")
    place.cwd = session.cwd
    meter.begin([])
    follower.begin([])
    if (session.entries === 0) return
    const entries = yield* sessions.transcript({ conversationId: session.conversation_id })
    meter.begin(entries)
    follower.begin(entries)
    screen.say(
      transcriptText(
        entries.slice(-recalled).filter((entry) => entry.kind !== "pi.system"),
        screen.paint,
      ),
    )
  })

/** Shows the conversation's events until it is interrupted, and says which submissions ended. */
const follow = (
  { asks, follower, happenings, interactive, meter, sessions }: Chat,
  session: SessionState,
): Effect.Effect<void, never, Scope.Scope> =>
  sessions.watch({ conversationId: session.conversation_id, after: null, interactive }).pipe(
    Stream.runForEach((event) =>
      Effect.gen(function* () {
        asks.event(event)
        meter.event(event)
        yield* follower.event(event)
        const rests =
          (event.type === "state_changed" && event.to === "idle") ||
          (event.type === "snapshot" && event.session.state === "idle")
        if (rests) return yield* Queue.offer(happenings, { kind: "rest", at: event.seq_no })
        const ended = event.type === "submission_updated" && (event.status === "done" || event.status === "unanswered")
        if (!ended) return
        yield* Queue.offer(happenings, { kind: "settled", id: event.submission_id, answered: event.status === "done" })
      }),
    ),
    Effect.catchAll((error) => Queue.offer(happenings, { kind: "lost", why: lineOf(error) })),
  )

/** The loop. Gives the exit code. */
const converse = (chat: Chat): Effect.Effect<number, Failure | CommandFailure, Scope.Scope> =>
  Effect.gen(function* () {
    const { asks, follower, sessions, screen, happenings, interactive } = chat
    let session = yield* openConversation(sessions, chat.choice, null)
    let isNew = session.entries === 0 && chat.choice.id === null && !chat.choice.latest
    yield* greet(chat, session)
    let following = yield* Effect.forkScoped(follow(chat, session))

    const open = new Set<SubmissionId>()
    const backlog: Array<string> = []
    let unfinished = ""
    let ending = false
    let armed = false
    let failed = false

    /** The newest event when a parked run was taken up again; null once the conversation rested after it. */
    let retriedAt: number | null = null

    const waiting = () => open.size > 0 || retriedAt !== null
    const busy = () => waiting() || screen.view().startedAt !== null
    const submit = (prompt: string, steer: boolean) =>
      Effect.gen(function* () {
        const wasBusy = busy()
        const receipt = yield* sessions.submit({
          conversationId: session.conversation_id,
          content: [text(prompt)],
          whenBusy: steer ? "steer" : "followUp",
          requestId: follower.typed(),
        })
        isNew = false
        const id = receipt.submission_id
        open.add(id)
        // The event says it first. When another process took the node over meanwhile that event may be lost; the record is not.
        yield* sessions.awaitSubmission({ conversationId: session.conversation_id, submissionId: id }).pipe(
          Effect.tap((settled) =>
            settled.reason === "parked" ? Effect.sync(() => screen.say(settled.detail ?? "", "error")) : Effect.void,
          ),
          Effect.map((settled) => settled.status === "done"),
          Effect.orElseSucceed(() => false),
          Effect.zipLeft(Effect.sleep(eventLag)),
          Effect.flatMap((answered) => Queue.offer(happenings, { kind: "settled", id, answered })),
          Effect.forkScoped,
        )
        if (wasBusy && interactive)
          screen.remark(steer ? "joins the running turn" : "queued: asked when this turn has ended", "dim")
      })
    const retry = Effect.suspend(() => sessions.state({ conversationId: session.conversation_id })).pipe(
      Effect.flatMap(({ conversation_id: conversationId, parked }) =>
        parked === null
          ? Effect.sync(() => screen.say("nothing is parked", "dim"))
          : Effect.map(sessions.retry({ conversationId }), ({ seq_no, state }) => {
              retriedAt = state === "idle" ? null : seq_no
            }),
      ),
    )
    const switchTo = (next: SessionState) =>
      Effect.gen(function* () {
        yield* Fiber.interrupt(following)
        session = next
        isNew = next.entries === 0
        open.clear()
        retriedAt = null
        asks.reset()
        screen.reset()
        yield* greet(chat, session)
        following = yield* Effect.forkScoped(follow(chat, session))
      })
    const openNumbered = (word: string): Effect.Effect<SessionState, Failure | CommandFailure> => {
      const id = /^\d{1,15}$/.test(word) ? Number(word) : 0
      if (id > 0) return openConversation(sessions, { ...chat.choice, id, latest: false, overrides: {} }, null)
      const expected = "the number of a conversation (see /sessions)"
      return new InvalidRequest({ path: "/resume", expected, actual: JSON.stringify(word) })
    }
    const handle = (line: string): Effect.Effect<"leave" | "stay", Failure | CommandFailure, Scope.Scope> =>
      Effect.gen(function* () {
        if (unfinished === "" && (yield* asks.line(line))) return "stay" as const
        // Files may have come since the last line.
        const others = `${unfinished}${line}`.trimStart().startsWith("/")
          ? yield* chat.passedOn(session.cwd)
          : undefined
        const read = readChatLine(unfinished, line, others)
        unfinished = read.kind === "more" ? read.text : ""
        switch (read.kind) {
          case "nothing":
          case "more":
            return "stay" as const
          case "fault":
            screen.remark(read.message, "error")
            return "stay" as const
          case "prompt":
          case "steer":
            yield* submit(read.text, read.kind === "steer")
            return "stay" as const
          case "command": {
            if (read.name === "exit") return "leave" as const
            if (read.name === "retry") {
              yield* retry
              return "stay" as const
            }
            if (read.name === "new") {
              yield* switchTo(yield* openConversation(sessions, { ...chat.choice, id: null, latest: false }, null))
              return "stay" as const
            }
            if (read.name === "fork") {
              yield* switchTo(yield* forkConversation(sessions, session.conversation_id, read.argument))
              return "stay" as const
            }
            if (read.name === "resume") {
              yield* switchTo(yield* openNumbered(read.argument))
              return "stay" as const
            }
            const { defaultModel, models, options } = chat
            const context = { sessions, screen, models, defaultModel, settings: options.settings }
            yield* runSlashCommand({ ...context, conversationId: session.conversation_id }, read.name, read.argument)
            return "stay" as const
          }
        }
      }).pipe(
        Effect.catchAll((error) =>
          Effect.sync(() => {
            failed = true
            screen.remark(lineOf(error), "error")
            return "stay" as const
          }),
        ),
      )
    const leave = (code: number) =>
      Effect.gen(function* () {
        yield* Fiber.interrupt(following)
        if (isNew) yield* Effect.ignore(sessions.remove({ conversationId: session.conversation_id }))
        return code
      })

    for (;;) {
      const happening = yield* Queue.take(happenings)
      if (happening.kind === "line") {
        armed = false
        backlog.push(happening.line)
      } else if (happening.kind === "settled") {
        open.delete(happening.id)
        if (!happening.answered) failed = true
      } else if (happening.kind === "rest") {
        if (retriedAt !== null && happening.at > retriedAt) retriedAt = null
      } else if (happening.kind === "lost") return yield* Effect.fail(new CommandFailure(happening.why))
      else if (happening.kind === "end") {
        if (interactive) return yield* leave(ExitCode.ok)
        ending = true
      } else if (happening.kind === "escape" || (interactive && !armed && asks.isOpen())) {
        yield* asks.reject
      } else if (armed) return yield* leave(busy() ? ExitCode.interrupted : ExitCode.ok)
      else {
        armed = true
        backlog.length = 0
        if (busy() || screen.view().compacting) {
          screen.say("cancelling; Ctrl-C again leaves", "dim")
          yield* Effect.forkScoped(
            sessions
              .cancel({ conversationId: session.conversation_id })
              .pipe(Effect.catchAll((error) => Effect.sync(() => screen.say(lineOf(error), "error")))),
          )
        } else if (interactive) screen.say("Ctrl-C again, Ctrl-D or /exit leaves", "dim")
        else return yield* leave(ExitCode.interrupted)
      }
      while (backlog.length > 0 && (interactive || !waiting())) {
        if ((yield* handle(backlog.shift() ?? "")) === "leave") return yield* leave(ExitCode.ok)
      }
      if (ending && backlog.length === 0 && !waiting()) {
        return yield* leave(armed ? ExitCode.interrupted : failed ? ExitCode.failure : ExitCode.ok)
      }
    }
  })

const chatWith = (
  invocation: Invocation,
  signals: Signals,
): Effect.Effect<number, Failure | { readonly message: string }, Scope.Scope> =>
  Effect.gen(function* () {
    const choice = choiceOf(invocation)
    const options = nodeOptionsOf(invocation)
    const defaultModel = yield* modelOf(choice, options)
    const sessions = yield* openSessions(options)
    const happenings = yield* Queue.unbounded<Happening>()
    const tell = (happening: Happening) => void Queue.unsafeOffer(happenings, happening)
    const models = yield* makeChatModels(options)
    const meter = makeMeter(options.settings.models?.prices ?? {})
    const screen = makeChatScreen(process.stdout, process.env, () => ({ defaultModel, cost: meter.dollars() }))
    const place: Chat["place"] = { cwd: null }
    const passing = (cwd: string | null) => passedOn(cwd, options.settings)
    const sources = {
      models: () => Effect.runPromise(Effect.map(models.list, (all) => all.map(({ id }) => id))),
      others: () => Effect.runPromise(Effect.map(passing(place.cwd), (names) => [...names])),
      harnesses: () =>
        Effect.runPromise(Effect.map(sessions.harnesses, ({ harnesses }) => harnesses.map(({ id }) => id))),
      directory: () => place.cwd ?? options.cwd,
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        signals.onInterrupt(() => tell({ kind: "interrupt" }))
        const editor = openEditor(
          { cursor: screen.cursor, historyFile: pathsOf(invocation).chatHistory },
          {
            onLine: (line, rows) => {
              screen.entered(restorePaste(line), rows, !isChatCommand(line))
              tell({ kind: "line", line })
            },
            onInterrupt: () => tell({ kind: "interrupt" }),
            onEscape: () => tell({ kind: "escape" }),
            isRunning: () => screen.view().startedAt !== null,
            onEnd: () => tell({ kind: "end" }),
            hint: screen.hint,
            complete: async (line) => {
              const candidates = await candidatesOf(line, sources)
              return { ...complete(candidates), token: candidates.token }
            },
          },
        )
        screen.attach(editor.drawn)
        return editor
      }),
      (editor) =>
        Effect.sync(() => {
          signals.onInterrupt(undefined)
          screen.end()
          editor.close()
        }),
    )
    const interactive = process.stdin.isTTY === true
    const asks = makeChatAsks({ sessions, screen, interactive })
    const follower = makeFollower(sessions, screen)
    const known = { sessions, models, meter, follower, options, place, choice, defaultModel, interactive }
    return yield* converse({ ...known, screen, asks, happenings, passedOn: passing })
  })

export const main = (invocation: Invocation): Promise<number> => runCommand((signals) => chatWith(invocation, signals))
