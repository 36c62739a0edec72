/**
 * Plugin Rules: where rules are found, what has room, what stays the same, and what is broken.
 */
import { chown, rename, symlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import type { Message } from "../../src/domain/message.ts"
import { estimateText } from "../../src/domain/token-estimate.ts"
import { placesOfWork } from "../../src/harness/plugins/rules/places-of-work.ts"
import { fitInto, render } from "../../src/harness/plugins/rules/render.ts"
import { makeRules, sectionNames } from "../../src/harness/plugins/rules.ts"
import { type Project, projectWith } from "./plugin-support.ts"

const called = (name: string, path: string): Message => ({
  role: "assistant",
  model: "script/test",
  stopReason: "tool_calls",
  content: [{ type: "toolCall", id: "1", name, arguments: { path } }],
})

const requested = (messages: ReadonlyArray<Message> = []) => ({
  messages,
  sections: {},
  tools: [],
  model: "script/test",
  turn: 1,
})

/** The sections of one request. */
const sectionsOf = (
  project: Project,
  given: Parameters<Project["context"]>[1] = {},
  messages: ReadonlyArray<Message> = [],
  plugin = makeRules(),
) =>
  Effect.gen(function* () {
    const hook = plugin.hooks.beforeRequest
    if (hook === undefined) return yield* Effect.dieMessage("no hook")
    const answer = yield* hook(requested(messages), project.context(plugin, given))
    return {
      rules: answer?.sections?.[sectionNames.rules] ?? null,
      nested: answer?.sections?.[sectionNames.nested] ?? null,
    }
  })

describe("where rules come from", () => {
  it.scoped("the workspace, its parents up to the repository, and the person; nearer ones come later", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({
        "~outside/AGENTS.md": "OUTSIDE",
        "~config/AGENTS.md": "PERSON",
        "~config/rules/style.md": "PERSON STYLE",
        "AGENTS.md": "REPOSITORY",
        ".agents/rules/b.md": "RULE B",
        ".agents/rules/a.md": "RULE A",
        ".agents/rules/notes.txt": "NO RULE",
        "packages/api/GEMINI.md": "GEMINI",
        "packages/api/CLAUDE.md": "CLAUDE",
      })
      const { rules } = yield* sectionsOf(project, { cwd: "packages/api" })
      const order = ["PERSON STYLE", "PERSON", "RULE B", "RULE A", "REPOSITORY", "CLAUDE", "GEMINI"]
      const at = order.map((word) => (rules ?? "").search(new RegExp(`^${word}$`, "m")))
      expect(at.every((place) => place > 0)).toBe(true)
      expect(at.toSorted((a, b) => a - b)).toEqual(at)
      expect(rules).not.toContain("NO RULE")
      expect(rules).not.toContain("OUTSIDE")
    }),
  )

  it.scoped("further discovery roots count like the configuration directory", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ "~outside/rules/company.md": "COMPANY" })
      const { rules } = yield* sectionsOf(project, { discoveryRoots: [join(project.root, "..", "outside")] })
      expect(rules).toContain("COMPANY")
    }),
  )

  it.scoped("without a repository, parents of the workspace are not looked at", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ "AGENTS.md": "PARENT", "inner/AGENTS.md": "OWN" })
      yield* Effect.promise(() => rename(join(project.root, ".git"), join(project.root, "no-git")))
      const { rules } = yield* sectionsOf(project, { cwd: "inner" })
      expect(rules).toContain("OWN")
      expect(rules).not.toContain("PARENT")
    }),
  )

  it.scoped.runIf(process.getuid?.() === 0)(
    "a repository that somebody else put above the workspace is not its own",
    () =>
      Effect.gen(function* () {
        const project = yield* projectWith({ "AGENTS.md": "STRANGER", "inner/AGENTS.md": "OWN" })
        yield* Effect.promise(async () => {
          await chown(join(project.root, ".git"), 12_345, 12_345)
        })
        const { rules } = yield* sectionsOf(project, { cwd: "inner" })
        expect(rules).toContain("OWN")
        expect(rules).not.toContain("STRANGER")
      }),
  )

  it.scoped("a workspace that is not there has no project", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ "AGENTS.md": "PARENT", "~config/AGENTS.md": "PERSON" })
      const { rules } = yield* sectionsOf(project, { cwd: "gone" })
      expect(rules).toContain("PERSON")
      expect(rules).not.toContain("PARENT")
    }),
  )

  it.scoped("the same text twice, and a file that only points to its neighbour, count once", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ "AGENTS.md": "SAME", "GEMINI.md": "SAME\n", "CLAUDE.md": "@AGENTS.md\n" })
      const { rules } = yield* sectionsOf(project)
      expect(rules?.match(/SAME/g)).toHaveLength(1)
      expect(rules).not.toContain("CLAUDE.md")
    }),
  )

  it.scoped("no rules are no section", () =>
    Effect.gen(function* () {
      expect(yield* sectionsOf(yield* projectWith())).toEqual({ rules: null, nested: null })
    }),
  )
})

describe("rules of subdirectories", () => {
  it.scoped("come once a call names a file there, and stay out of the first section", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({
        "AGENTS.md": "ROOT",
        "packages/api/AGENTS.md": "API",
        "packages/web/AGENTS.md": "WEB",
      })
      const before = yield* sectionsOf(project)
      const after = yield* sectionsOf(project, {}, [called("read", "packages/api/src/x.ts")])
      expect(before.nested).toBeNull()
      expect(after.nested).toContain("API")
      expect(after.nested).not.toContain("WEB")
      expect(after.rules).toBe(before.rules)
    }),
  )

  it.scoped("do not come where the option says so", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ "a/AGENTS.md": "A" })
      const found = yield* sectionsOf(project, { options: { nested: false } }, [called("read", "a/x.ts")])
      expect(found.nested).toBeNull()
    }),
  )

  it("no path of a call leads out of the workspace", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.string(), fc.constantFrom("../x", "/etc/passwd", "a/../../b", "a/b/c", "./a"))),
        (paths) => {
          const found = placesOfWork(
            "/work/space",
            paths.map((path) => called("read", path)),
          )
          expect(found.filter((one) => one.startsWith("/") || one.split("/").includes(".."))).toEqual([])
          expect(found.length).toBeLessThanOrEqual(48 + 1)
        },
      ),
      { numRuns: 300 },
    )
  })
})

describe("the budget", () => {
  it.scoped("cuts the farthest first, and says what is missing", () =>
    Effect.gen(function* () {
      const line = "word ".repeat(40).trim()
      const long = `${`${line}\n`.repeat(40)}`
      const project = yield* projectWith({
        "AGENTS.md": `FAR\n${long}`,
        "near/AGENTS.md": "NEAR",
        "~config/AGENTS.md": `FARTHEST\n${long}`,
      })
      const { rules } = yield* sectionsOf(project, { cwd: "near", options: { budgetTokens: 400 } })
      expect(rules).toContain("NEAR")
      expect(rules).toContain("FAR\n")
      expect(rules).toMatch(/\[cut: there is no room for the rest; read .*AGENTS\.md/)
      expect(rules).not.toContain("FARTHEST")
      expect(rules).toContain(`Left out for lack of room; read them where they matter: ${project.configDir}/AGENTS.md`)
    }),
  )

  it("is never passed, whatever the files are, and nothing near gives way to something far", () => {
    const files = fc.array(fc.record({ path: fc.string(), text: fc.string({ maxLength: 3_000, minLength: 1 }) }), {
      maxLength: 12,
    })
    fc.assert(
      fc.property(files, fc.integer({ min: 0, max: 2_000 }), (found, budget) => {
        const fitted = fitInto(found, budget)
        expect(fitted.tokens).toBeLessThanOrEqual(budget)
        const shownTokens = fitted.shown.reduce((sum, one) => sum + estimateText(one.text), 0)
        expect(shownTokens).toBeLessThanOrEqual(fitted.tokens)
        // One file more at the far end changes nothing of those that were whole.
        const whole = fitted.shown.filter((one) => !one.cut)
        const more = fitInto([...found, { path: "far", text: "far" }], budget)
        expect(more.shown.slice(0, whole.length).map((one) => one.text)).toEqual(
          fitted.shown.slice(0, whole.length).map((one) => one.text),
        )
      }),
      { numRuns: 500 },
    )
  })

  it("gives the same text for the same files", () => {
    const files = [{ path: "AGENTS.md", text: "a\nb" }]
    expect(render("i", fitInto(files, 100))).toBe(render("i", fitInto(files, 100)))
  })
})

describe("changes", () => {
  it.scoped("a changed file is read anew, an unchanged one gives the same text", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ "AGENTS.md": "FIRST" })
      const plugin = makeRules()
      const first = yield* sectionsOf(project, {}, [], plugin)
      expect(yield* sectionsOf(project, {}, [], plugin)).toEqual(first)
      yield* Effect.promise(() => writeFile(join(project.root, "AGENTS.md"), "SECOND, LONGER"))
      const { rules } = yield* sectionsOf(project, {}, [], plugin)
      expect(rules).toContain("SECOND")
      expect(rules).not.toContain("FIRST")
    }),
  )
})

describe("broken files", () => {
  it.scoped("are skipped and reported once; the others count", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({
        "AGENTS.md": "GOOD",
        "GEMINI.md": new Uint8Array([0xff, 0xfe, 0x00, 0xd8, 0x41]),
        ".agents/rules/huge.md": "x".repeat(300 * 1024),
        ".agents/rules/dir.md/": "",
        "~outside/secret": "SECRET KEY",
      })
      yield* Effect.promise(async () => {
        await symlink("loop.md", join(project.root, ".agents/rules/loop.md"))
        await symlink(join(project.root, "../outside/secret"), join(project.root, "CLAUDE.md"))
      })
      const plugin = makeRules()
      const { rules } = yield* sectionsOf(project, {}, [], plugin)
      yield* sectionsOf(project, {}, [], plugin)
      expect(rules).toContain("GOOD")
      expect(rules).not.toContain("SECRET")
      const told = project.notices.map((notice) => notice.message.replaceAll(project.root, ""))
      expect(told.toSorted()).toEqual([
        "rules: /.agents/rules/huge.md: expected at most 256.0 KB, got 300.0 KB; the file is skipped",
        "rules: /.agents/rules/loop.md: too many symbolic links; the file is skipped",
        expect.stringMatching(
          /^rules: \/CLAUDE\.md: expected a file inside .*, got a link to .*outside\/secret; the file is skipped$/,
        ),
        "rules: /GEMINI.md: expected UTF-8 text, got other bytes; the file is skipped",
      ])
    }),
  )

  it.scoped("a repaired file that breaks again is reported again; another conversation hears of it too", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ "AGENTS.md": new Uint8Array([0xff]) })
      const plugin = makeRules()
      yield* sectionsOf(project, {}, [], plugin)
      yield* sectionsOf(project, { conversation: 2 }, [], plugin)
      expect(project.notices).toHaveLength(2)
      yield* Effect.promise(() => writeFile(join(project.root, "AGENTS.md"), new Uint8Array([0xff, 0xff])))
      yield* sectionsOf(project, {}, [], plugin)
      expect(project.notices).toHaveLength(3)
    }),
  )

  it.scoped("a byte order mark and CRLF are not part of the text", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ "AGENTS.md": "\uFEFFfirst\r\nsecond\r\n" })
      const { rules } = yield* sectionsOf(project)
      expect(rules).toContain(">\nfirst\nsecond\n<")
    }),
  )

  it.scoped("a directory that cannot be read is reported", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ "AGENTS.md": "GOOD", ".agents/": "" })
      const loop = join(project.root, ".agents/rules")
      yield* Effect.promise(() => symlink("rules", loop))
      const { rules } = yield* sectionsOf(project)
      expect(rules).toContain("GOOD")
      expect(project.notices).toEqual([{ level: "warning", message: `rules: ${loop}: too many symbolic links` }])
    }),
  )
})
