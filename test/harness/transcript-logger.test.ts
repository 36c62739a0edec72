/**
 * Plugin TranscriptLogger: every entry once whenever the process dies, rotation, who may read it, and no secrets.
 */
import { readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs"
import { mkdir, rename, symlink } from "node:fs/promises"
import { basename, join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import { ConversationId, TaskId } from "../../src/domain/ids.ts"
import type { Json, JsonObject } from "../../src/domain/json.ts"
import { type Message, text } from "../../src/domain/message.ts"
import { redactText, secretsOf } from "../../src/domain/redact.ts"
import { lineOf } from "../../src/harness/plugins/transcript-logger/lines.ts"
import { makeTranscriptLogger, transcriptsIn } from "../../src/harness/plugins/transcript-logger.ts"
import { makeMemoryStore, memoryDatabase } from "../../src/storage/memory/store.ts"
import { Store, type StoreService } from "../../src/storage/store.ts"
import { type Project, projectWith } from "./plugin-support.ts"

const session = "0198c0de-0000-7000-8000-000000000001"
const conversation = ConversationId.make(1)

/** A database with one conversation. */
const database = (sessionId = session) =>
  Effect.gen(function* () {
    const store = yield* makeMemoryStore(memoryDatabase())
    yield* store.mint("conversation", 1)
    const [document] = yield* store.mint("document", 1)
    if (document === undefined) return yield* Effect.dieMessage("no id")
    yield* store.commit({
      conversations: [
        { id: conversation, parent: null, owner: null, principal: "local", title: "T", createdAt: 0, updatedAt: 0 },
      ],
      documents: [
        {
          ...{ id: document, kind: "pi.provider", scope: "conversation", conversation, task: null, key: "" },
          ...{ version: 1, history: "latest", fork: "initial", value: { sessionId } },
        },
      ],
    })
    return store
  })

const said = (words: string): Message => ({ role: "user", content: [text(words)] })

const add = (store: StoreService, ...messages: ReadonlyArray<Message>) =>
  Effect.gen(function* () {
    const ids = yield* store.mint("entry", messages.length)
    const entries = ids.map((id, at) => ({
      ...{ id, conversation, kind: "pi.user", data: null, head: null, edits: [], task: null, createdAt: 0 },
      model: messages.slice(at, at + 1),
    }))
    yield* store.commit({ entries })
  })

type Plugin = ReturnType<typeof makeTranscriptLogger>

const log = (project: Project, store: StoreService, plugin: Plugin, options: JsonObject = {}) =>
  Effect.gen(function* () {
    const hook = plugin.hooks.afterTools
    if (hook === undefined) return yield* Effect.dieMessage("no hook")
    yield* hook([], project.context(plugin, { options }))
  }).pipe(Effect.provideService(Store, store))

const ended = (project: Project, store: StoreService, plugin: Plugin, task: number) =>
  Effect.gen(function* () {
    const hook = plugin.hooks.afterRun
    if (hook === undefined) return yield* Effect.dieMessage("no hook")
    const run = { task: TaskId.make(task), outcome: "answered", text: null, tools: ["bash"] } as const
    yield* hook(run, project.context(plugin))
  }).pipe(Effect.provideService(Store, store))

const directory = (project: Project) => transcriptsIn(project.dataDir)
const fileOf = (project: Project, suffix = "") => join(directory(project), `1-${session}${suffix}.jsonl`)
const linesOf = (path: string): ReadonlyArray<JsonObject> =>
  readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line))
const files = (project: Project) =>
  readdirSync(directory(project)).toSorted((a, b) => {
    const order = (name: string) => Number(/\.(\d+)\.jsonl$/.exec(name)?.[1] ?? 0)
    return order(b) - order(a)
  })
const allLines = (project: Project) => files(project).flatMap((name) => linesOf(join(directory(project), name)))
const entryIds = (lines: ReadonlyArray<JsonObject>) =>
  lines.flatMap((line) => (line.type === "entry" ? [Number(line.id)] : []))

describe("a transcript", () => {
  it.scoped("has a head, every entry once in order, and the end of each run once", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const store = yield* database()
      const plugin = makeTranscriptLogger()
      yield* add(store, said("one"), said("two"))
      yield* log(project, store, plugin)
      yield* log(project, store, plugin)
      yield* add(store, said("three"))
      yield* ended(project, store, plugin, 7)
      yield* ended(project, store, plugin, 7)
      const lines = linesOf(fileOf(project))
      expect(lines[0]).toMatchObject({
        type: "transcript",
        version: 1,
        conversation: 1,
        title: "T",
        harness: "test",
        after: 0,
      })
      expect(entryIds(lines)).toEqual([1, 2, 3])
      expect(lines[1]).toMatchObject({ id: 1, kind: "pi.user", model: [{ role: "user", content: [{ text: "one" }] }] })
      expect(lines.filter((line) => line.type === "run")).toMatchObject([
        { task: 7, outcome: "answered", tools: ["bash"] },
      ])
    }),
  )

  it.scoped("is for its owner only, in a directory for its owner only", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const store = yield* database()
      yield* add(store, said("x"))
      yield* log(project, store, makeTranscriptLogger())
      expect(statSync(fileOf(project)).mode & 0o777).toBe(0o600)
      expect(statSync(directory(project)).mode & 0o777).toBe(0o700)
    }),
  )

  it.scoped("of another database with the same numbers is another file", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const plugin = makeTranscriptLogger()
      for (const id of [session, `${session}0`]) {
        const store = yield* database(id)
        yield* add(store, said(id))
        yield* log(project, store, plugin)
      }
      expect(files(project)).toHaveLength(2)
    }),
  )

  it.scoped("is written by several hooks at once without double lines", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const store = yield* database()
      const plugin = makeTranscriptLogger()
      yield* add(store, ...Array.from({ length: 20 }, (_, at) => said(`${at}`)))
      yield* Effect.all([log(project, store, plugin), log(project, store, plugin), ended(project, store, plugin, 1)], {
        concurrency: "unbounded",
      })
      expect(entryIds(linesOf(fileOf(project)))).toEqual(Array.from({ length: 20 }, (_, at) => at + 1))
    }),
  )
})

describe("after a death", () => {
  it.scoped("every entry is there once, wherever the file was cut off", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const store = yield* database()
      yield* add(store, said("one"), said("zwei ü 🎉"), said("three"))
      yield* log(project, store, makeTranscriptLogger())
      yield* ended(project, store, makeTranscriptLogger(), 3)
      const whole = readFileSync(fileOf(project))
      yield* add(store, said("four"))
      for (let at = 0; at <= whole.length; at++) {
        writeFileSync(fileOf(project), whole)
        truncateSync(fileOf(project), at)
        yield* ended(project, store, makeTranscriptLogger(), 3)
        const lines = linesOf(fileOf(project))
        expect(entryIds(lines)).toEqual([1, 2, 3, 4])
        expect(lines.filter((line) => line.type === "transcript")).toHaveLength(1)
        expect(lines.filter((line) => line.type === "run")).toHaveLength(1)
      }
    }),
  )

  it.scoped("between the rotation and the new file, the next append goes on from the rotated one", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const store = yield* database()
      yield* add(store, said("one"), said("two"))
      yield* log(project, store, makeTranscriptLogger())
      yield* Effect.promise(() => rename(fileOf(project), fileOf(project, ".1")))
      yield* add(store, said("three"))
      yield* log(project, store, makeTranscriptLogger())
      expect(linesOf(fileOf(project))[0]).toMatchObject({ type: "transcript", after: 2 })
      expect(entryIds(allLines(project))).toEqual([1, 2, 3])
    }),
  )

  it.scoped("an entry longer than what is read first is found from the end of the file", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const store = yield* database()
      yield* add(store, said("x"), said("y".repeat(99_000)))
      yield* log(project, store, makeTranscriptLogger())
      yield* add(store, said("z"))
      yield* log(project, store, makeTranscriptLogger())
      expect(entryIds(linesOf(fileOf(project)))).toEqual([1, 2, 3])
    }),
  )

  it.scoped("damaged lines in the middle do no harm", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const store = yield* database()
      yield* add(store, said("one"))
      yield* log(project, store, makeTranscriptLogger())
      writeFileSync(fileOf(project), `garbage\u0000\n${readFileSync(fileOf(project), "utf8")}[1]\n`)
      yield* add(store, said("two"))
      yield* log(project, store, makeTranscriptLogger())
      const found = readFileSync(fileOf(project), "utf8").match(/"type":"entry","id":(\d+)/g)
      expect(found).toEqual(['"type":"entry","id":1', '"type":"entry","id":2'])
    }),
  )
})

describe("rotation", () => {
  it.scoped("keeps so many files, loses no entry among them, and each begins with a head", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const store = yield* database()
      const plugin = makeTranscriptLogger()
      const options = { maxBytes: 1_024, keep: 3 }
      for (let at = 0; at < 12; at++) {
        yield* add(store, said("x".repeat(600)))
        yield* log(project, store, at % 2 === 0 ? plugin : makeTranscriptLogger(), options)
        if (at % 2 === 1) yield* log(project, store, plugin, options)
      }
      const names = files(project)
      expect(names).toHaveLength(4)
      expect(names.at(-1)).toBe(basename(fileOf(project)))
      for (const name of names) {
        const [head] = linesOf(join(directory(project), name))
        expect(head?.type).toBe("transcript")
      }
      const ids = entryIds(allLines(project))
      expect(ids).toEqual(Array.from({ length: ids.length }, (_, at) => 12 - ids.length + 1 + at))
    }),
  )
})

describe("what cannot be written", () => {
  it.scoped("is told once, disturbs nothing, and is written when it works again", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const store = yield* database()
      const plugin = makeTranscriptLogger()
      yield* add(store, said("one"))
      writeFileSync(directory(project), "a file in its place")
      yield* log(project, store, plugin)
      yield* log(project, store, plugin)
      expect(project.notices).toHaveLength(1)
      expect(project.notices[0]?.message).toMatch(/^transcripts: .*; what is missing is written when it works again$/)
      yield* Effect.promise(() => rename(directory(project), `${directory(project)}.old`))
      yield* log(project, store, plugin)
      expect(entryIds(linesOf(fileOf(project)))).toEqual([1])
    }),
  )

  it.scoped("a link in the place of the file is not followed", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ "~outside/victim": "KEEP" })
      const store = yield* database()
      yield* add(store, said("one"))
      yield* Effect.promise(async () => {
        await mkdir(directory(project))
        await symlink(join(project.root, "../outside/victim"), fileOf(project))
      })
      yield* log(project, store, makeTranscriptLogger())
      expect(readFileSync(join(project.root, "../outside/victim"), "utf8")).toBe("KEEP")
      expect(project.notices).toHaveLength(1)
    }),
  )
})

describe("what is not written down", () => {
  const options = { secrets: [], maxTextChars: 1_000_000 }

  it("forms of keys and credentials", () => {
    const secrets = [
      "sk-proj-abcdefghijklmnop1234",
      "sk-ant-api03-abcdefghijklmnopqrstuv",
      "ghp_abcdefghijklmnopqrstuvwx",
      "github_pat_11ABCDEFG0abcdefghijkl_x",
      "glpat-abcdefghijklmnop1234",
      "xoxb-1234567890-abcdef",
      "AKIAIOSFODNN7EXAMPLE",
      "AIzaSyA1234567890abcdefghijklmnopqrstu",
      "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3.SflKxwRJSMeKKF2QT4",
      "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----",
    ]
    for (const secret of secrets) {
      expect(redactText(`a ${secret} b`, [])).toBe("a [redacted] b")
    }
    expect(redactText("Authorization: Bearer abcdefghijklmnop", [])).toBe("Authorization: Bearer [redacted]")
    expect(redactText("postgres://me:pass@host/db", [])).toBe("postgres://me:[redacted]@host/db")
    const ordinary = "skip the task-list; see https://example.org:8080/a@b and basic usage of tokens"
    expect(redactText(ordinary, [])).toBe(ordinary)
  })

  it("the values of the node's keys, wherever they stand", () => {
    const secrets = secretsOf({
      OPENAI_API_KEY: 'va"lue-1234',
      PASSWORD: "short",
      HOME: "/home/somebody",
      DB_PASSWORD: "long-pass",
    })
    expect(secrets).toEqual(['va"lue-1234', "long-pass"])
    fc.assert(
      fc.property(fc.jsonValue(), fc.string(), fc.string(), (value, before, after) => {
        const secret = 'va"lue-1234'
        const line = lineOf(
          { value: value as Json, said: `${before}${secret}${after}`, inner: [{ deep: secret }] },
          { ...options, secrets },
        )
        expect(line).not.toContain("\n")
        const texts = JSON.stringify(JSON.parse(line))
        expect(texts).not.toContain('va\\"lue-1234')
      }),
      { numRuns: 300 },
    )
  })

  it("half of a secret that a cut would leave", () => {
    const line = lineOf(
      { said: `${"x".repeat(50)}my-secret-value` },
      { secrets: ["my-secret-value"], maxTextChars: 55 },
    )
    expect(line).not.toContain("my-se")
  })

  it("images, and what is longer than a text may be", () => {
    const image = { type: "image", mediaType: "image/png", data: "A".repeat(4_000) }
    expect(lineOf({ model: [{ content: [image] }] }, options)).toBe(
      '{"model":[{"content":[{"type":"image","mediaType":"image/png","base64Chars":4000}]}]}',
    )
    expect(lineOf({ said: "y".repeat(100) }, { ...options, maxTextChars: 10 })).toBe(
      '{"said":"yyyyyyyyyy[… 90 more characters]"}',
    )
  })

  it("takes no time that grows faster than the text", () => {
    for (const piece of ["a://", "Bearer ", "-----BEGIN PRIVATE KEY-----", "eyJ", "sk-a-", "x:"]) {
      const long = piece.repeat(20_000)
      expect(redactText(long, []).length).toBeGreaterThan(0)
    }
  })
})
