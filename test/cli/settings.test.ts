/**
 * Paths, the settings file, and where a JSON text is broken.
 */
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { conventionalPlace } from "../../src/cli/convention.ts"
import { ensureDataDir, pluginPlaces, resolvePaths } from "../../src/cli/paths.ts"
import { loadSettings, readSettings } from "../../src/cli/settings.ts"
import { jsonFaultAt, lineAndColumn } from "../../src/domain/json-fault.ts"

const linux = { platform: "linux", home: "/home/me", cwd: "/here" } as const

describe("paths", () => {
  it("takes permissions key by key, and names what is wrong with one", () => {
    const text = JSON.stringify({ permissions: { allow: ["git status", "a && b"], netwrok: "deny" } })
    const { settings, warnings } = readSettings(text, "/c/settings.json")
    expect(settings.permissions).toEqual({ allow: ["git status"] })
    expect(warnings).toHaveLength(2)
    expect(warnings[0]).toContain("/c/settings.json: permissions.allow[1]: expected a pattern of one simple command")
    expect(warnings[1]).toContain('did you mean "permissions.network"')
  })

  it("follow the convention of the operating system", () => {
    const on = (platform: NodeJS.Platform, home: string, env: Record<string, string> = {}) =>
      resolvePaths({ env, platform, home, cwd: home }, {})
    expect(on("linux", "/home/me")).toMatchObject({
      settingsFile: "/home/me/.config/super-pi/settings.json",
      database: "/home/me/.local/share/super-pi/super-pi.db",
      databaseNamed: false,
    })
    expect(on("linux", "/home/me", { XDG_CONFIG_HOME: "/c", XDG_DATA_HOME: "/d" })).toMatchObject({
      configDir: "/c/super-pi",
      dataDir: "/d/super-pi",
    })
    expect(on("linux", "/home/me", { XDG_CONFIG_HOME: "relative" }).configDir).toBe("/home/me/.config/super-pi")
    expect(on("darwin", "/Users/me").database).toBe("/Users/me/Library/Application Support/super-pi/super-pi.db")
    expect(on("win32", "C:\\Users\\me", { APPDATA: "C:\\R", LOCALAPPDATA: "C:\\L" })).toMatchObject({
      configDir: "C:\\R\\super-pi",
      dataDir: "C:\\L\\super-pi",
    })
  })

  it("have a place for what may go at any time", () => {
    const cache = (platform: NodeJS.Platform, home: string, env: Record<string, string> = {}) =>
      conventionalPlace({ env, home, platform }, "cache")
    expect(cache("linux", "/home/me")).toBe("/home/me/.cache/super-pi")
    expect(cache("linux", "/home/me", { XDG_CACHE_HOME: "/c" })).toBe("/c/super-pi")
    expect(cache("darwin", "/Users/me")).toBe("/Users/me/Library/Caches/super-pi")
    expect(cache("win32", "C:\\Users\\me", { LOCALAPPDATA: "C:\\L" })).toBe("C:\\L\\super-pi")
  })

  it("take the flag before the environment, and the environment before the convention", () => {
    const env = {
      SUPER_PI_DATA_DIR: "data",
      SUPER_PI_CONFIG_DIR: "~/conf",
      SUPER_PI_SQLITE_PATH: "/env.db",
      XDG_DATA_HOME: "/d",
    }
    expect(resolvePaths({ ...linux, env }, { db: "flag.db" })).toMatchObject({
      configDir: "/home/me/conf",
      dataDir: "/here/data",
      database: "/here/flag.db",
      databaseNamed: true,
    })
    expect(resolvePaths({ ...linux, env }, {}).database).toBe("/env.db")
    expect(resolvePaths({ ...linux, env: { SUPER_PI_SQLITE_PATH: "" } }, {}).databaseNamed).toBe(false)
  })

  it("take what an application configures before the settings, and those before the environment", () => {
    const env = { SUPER_PI_DISCOVERY_ROOTS: "/a:~/b::c:/a", SUPER_PI_CONFIG_DIR: "/conf", SUPER_PI_DATA_DIR: "/data" }
    const around = { ...linux, env }
    expect(pluginPlaces(around, {})).toMatchObject({
      configDir: "/conf",
      dataDir: "/data",
      discoveryRoots: ["/a", "/home/me/b", "/here/c"],
    })
    expect(pluginPlaces(around, {}, ["~/s"]).discoveryRoots).toEqual(["/home/me/s"])
    expect(pluginPlaces(around, { configDir: "/own", dataDir: "d", discoveryRoots: [] }, ["/s"])).toMatchObject({
      configDir: "/own",
      dataDir: "/here/d",
      discoveryRoots: [],
    })
    expect(pluginPlaces({ ...linux, env: {} }, {}).discoveryRoots).toEqual([])
  })

  it("give plugins the variables that are for them, and no secret", () => {
    const env = {
      SUPER_PI_DISCOVERY_ROOTS: "/a",
      JEV_PLANNING_MODEL: "m",
      PROTECTED_PATHS: "p",
      SUPER_PI_GATEWAY_TOKEN: "t",
      OPENAI_API_KEY: "k",
      HOME: "/home/me",
    }
    expect(Object.keys(pluginPlaces({ ...linux, env }, {}).env)).toEqual([
      "SUPER_PI_DISCOVERY_ROOTS",
      "JEV_PLANNING_MODEL",
      "PROTECTED_PATHS",
    ])
  })

  it("make the data directory for its owner only, and say what to do where that fails", () => {
    const directory = mkdtempSync(join(tmpdir(), "super-pi-paths-"))
    try {
      const paths = resolvePaths({ ...linux, env: { SUPER_PI_DATA_DIR: join(directory, "a", "b") } }, {})
      ensureDataDir(paths)
      expect(statSync(paths.dataDir).mode & 0o777).toBe(0o700)
      writeFileSync(join(directory, "file"), "")
      const blocked = resolvePaths({ ...linux, env: { SUPER_PI_DATA_DIR: join(directory, "file", "x") } }, {})
      expect(() => ensureDataDir(blocked)).toThrow(/set SUPER_PI_DATA_DIR/)
    } finally {
      rmSync(directory, { recursive: true })
    }
  })
})

describe("the settings file", () => {
  it("may be missing or empty", () => {
    expect(loadSettings("/nonexistent/settings.json")).toEqual({ settings: {}, warnings: [] })
    expect(readSettings(" \n", "s.json")).toEqual({ settings: {}, warnings: [] })
  })

  it("is decoded with its models section", () => {
    const text = '\uFEFF{"defaultModel": "a/b", "synchronous": "FULL", "models": {"openaiAuthCacheTtlMs": 0}}'
    expect(readSettings(text, "s.json")).toEqual({
      settings: { defaultModel: "a/b", synchronous: "FULL", models: { openaiAuthCacheTtlMs: 0 } },
      warnings: [],
    })
  })

  it("has a compaction section, whose keys are checked one by one", () => {
    const text = JSON.stringify({
      compaction: {
        reserveTokens: 4_096,
        mode: "digest",
        keepRecent: 1,
        modelOverrides: { "local/small": { backgroundTokens: 0 } },
      },
    })
    const { settings, warnings } = readSettings(text, "s.json")
    expect(settings).toEqual({
      compaction: { reserveTokens: 4_096, modelOverrides: { "local/small": { backgroundTokens: 0 } } },
    })
    expect(warnings).toEqual([
      's.json: compaction.mode: expected "summary" | "truncate" | "tool_results" | "hybrid", got "digest"; the key is ignored',
      's.json: unknown key "compaction.keepRecent"; did you mean "compaction.keepRecentTokens"?',
    ])
    expect(readSettings('{"compaction": true}', "s.json").warnings[0]).toMatch(
      /compaction: expected an object, got true/,
    )
  })

  it("has unknown keys named with the nearest valid one", () => {
    const { settings, warnings } = readSettings(
      '{"defaultModle": "x", "models": {"geminiModel": []}, "synchronous": "FULL"}',
      "s.json",
    )
    expect(settings).toEqual({ synchronous: "FULL", models: {} })
    expect(warnings).toEqual([
      's.json: unknown key "defaultModle"; did you mean "defaultModel"?',
      's.json: unknown key "models.geminiModel"; did you mean "models.geminiModels"?',
    ])
  })

  it("keeps the rest where one value is wrong", () => {
    const { settings, warnings } = readSettings(
      '{"synchronous": "OFF", "defaultModel": "m", "models": {"anthropicMaxTokens": -1}}',
      "s.json",
    )
    expect(settings).toEqual({ defaultModel: "m", models: {} })
    expect(warnings).toHaveLength(2)
    expect(warnings[0]).toMatch(/^s\.json: synchronous: expected "NORMAL" \| "FULL", got "OFF"; the key is ignored$/)
    expect(warnings[1]).toMatch(/^s\.json: models\.anthropicMaxTokens: expected .*, got -1; the key is ignored$/)
  })

  it("is skipped with line and column where it is not JSON", () => {
    expect(readSettings('{\n  "defaultModel": "m",\n}', "s.json").warnings).toEqual([
      's.json:3:1: not JSON (unexpected "}"); the file is skipped until it is repaired',
    ])
    expect(readSettings('{"a": ', "s.json").warnings[0]).toContain(
      "s.json:1:7: not JSON (unexpected the end of the file)",
    )
    expect(readSettings("[]", "s.json").warnings[0]).toContain("expected a JSON object, got []")
  })

  it("never throws, whatever it holds", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.jsonValue().map((value) => JSON.stringify({ models: value, defaultModel: value })),
        ),
        (text) => {
          expect(Array.isArray(readSettings(text, "s.json").warnings)).toBe(true)
        },
      ),
    )
  })
})

describe("the place of a JSON fault", () => {
  const isJson = (text: string): boolean => {
    try {
      JSON.parse(text)
      return true
    } catch {
      return false
    }
  }
  const broken = fc
    .tuple(fc.json(), fc.nat(), fc.constantFrom("", ",", "}", '"', "\\", "x", "\n", "0", "-", "e"))
    .map(([text, at, put]) => {
      const index = at % (text.length + 1)
      return text.slice(0, index) + put + text.slice(index + 1)
    })

  it("is null for valid JSON only", () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), broken, fc.string()), (text) => {
        expect(jsonFaultAt(text) === null).toBe(isJson(text))
      }),
      { numRuns: 500 },
    )
  })

  it("lies within the text or at its end, and what is before it can still become JSON", () => {
    fc.assert(
      fc.property(broken, (text) => {
        const at = jsonFaultAt(text)
        if (at === null) return
        expect(at).toBeGreaterThanOrEqual(0)
        expect(at).toBeLessThanOrEqual(text.length)
        const prefix = text.slice(0, at)
        const again = jsonFaultAt(prefix)
        expect(again === null || again === prefix.length).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  it("costs no stack for deep nesting", () => {
    expect(jsonFaultAt("[".repeat(200_000))).toBe(200_000)
  })

  it("is counted in lines and columns from 1", () => {
    expect(lineAndColumn("a\nbc", 3)).toEqual({ line: 2, column: 2 })
    expect(lineAndColumn("", 0)).toEqual({ line: 1, column: 1 })
  })
})
