/**
 * Plugin Permissions: calls by effects, modes, lists, network and workspace; the layers of the policy; and a conversation under it.
 */
import { mkdir, symlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { type AgentDocument, ExecutionMode } from "../../src/domain/document.ts"
import type { JsonObject } from "../../src/domain/json.ts"
import { textOf } from "../../src/domain/message.ts"
import type { ToolEffect } from "../../src/domain/permissions.ts"
import { readPermissions, remoteMode } from "../../src/domain/permissions-policy.ts"
import { permissions } from "../../src/harness/plugins/permissions.ts"
import { SuperPi } from "../../src/super-pi.ts"
import { type Project, projectWith } from "./plugin-support.ts"

interface Asked {
  readonly args?: JsonObject
  readonly effects?: ReadonlyArray<ToolEffect>
  readonly mode?: ExecutionMode
  readonly options?: JsonObject
  readonly agent?: AgentDocument
  readonly conversation?: number
}

const decide = (project: Project, name: string, asked: Asked = {}) => {
  const { args = {}, effects = ["exec"], ...given } = asked
  const hook = permissions.hooks.beforeTool
  return Effect.map(
    hook?.({ id: "1", name, args, effects }, project.context(permissions, given)) ?? Effect.die("none"),
    (said) => {
      if (said === undefined) throw new Error("it said nothing")
      return said
    },
  )
}

const typeOf = (project: Project, name: string, asked: Asked = {}) =>
  Effect.map(decide(project, name, asked), (said) => said.type)

const settings = (section: unknown) => ({ "~config/settings.json": JSON.stringify({ permissions: section }) })

describe("effects and modes", () => {
  const rows: ReadonlyArray<readonly [string, ReadonlyArray<ToolEffect>, string, string, string]> = [
    ["search", ["read"], "allow", "allow", "allow"],
    ["fetch", ["net_read"], "allow", "allow", "allow"],
    ["fetch_and_read", ["read", "net_read"], "allow", "allow", "allow"],
    ["todo", ["state_write"], "block", "allow", "allow"],
    ["remember", ["read", "net_read", "state_write"], "block", "allow", "allow"],
    ["write", ["fs_write"], "block", "allow", "allow"],
    ["edit", ["fs_write"], "block", "allow", "allow"],
    ["deploy", ["net_write"], "block", "ask", "allow"],
    ["render", ["fs_write"], "block", "ask", "allow"],
    ["run", ["exec"], "block", "ask", "allow"],
    ["mcp__x__y", [], "block", "ask", "allow"],
    ["write", ["fs_write", "exec"], "block", "ask", "allow"],
  ]
  for (const [name, effects, ...expected] of rows) {
    it.scoped(
      `${name} with ${effects.join(", ") || "no effects stated"}: ${expected.join(", ")} in plan, accept-edits, auto`,
      () =>
        Effect.gen(function* () {
          const project = yield* projectWith()
          const said = yield* Effect.forEach(ExecutionMode.literals, (mode) => typeOf(project, name, { effects, mode }))
          expect(said).toEqual(expected)
        }),
    )
  }

  it.scoped("the network in plan is a setting", () =>
    Effect.gen(function* () {
      const project = yield* projectWith(settings({ networkInPlanMode: false }))
      expect(yield* typeOf(project, "fetch", { effects: ["net_read"], mode: "plan" })).toBe("block")
      expect(yield* typeOf(project, "fetch", { effects: ["net_read"], mode: "accept-edits" })).toBe("allow")
    }),
  )

  it.scoped("a ceiling of the settings lowers the mode", () =>
    Effect.gen(function* () {
      const project = yield* projectWith(settings({ maxExecutionMode: "plan" }))
      expect(yield* typeOf(project, "write", { effects: ["fs_write"], args: { path: "a" }, mode: "auto" })).toBe(
        "block",
      )
      expect(yield* typeOf(project, "read", { effects: ["read"], args: { path: "a" }, mode: "auto" })).toBe("allow")
    }),
  )
})

describe("lists", () => {
  it.scoped("tools are allowed and denied by name or pattern, and a denied one stays denied", () =>
    Effect.gen(function* () {
      const project = yield* projectWith(
        settings({ allowTools: ["mcp__files__*", "deploy"], denyTools: ["*__remove", "todo"] }),
      )
      const edits: Asked = { effects: [], mode: "accept-edits" }
      expect(yield* typeOf(project, "mcp__files__list", edits)).toBe("allow")
      expect(yield* typeOf(project, "deploy", edits)).toBe("allow")
      expect(yield* typeOf(project, "mcp__files__remove", edits)).toBe("block")
      expect(yield* typeOf(project, "mcp__other__list", edits)).toBe("ask")
      expect(yield* typeOf(project, "todo", { effects: ["state_write"], mode: "auto" })).toBe("block")
      expect(yield* typeOf(project, "deploy", { effects: [], mode: "plan" })).toBe("block")
    }),
  )

  it.scoped("a command asks with the pattern that an answer keeps, and is allowed once the session keeps it", () =>
    Effect.gen(function* () {
      const project = yield* projectWith(settings({ allow: ["git status"] }))
      const asked: Asked = { args: { command: "git status && git push 'origin' \"a b\"" }, mode: "accept-edits" }
      const said = yield* decide(project, "bash", asked)
      expect(said).toMatchObject({ type: "ask", rule: "permissions.allow", timeoutMs: 120_000 })
      if (said.type !== "ask") throw new Error(said.type)
      expect(said.remember).toEqual({ commands: ["git push origin 'a b'"], tools: [] })
      expect(said.reason).toContain("`git push 'origin' \"a b\"` is not in permissions.allow")
      const agent = { settingsOverride: { permissions: { allow: said.remember?.commands ?? [] } } }
      expect(yield* typeOf(project, "bash", { ...asked, agent })).toBe("allow")
      const never = { settingsOverride: { permissions: { deny: said.remember?.commands ?? [] } } }
      expect(yield* typeOf(project, "bash", { ...asked, mode: "auto", agent: never })).toBe("block")
    }),
  )

  it.scoped("what is not known is not kept", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const said = yield* decide(project, "bash", { args: { command: "git push $WHERE" }, mode: "accept-edits" })
      expect(said.type).toBe("ask")
      expect(said).not.toHaveProperty("remember")
    }),
  )

  it.scoped("a tool that is not allowed by default is kept by its name", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const said = yield* decide(project, "mcp__x__y", { effects: [], mode: "accept-edits" })
      expect(said).toMatchObject({
        type: "ask",
        remember: { commands: [], tools: ["mcp__x__y"] },
        title: "Use the tool mcp__x__y",
      })
    }),
  )

  it.scoped("without prompts what would ask is blocked", () =>
    Effect.gen(function* () {
      const project = yield* projectWith(settings({ interactivePrompts: false }))
      expect(yield* typeOf(project, "bash", { args: { command: "ls" }, mode: "accept-edits" })).toBe("block")
    }),
  )
})

describe("the network", () => {
  const fetching = (url?: string): Asked => ({
    effects: ["net_read"],
    args: url === undefined ? {} : { url },
    mode: "auto",
  })

  it.scoped("deny refuses every tool with a network effect, also one that states none", () =>
    Effect.gen(function* () {
      const project = yield* projectWith(settings({ network: "deny" }))
      expect(yield* typeOf(project, "fetch", fetching("https://example.com"))).toBe("block")
      expect(yield* typeOf(project, "post", { effects: ["net_write"] })).toBe("block")
      expect(yield* typeOf(project, "mcp__x__y", { effects: [] })).toBe("block")
      expect(yield* typeOf(project, "read", { effects: ["read"], args: { path: "a" } })).toBe("allow")
    }),
  )

  it.scoped("an allowlist takes a host and its subdomains, and refuses a call without a URL", () =>
    Effect.gen(function* () {
      const project = yield* projectWith(
        settings({ network: "allowlist", networkAllowHosts: ["Example.com", "10.0.0.1"] }),
      )
      const types = (urls: ReadonlyArray<string>) =>
        Effect.forEach(urls, (url) => typeOf(project, "fetch", fetching(url)))
      expect(
        yield* types([
          "https://example.com/x",
          "http://api.EXAMPLE.com:8080/",
          "https://example.com./",
          "http://10.0.0.1/",
        ]),
      ).toEqual(Array.from({ length: 4 }, () => "allow"))
      const others = [
        "https://example.com.evil.org/",
        "https://notexample.com/",
        "https://example.com@evil.org/",
        "https://evil.org/?x=example.com",
        "https://evil.org#example.com",
        "https://evil.org\\@example.com/",
        "http://1.10.0.0.1.evil/",
        "example.com",
        "",
      ]
      expect(yield* types(others)).toEqual(others.map(() => "block"))
      expect(yield* typeOf(project, "fetch", fetching())).toBe("block")
    }),
  )
})

describe("the workspace", () => {
  it.scoped("file tools that leave it are blocked, also through a link and through what does not exist", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ "a.txt": "a", "~outside/secret": "s" })
      yield* Effect.promise(async () => {
        await symlink(join(project.root, "../outside"), join(project.root, "link"))
        await mkdir(join(project.root, "sub"))
      })
      const read = (path: string) => typeOf(project, "read", { effects: ["read"], args: { path } })
      expect(yield* read("a.txt")).toBe("allow")
      expect(yield* read(join(project.root, "a.txt"))).toBe("allow")
      expect(yield* read("sub/../a.txt")).toBe("allow")
      for (const path of ["../outside/secret", "link/secret", "link/new", "/etc/passwd", "~/.bashrc", "sub/../../x"]) {
        expect(yield* read(path), path).toBe("block")
      }
      const found = yield* decide(project, "write", { effects: ["fs_write"], args: { path: "link/new" }, mode: "auto" })
      expect(found).toMatchObject({ type: "block", rule: "workspace" })
    }),
  )

  it.scoped("commands that name paths outside ask, also through a link", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ "~outside/secret": "s" })
      yield* Effect.promise(() => symlink(join(project.root, "../outside"), join(project.root, "link")))
      const bash = (command: string) => typeOf(project, "bash", { args: { command }, mode: "auto" })
      expect(yield* bash("cat link/secret")).toBe("ask")
      expect(yield* bash("cd link && cat secret")).toBe("ask")
      expect(yield* bash("echo x > link/y")).toBe("ask")
      expect(yield* bash("echo x > y 2>/dev/null")).toBe("allow")
    }),
  )

  it.scoped("settings open it, or add directories that commands may name", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ "~outside/x": "s" })
      const write = (section: unknown) =>
        Effect.promise(() =>
          writeFile(join(project.configDir, "settings.json"), JSON.stringify({ permissions: section })),
        )
      const outside = join(project.root, "../outside")
      const read = typeOf(project, "read", { effects: ["read"], args: { path: join(outside, "x") } })
      const cat = typeOf(project, "bash", { args: { command: "cat ../outside/x" } })
      yield* write({ additionalDirectories: [outside] })
      expect([yield* cat, yield* read]).toEqual(["allow", "block"])
      yield* write({ allowNonWorkspaceAccess: true })
      expect([yield* cat, yield* read]).toEqual(["allow", "allow"])
    }),
  )
})

describe("the layers", () => {
  it.scoped("no layer lifts what another one set", () =>
    Effect.gen(function* () {
      const project = yield* projectWith(settings({ network: "deny", deny: ["make"], allow: ["ls"] }))
      const agent = { settingsOverride: { permissions: { network: "allow", allow: ["make", "id"] } } }
      expect(yield* typeOf(project, "fetch", { effects: ["net_read"], agent })).toBe("block")
      expect(yield* typeOf(project, "bash", { args: { command: "make all" }, agent })).toBe("block")
      const options = { allow: ["pwd -P"] }
      const edits = (command: string) =>
        typeOf(project, "bash", { args: { command }, agent, options, mode: "accept-edits" })
      expect(yield* Effect.forEach(["ls", "id", "pwd -P"], edits)).toEqual(["allow", "allow", "allow"])
    }),
  )

  it.scoped("a change of settings.json counts for the next call", () =>
    Effect.gen(function* () {
      const project = yield* projectWith()
      const bash = typeOf(project, "bash", { args: { command: "ls -la" }, mode: "accept-edits" })
      expect(yield* bash).toBe("ask")
      yield* Effect.promise(() =>
        writeFile(join(project.configDir, "settings.json"), '{"permissions":{"allow":["ls:*"]}}'),
      )
      expect(yield* bash).toBe("allow")
    }),
  )

  it.scoped(
    "what is wrong in settings.json is said once, with key, expectation and the nearest name, and the rest counts",
    () =>
      Effect.gen(function* () {
        const project = yield* projectWith(
          settings({
            allow: ["ls:*", "a | b"],
            netwrok: "deny",
            maxExecutionMode: "accept-edit",
            permissionPromptTimeoutMs: -1,
          }),
        )
        const asked: Asked = { args: { command: "ls" }, mode: "accept-edits" }
        yield* decide(project, "bash", asked)
        yield* decide(project, "bash", asked)
        const messages = project.notices.map(({ message }) => message.replace(project.configDir, ""))
        expect(messages).toHaveLength(4)
        expect(messages.join("\n")).toContain(
          "/settings.json: permissions.allow[1]: expected a pattern of one simple command",
        )
        expect(messages.join("\n")).toContain('did you mean "permissions.network"')
        expect(messages.join("\n")).toContain('"plan", "accept-edits" or "auto"; the nearest is "accept-edits"')
        expect(messages.join("\n")).toContain(
          "permissionPromptTimeoutMs: expected a whole number of milliseconds above 0, got -1",
        )
      }),
  )

  it.scoped("a restriction that cannot be read asks rather than being forgotten; reading goes on", () =>
    Effect.gen(function* () {
      const project = yield* projectWith({ "~config/settings.json": '{"permissions": {"deny": ["rm -rf"' })
      const said = yield* decide(project, "bash", { args: { command: "ls" }, mode: "auto" })
      expect(said).toMatchObject({ type: "ask", rule: "settings" })
      expect(yield* typeOf(project, "read", { effects: ["read"], args: { path: "x" } })).toBe("allow")
      expect(project.notices.filter(({ message }) => message.includes("not JSON"))).toHaveLength(1)
      const broken = yield* projectWith(settings({ deny: "rm" }))
      expect(yield* typeOf(broken, "bash", { args: { command: "ls" }, mode: "auto" })).toBe("ask")
    }),
  )

  it("reads a section key by key", () => {
    expect(readPermissions([]).faults).toEqual([{ key: "permissions", expected: "an object", actual: "[]" }])
    const { faults, rules, unreadable } = readPermissions({
      allow: ["git status", 1],
      networkAllowHosts: ["https://x"],
      allowTools: "x",
    })
    expect(rules).toEqual({ allow: ["git status"], networkAllowHosts: [] })
    expect(faults.map(({ key }) => key)).toEqual([
      "permissions.allow[1]",
      "permissions.networkAllowHosts[0]",
      "permissions.allowTools",
    ])
    expect(unreadable).toEqual(["permissions.networkAllowHosts[0]"])
  })
})

describe("remote callers", () => {
  it("only tighten the mode where nothing is configured", () => {
    expect(remoteMode("auto", "accept-edits", {})).toBe("accept-edits")
    expect(remoteMode("plan", "auto", {})).toBe("plan")
    expect(remoteMode(undefined, "auto", {})).toBe("auto")
  })

  it("get the default that is configured, and any mode up to the highest", () => {
    const configured = { remoteDefaultMode: "plan", remoteMaxMode: "accept-edits" } as const
    expect(remoteMode(undefined, "auto", configured)).toBe("plan")
    expect(remoteMode("auto", "plan", configured)).toBe("accept-edits")
    expect(remoteMode("accept-edits", "plan", configured)).toBe("accept-edits")
  })
})

describe("a conversation", () => {
  const calls = [
    { name: "bash", args: { command: "echo one; rm -rf build" } },
    { name: "bash", args: { command: "echo two" } },
  ]
  const rules = [{ match: "", steps: [{ text: "calling", tools: calls }, { text: "done" }] }]

  it("runs what is allowed and blocks what is denied, with the reason for the model", () =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const project = yield* projectWith()
          const layer = SuperPi.layer({
            storage: "memory",
            models: { model: "script/test", script: { rules } as never },
            harness: "guarded",
            extraHarnesses: [
              {
                id: "guarded",
                name: "G",
                description: "G",
                prompt: "G",
                plugins: [["permissions", { deny: ["rm -rf"] }]],
              },
            ],
          })
          const entries = yield* Effect.gen(function* () {
            const conversation = yield* (yield* SuperPi).open({ agent: { mode: "auto", cwd: project.root } })
            yield* conversation.ask("go")
            return yield* conversation.transcript
          }).pipe(Effect.provide(layer))
          const results = entries.flatMap(({ model }) =>
            model.flatMap((one) => (one.role === "tool" ? [textOf(one.content)] : [])),
          )
          expect(results[0]).toContain('`rm -rf build` matches the denied "rm -rf"')
          expect(results[1]).toContain("two")
        }),
      ),
    ))
})
