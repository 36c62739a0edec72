/**
 * Properties of the policy, each over at least a thousand random calls.
 */
import fc from "fast-check"
import { describe, it } from "vitest"
import { ExecutionMode } from "../../src/domain/document.ts"
import type { ToolEffect } from "../../src/domain/permissions.ts"
import { type JudgedCall, type Judgement, judgeCall } from "../../src/domain/permissions-judge.ts"
import { type PermissionSettings, policyOf } from "../../src/domain/permissions-policy.ts"
import { readShell } from "../../src/domain/shell/read.ts"

const numRuns = 2000

const programs = [
  "git",
  "rm",
  "npm",
  "ls",
  "cat",
  "sh",
  "bash",
  "xargs",
  "find",
  "env",
  "timeout",
  "sudo",
  "curl",
  "eval",
  "$CMD",
  "cd",
  "true",
  "python3",
]
const args = [
  "status",
  "-rf",
  "-r",
  "--force",
  "push",
  "test",
  "x",
  "'a b'",
  "$X",
  "*",
  "-c",
  "'rm -rf x'",
  "/etc/passwd",
  "A=1",
  "{a,b}",
  "--",
  "5",
  '"$(rm x)"',
  "https://example.com/x",
]

const simple = fc
  .tuple(
    fc.option(fc.constantFrom("A=1 ", "PATH=x ", "CI=1 ", "Y=$(ls) "), { nil: "" }),
    fc.constantFrom(...programs),
    fc.array(fc.constantFrom(...args), { maxLength: 4 }),
    fc.option(fc.constantFrom(" > out", " < in", " 2>&1", " > /tmp/x"), { nil: "" }),
  )
  .map(([assigned, program, words, redirect]) => `${assigned}${[program, ...words].join(" ")}${redirect}`)

/** Whole commands: nothing of them is left open. */
const command = fc.letrec<{ command: string }>((tie) => ({
  command: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    simple,
    fc.tuple(tie("command"), fc.constantFrom(" && ", " || ", " | ", "; ", "\n"), simple).map((parts) => parts.join("")),
    tie("command").map((inner) => `(${inner})`),
    tie("command").map((inner) => `echo $(${inner})`),
    tie("command").map((inner) => `if ${inner}; then ls; fi`),
  ),
})).command

const patterns = [
  "git status:*",
  "git push",
  "git push --force",
  "rm",
  "rm -rf",
  "ls:*",
  "cat:*",
  "npm test",
  "sudo",
  "find:*",
  "curl",
  "*",
  "env:*",
  "xargs:*",
  "echo:*",
  "PATH=* ls:*",
]
const list = fc.option(fc.uniqueArray(fc.constantFrom(...patterns), { maxLength: 5 }), { nil: undefined })
const tools = ["bash", "read", "write", "edit", "mcp__x__y", "web_fetch", "todo"]
const toolList = fc.option(fc.uniqueArray(fc.constantFrom(...tools, "mcp__*"), { maxLength: 3 }), { nil: undefined })

const settings: fc.Arbitrary<PermissionSettings> = fc
  .record({
    allow: list,
    deny: list,
    allowTools: toolList,
    denyTools: toolList,
    network: fc.constantFrom("allow", "allowlist", "deny", undefined),
    networkAllowHosts: fc.option(fc.constantFrom(["example.com"], ["evil.org"]), { nil: undefined }),
    networkInPlanMode: fc.constantFrom(true, false, undefined),
    allowNonWorkspaceAccess: fc.constantFrom(true, false, undefined),
    maxExecutionMode: fc.constantFrom("plan", "accept-edits", "auto", undefined),
  })
  .map((rules) => Object.fromEntries(Object.entries(rules).filter(([, value]) => value !== undefined)))

const effect: fc.Arbitrary<ToolEffect> = fc.constantFrom(
  "read",
  "fs_write",
  "exec",
  "net_read",
  "net_write",
  "state_write",
)

const call: fc.Arbitrary<JudgedCall> = fc.oneof(
  command.map((text) => ({
    tool: "bash",
    args: { command: text },
    effects: ["exec"] as const,
    script: readShell(text),
    outside: text.includes("/etc") ? ["/etc/passwd"] : [],
  })),
  fc.record({
    tool: fc.constantFrom(...tools.slice(1)),
    args: fc.constantFrom(
      {},
      { url: "https://api.example.com/x" },
      { url: "https://example.com.evil.org" },
      { path: "x" },
    ),
    effects: fc.uniqueArray(effect, { maxLength: 4 }),
    script: fc.constant(null),
    outside: fc.constantFrom([], ["/etc/passwd"]),
  }),
)

const mode = fc.constantFrom(...ExecutionMode.literals)
const levels = ["allow", "ask", "block"]
const level = (judgement: Judgement): number => levels.indexOf(judgement.type)

const judge = (one: JudgedCall, at: ExecutionMode, rules: PermissionSettings): number =>
  level(judgeCall(one, at, policyOf([{ rules }])))

describe("the policy never loosens", () => {
  it("as the mode is tightened", () => {
    fc.assert(
      fc.property(call, settings, (one, rules) => {
        const [plan = 0, edits = 0, auto = 0] = ExecutionMode.literals.map((at) => judge(one, at, rules))
        return plan >= edits && edits >= auto
      }),
      { numRuns },
    )
  })

  it("as anything is added to what is denied", () => {
    fc.assert(
      fc.property(call, mode, settings, list, toolList, (one, at, rules, deny = [], denyTools = []) => {
        const more = {
          ...rules,
          deny: [...(rules.deny ?? []), ...deny],
          denyTools: [...(rules.denyTools ?? []), ...denyTools],
        }
        return judge(one, at, more) >= judge(one, at, rules)
      }),
      { numRuns },
    )
  })

  it("as a layer is added that allows nothing", () => {
    fc.assert(
      fc.property(call, mode, settings, settings, (one, at, rules, other) => {
        const { allow: _, allowTools: __, networkAllowHosts: ___, ...tighter } = other
        const layered = level(
          judgeCall(one, at, policyOf([{ rules }, { rules: { allowNonWorkspaceAccess: false, ...tighter } }])),
        )
        const walled = level(judgeCall(one, at, policyOf([{ rules: { allowNonWorkspaceAccess: false, ...rules } }])))
        return layered >= Math.min(walled, judge(one, at, rules))
      }),
      { numRuns },
    )
  })

  it("as a command is appended, prepended, put in a pipeline or in a group", () => {
    const wrap = fc.constantFrom<(a: string, b: string) => string>(
      (a, b) => `${a}; ${b}`,
      (a, b) => `${a} && ${b}`,
      (a, b) => `${b} || ${a}`,
      (a, b) => `${a} | ${b}`,
      (a, b) => `${a}\n${b}`,
      (a, b) => `( ${a}\n ); ${b}`,
      (a, b) => `{ ${a}\n}; ${b}`,
      (a, b) => `while ${b}; do ${a}\ndone`,
    )
    fc.assert(
      fc.property(command, command, wrap, mode, settings, (a, b, both, at, rules) => {
        const of = (text: string): JudgedCall => ({
          tool: "bash",
          args: { command: text },
          effects: ["exec"],
          script: readShell(text),
          outside: [],
        })
        return judge(of(both(a, b)), at, rules) >= judge(of(a), at, rules)
      }),
      { numRuns },
    )
  })
})

describe("reading a command", () => {
  it("never throws, whatever the text is", () => {
    const shell = fc
      .array(
        fc.constantFrom(..."$(){}[]<>|&;'\"`\\\n \t*?!#~=-abcrm0".split(""), "$((", "<<EOF", "${", "do", "esac", "[["),
        { maxLength: 40 },
      )
      .map((all) => all.join(""))
    fc.assert(
      fc.property(fc.oneof(shell, fc.string({ unit: "binary", maxLength: 60 })), (text) => {
        readShell(text)
      }),
      { numRuns: 5000 },
    )
  })
})
