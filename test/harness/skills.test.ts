/**
 * Plugin Skills: places and precedence, the format, the index, the tool, and `/skill:name`.
 */
import { symlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import fc from "fast-check"
import type { JsonObject } from "../../src/domain/json.ts"
import { text, textOf } from "../../src/domain/message.ts"
import { estimateText } from "../../src/domain/token-estimate.ts"
import { builtinSkills } from "../../src/harness/plugins/skills/builtin.ts"
import { skillIndex } from "../../src/harness/plugins/skills/index-section.ts"
import { readSkill, type Skill } from "../../src/harness/plugins/skills/skill.ts"
import { makeSkills, skillsSection } from "../../src/harness/plugins/skills.ts"
import { contextOf } from "../tools/support.ts"
import { type Project, projectWith } from "./plugin-support.ts"

const skillFile = (name: string, description: string, body = `BODY OF ${name}`, more = "") =>
  `---\nname: ${name}\ndescription: ${description}\n${more}---\n${body}\n`

type Given = Parameters<Project["context"]>[1]
type Plugin = ReturnType<typeof makeSkills>

const requestOf = (project: Project, given: Given = {}, plugin: Plugin = makeSkills()) =>
  Effect.gen(function* () {
    const hook = plugin.hooks.beforeRequest
    if (hook === undefined) return yield* Effect.dieMessage("no hook")
    const request = { messages: [], sections: {}, tools: ["read", "skill"], model: "script/test", turn: 1 }
    const answer = yield* hook(request, project.context(plugin, given))
    return { index: answer?.sections?.[skillsSection] ?? null, tools: answer?.tools ?? request.tools }
  })

const inputOf = (project: Project, typed: string, given: Given = {}, plugin: Plugin = makeSkills()) =>
  Effect.gen(function* () {
    const hook = plugin.hooks.onInput
    if (hook === undefined) return yield* Effect.dieMessage("no hook")
    const answer = yield* hook({ content: [text(typed)] }, project.context(plugin, given))
    return answer?.content === undefined ? null : textOf(answer.content)
  })

/** A call of the tool within the plugin's own wrapping, as the pipeline makes it. */
const load = (project: Project, args: JsonObject, given: Given = {}, plugin: Plugin = makeSkills()) =>
  Effect.gen(function* () {
    const context = project.context(plugin, given)
    const [tool] = plugin.tools(context.options)
    const wrap = plugin.hooks.wrapTool
    if (tool === undefined || wrap === undefined) return yield* Effect.dieMessage("no tool")
    const call = { id: "1", name: "skill", args, effects: tool.effects }
    const result = yield* wrap(
      call,
      tool
        .execute(args, contextOf(context.workspace))
        .pipe(Effect.catchAll((failure) => Effect.succeed({ output: [text(failure.message)], isError: true }))),
      context,
    )
    return textOf(result.output)
  })

describe("places", () => {
  it.scoped("skills of the project, the person, further roots and the program are in the index", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({
        ".agents/skills/one/SKILL.md": skillFile("one", "First"),
        ".claude/skills/two/SKILL.md": skillFile("two", "Second"),
        ".super-pi/skills/three/SKILL.md": skillFile("three", "Third"),
        "packages/api/.agents/skills/four/SKILL.md": skillFile("four", "Fourth"),
        "~config/skills/five/SKILL.md": skillFile("five", "Fifth"),
        "~outside/skills/six/SKILL.md": skillFile("six", "Sixth"),
      })
      const { index } = yield* requestOf(project, {
        cwd: "packages/api",
        discoveryRoots: [join(project.root, "../outside")],
      })
      const names = [...(index ?? "").matchAll(/^- ([\w-]+):/gm)].map((one) => one[1])
      expect(names).toEqual(["four", "one", "two", "three", "five", "six", ...builtinSkills.map((one) => one.name)])
      expect(index).toContain("- four: Fourth (.agents/skills/four/SKILL.md)")
      expect(project.notices).toEqual([])
    }),
  )

  it.scoped("of two with one name the nearest wins, and the other is reported once", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({
        ".agents/skills/test/SKILL.md": skillFile("test", "Near"),
        "~config/skills/test/SKILL.md": skillFile("test", "Far"),
      })
      const plugin = makeSkills()
      const { index } = yield* requestOf(project, {}, plugin)
      yield* requestOf(project, {}, plugin)
      expect(index).toContain("Near")
      expect(index).not.toContain("Far")
      expect(project.notices.map(({ message }) => message)).toEqual([
        `skills: ${project.configDir}/skills/test/SKILL.md: the name "test" is that of ${project.root}/.agents/skills/test/SKILL.md, which is nearer; this one is not used`,
      ])
    }),
  )

  it.scoped("a project's skill may not be a link that leads out of it; the person's may lie anywhere", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({
        ".agents/skills/": "",
        "~config/skills/": "",
        "~outside/x/SKILL.md": skillFile("x", "Outside"),
      })
      const outside = join(project.root, "../outside/x")
      yield* Effect.promise(() => symlink(outside, join(project.root, ".agents/skills/x")))
      expect((yield* requestOf(project)).index).not.toContain("Outside")
      expect(project.notices[0]?.message).toContain("expected a file inside")
      yield* Effect.promise(() => symlink(outside, join(project.configDir, "skills/x")))
      expect((yield* requestOf(project)).index).toContain("Outside")
    }),
  )

  it.scoped("a changed skill is read anew", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ ".agents/skills/a/SKILL.md": skillFile("a", "Before") })
      const plugin = makeSkills()
      yield* requestOf(project, {}, plugin)
      yield* Effect.promise(() =>
        writeFile(join(project.root, ".agents/skills/a/SKILL.md"), skillFile("a", "Afterwards")),
      )
      expect((yield* requestOf(project, {}, plugin)).index).toContain("Afterwards")
    }),
  )
})

describe("the format", () => {
  const read = (source: string, directory = "a") => Effect.promise(() => readSkill(`/s/${directory}/SKILL.md`, source))

  it.effect("takes the fields of the public format", () =>
    Effect.gen(function* () {
      const more = `license: MIT\nmetadata:\n  author: x\nallowed-tools: Bash(git add:*) Read\ndisable-model-invocation: true\n`
      const result = yield* read(skillFile("a", ">-\n  Folded\n  text: with a colon", "Body", more))
      expect(result).toMatchObject({
        type: "skill",
        warnings: [],
        skill: {
          name: "a",
          description: "Folded text: with a colon",
          body: "Body",
          allowedTools: ["Bash(git add:*)", "Read"],
          forModel: false,
        },
      })
    }),
  )

  it.effect("takes a colon in a description without quotes, as many write it", () =>
    Effect.gen(function* () {
      const result = yield* read(skillFile("a", "Use when: tests fail: always"))
      expect(result).toMatchObject({ type: "skill", skill: { description: "Use when: tests fail: always" } })
    }),
  )

  it.effect("says what is wrong with each broken file", () =>
    Effect.gen(function* () {
      const cases: ReadonlyArray<readonly [string, string | RegExp]> = [
        [
          "no front matter",
          "name: expected 1 to 64 lower-case letters, digits and single dashes between them, got nothing",
        ],
        ["---\nname: a\n", "front matter: expected a line --- that ends it, got none"],
        ["---\n- a\n---\n", "front matter: expected fields, got something else"],
        ["---\nname: [a\n---\n", /^front matter: not YAML \(.+\)$/],
        [skillFile("Big-Name", "x"), /^name: expected 1 to 64 .*, got "Big-Name"$/],
        [skillFile("a--b", "x"), /^name: expected/],
        ["---\nname: a\n---\n", "description: expected a text, got nothing"],
        [skillFile("a", "x".repeat(1_025)), "description: expected at most 1024 characters, got 1025"],
        [
          skillFile("a", "x", "b", "disable-model-invocation: maybe\n"),
          'disable-model-invocation: expected true or false, got "maybe"',
        ],
        [
          skillFile("a", "x", "b", "allowed-tools: 3\n"),
          "allowed-tools: expected names of tools separated by blanks, got 3",
        ],
      ]
      for (const [source, reason] of cases) {
        const result = yield* read(source)
        expect(result.type === "fault" ? result.reason : result).toEqual(
          typeof reason === "string" ? reason : expect.stringMatching(reason),
        )
      }
    }),
  )

  it.effect("warns of a mistyped field and of a directory with another name, and takes the skill", () =>
    Effect.gen(function* () {
      const result = yield* read(skillFile("a", "x", "b", "allowed-tool: Read\nversion: 1\n"), "other")
      expect(result).toMatchObject({
        type: "skill",
        warnings: [
          'name: expected the name of its directory, "other", got "a"',
          'unknown field "allowed-tool"; did you mean "allowed-tools"?',
        ],
      })
    }),
  )

  it("never breaks, whatever a file holds", async () => {
    const source = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.string().map((body) => `---\n${body}\n---\n${body}`),
      fc.json().map((json) => `---\n${json}\n---\n`),
      fc.constant(`---\na: &a [x]\nb: [${"*a,".repeat(200)}]\nname: a\ndescription: b\n---\n`),
    )
    await fc.assert(
      fc.asyncProperty(source, async (given) => {
        const result = await readSkill("/s/a/SKILL.md", given)
        expect(["skill", "fault"]).toContain(result.type)
      }),
      { numRuns: 300 },
    )
  })

  it.scoped("a broken skill is skipped and reported once; the others count", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({
        ".agents/skills/bad/SKILL.md": "---\nname: bad\n---\n",
        ".agents/skills/empty/": "",
        ".agents/skills/good/SKILL.md": skillFile("good", "Fine"),
      })
      const plugin = makeSkills()
      const { index } = yield* requestOf(project, {}, plugin)
      yield* requestOf(project, {}, plugin)
      expect(index).toContain("- good: Fine")
      expect(project.notices.map(({ message }) => message)).toEqual([
        `skills: ${project.root}/.agents/skills/bad/SKILL.md: description: expected a text, got nothing; the skill is skipped`,
      ])
    }),
  )
})

describe("the index", () => {
  const skills = (count: number, chars: number): ReadonlyArray<Skill> =>
    Array.from({ length: count }, (_, at) => ({
      name: `skill-${at}`,
      description: "d".repeat(chars),
      path: `/w/.agents/skills/skill-${at}/SKILL.md`,
      directory: `/w/.agents/skills/skill-${at}`,
      body: "",
      allowedTools: [],
      forModel: true,
    }))

  it("stays within its budget: shorter descriptions first, then names alone", () => {
    expect(skillIndex("/w", skills(3, 300), 4_000)).toContain("d".repeat(300))
    const short = skillIndex("/w", skills(20, 1_000), 2_000) ?? ""
    expect(estimateText(short)).toBeLessThanOrEqual(2_000)
    expect(short).toContain("- skill-19:")
    const names = skillIndex("/w", skills(60, 1_000), 900) ?? ""
    expect(estimateText(names)).toBeLessThanOrEqual(900)
    expect(names).toMatch(/- without room here: .*skill-59$/)
  })

  it.scoped("names no skill that is for persons only", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({
        ".agents/skills/deploy/SKILL.md": skillFile("deploy", "Ships it", "SHIP", "disable-model-invocation: true\n"),
      })
      expect((yield* requestOf(project)).index).not.toContain("deploy")
      expect(yield* load(project, { name: "deploy" })).toContain('got "deploy"')
      expect(yield* inputOf(project, "/skill:deploy now")).toContain("SHIP")
    }),
  )
})

describe("the tool", () => {
  it.scoped("gives the instructions and the files, and each file by its name", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({
        "~config/skills/pdf/SKILL.md": skillFile("pdf", "PDF", "STEPS", "allowed-tools: read bash\n"),
        "~config/skills/pdf/references/forms.md": "FORMS",
        "~config/skills/pdf/scripts/fill.py": "print()",
      })
      const body = yield* load(project, { name: "pdf" })
      expect(body).toContain("STEPS")
      expect(body).toContain("references/forms.md, scripts/fill.py")
      expect(body).toContain("Tools that it is written for: read, bash")
      expect(yield* load(project, { name: "pdf", file: "references/forms.md" })).toBe("FORMS")
    }),
  )

  it.scoped("gives no file outside of the skill, through no path and no link", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({
        ".agents/skills/a/SKILL.md": skillFile("a", "A"),
        "secret.txt": "SECRET",
      })
      yield* Effect.promise(() =>
        symlink(join(project.root, "secret.txt"), join(project.root, ".agents/skills/a/link.txt")),
      )
      for (const file of [
        "../../../secret.txt",
        join(project.root, "secret.txt"),
        "link.txt",
        "x/../../../../secret.txt",
        "..",
      ]) {
        const said = yield* load(project, { name: "a", file })
        expect(said).not.toContain("SECRET")
        expect(said).toContain("expected")
      }
    }),
  )

  it.scoped("names the nearest skill for one that there is not, and the files for a missing one", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({
        ".agents/skills/review/SKILL.md": skillFile("review", "R"),
        ".agents/skills/review/a.md": "A",
      })
      expect(yield* load(project, { name: "reveiw" })).toMatch(/the nearest is "review"\), got "reveiw"/)
      expect(yield* load(project, { name: "review", file: "b.md" })).toBe('file: expected one of a.md, got "b.md"')
    }),
  )

  it.effect("refuses unknown arguments and may run again after a crash", () =>
    Effect.gen(function* () {
      const [tool] = makeSkills().tools({ indexTokens: 0 })
      if (tool === undefined) return yield* Effect.dieMessage("no tool")
      expect(tool.replay).toBe("safe")
      expect(tool.effects).toEqual(["read"])
      expect(Either.isLeft(yield* Effect.either(tool.decode({ skill: "x" })))).toBe(true)
    }),
  )
})

describe("/skill:name", () => {
  it.scoped("puts the skill in front of what is asked", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ ".agents/skills/a/SKILL.md": skillFile("a", "A") })
      const said = yield* inputOf(project, "/skill:a fix the build")
      expect(said).toMatch(/^<skill name="a">[\s\S]*BODY OF a[\s\S]*<\/skill>\n\nfix the build$/)
    }),
  )

  it.scoped("stays text where there is no such skill, and says which is nearest", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ ".agents/skills/lint/SKILL.md": skillFile("lint", "A") })
      expect(yield* inputOf(project, "/skill:lnit")).toBeNull()
      expect(project.notices).toEqual([
        {
          level: "warning",
          message: '/skill:lnit: expected a skill (the nearest is "lint"), got "lnit"; the input stays as it is',
        },
      ])
      expect(yield* inputOf(project, "use /skill:lint")).toBeNull()
    }),
  )

  it.scoped("is nothing in a subagent: a model wrote its input", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ ".agents/skills/a/SKILL.md": skillFile("a", "A") })
      expect(yield* inputOf(project, "/skill:a", { depth: 1 })).toBeNull()
    }),
  )
})
