/**
 * The rules themselves, on small made-up files: each finds what it is for and lets the rest pass.
 */
import { describe, expect, it } from "vitest"
import { cycles, domainIsPure, heads, importDirection, lengths, typeEscapes, unusedExports } from "./rules.ts"
import { parse } from "./source.ts"

describe("the scanner", () => {
  it("reads names, types, namespaces, lazy imports and re-exports", () => {
    const { imports, exports } = parse(
      "src/actors/a.ts",
      [
        '/** Head. import { no } from "./no.ts" */',
        'import { one, type Two, three as tres } from "./b.ts"',
        'import type { Four } from "../domain/c.ts"',
        'import * as everything from "./d.ts"',
        'import first, { second } from "pkg"',
        'export { one } from "./b.ts"',
        'export type * from "./e.ts"',
        'const lazy = () => import("./f.ts")',
        "export const value = 1",
        "export interface Shape {}",
        "export type value = number",
        "const hidden = 2",
        "export { hidden as shown }",
      ].join("\n"),
    )
    expect(imports.map(({ specifier, names, typeOnly, lazy }) => [specifier, names, typeOnly, lazy])).toEqual([
      ["./b.ts", ["one", "Two", "three"], false, false],
      ["../domain/c.ts", ["Four"], true, false],
      ["./d.ts", ["*"], false, false],
      ["pkg", ["second", "default"], false, false],
      ["./b.ts", ["one"], false, false],
      ["./e.ts", ["*"], true, false],
      ["./f.ts", ["*"], false, true],
    ])
    expect(imports[1]?.file).toBe("src/domain/c.ts")
    expect(exports).toEqual([
      { name: "value", type: false },
      { name: "Shape", type: true },
      { name: "shown", type: false },
    ])
  })

  it("reads imports over several lines", () => {
    const { imports } = parse("src/a.ts", 'import {\n  one,\n  two,\n} from "./b.ts"\n')
    expect(imports[0]?.names).toEqual(["one", "two"])
  })
})

describe("the rules", () => {
  it("refuse an import upwards and an actor's inside in a protocol, and allow the contract", () => {
    const faults = importDirection([
      parse("src/domain/a.ts", 'import { x } from "../storage/store.ts"'),
      parse(
        "src/protocols/jsonrpc/a.ts",
        'import { x } from "../../actors/contract.ts"\nimport { y } from "../../actors/conversation.ts"',
      ),
      parse("src/storage/sqlite/a.ts", 'import type { x } from "../../domain/ids.ts"'),
      parse("src/assembly.ts", 'import { x } from "./actors/conversation.ts"'),
    ])
    expect(faults).toHaveLength(2)
    expect(faults[0]).toContain("src/domain/a.ts: may not import src/storage/store.ts")
    expect(faults[1]).toContain("src/protocols/jsonrpc/a.ts: may not import src/actors/conversation.ts")
  })

  it("refuse a clock, a file and an unknown package in the domain", () => {
    const faults = domainIsPure([
      parse("src/domain/a.ts", "export const at = Date.now()"),
      parse("src/domain/b.ts", 'import { readFileSync } from "node:fs"'),
      parse("src/domain/c.ts", 'import { Schema } from "effect"\n// Date.now() in a comment is fine'),
    ])
    expect(faults).toHaveLength(2)
  })

  it("refuse an export without a taker, and accept one that another file or a whole-module import takes", () => {
    const files = [
      parse(
        "src/tools/a.ts",
        "export const used = 1\nexport const unused = 2\nexport interface Own {}\nconst o: Own = {}",
      ),
      parse("src/tools/b.ts", 'import { used } from "./a.ts"'),
      parse("src/tools/c.ts", "export const whole = 1"),
    ]
    const takers = [parse("test/c.test.ts", 'import * as c from "../src/tools/c.ts"')]
    expect(unusedExports(files, takers, () => false)).toEqual(["src/tools/a.ts: exports unused, which nobody imports"])
  })

  it("find cycles of values and forgive cycles of types and lazy imports", () => {
    const cyclic = [parse("src/a.ts", 'import { b } from "./b.ts"'), parse("src/b.ts", 'import { a } from "./a.ts"')]
    const erased = [
      parse("src/a.ts", 'import { b } from "./b.ts"'),
      parse("src/b.ts", 'import type { a } from "./a.ts"'),
    ]
    const lazy = [
      parse("src/a.ts", 'import { b } from "./b.ts"'),
      parse("src/b.ts", 'const a = () => import("./a.ts")'),
    ]
    expect(cycles(cyclic)).toEqual(["import cycle: src/a.ts → src/b.ts → src/a.ts"])
    expect(cycles(erased)).toEqual([])
    expect(cycles(lazy)).toEqual([])
  })

  it("want a head, a short file and no way around the types", () => {
    expect(heads([parse("src/a.ts", "const a = 1")])).toHaveLength(1)
    expect(heads([parse("src/a.ts", "/** Head. */\nconst a = 1")])).toEqual([])
    expect(lengths([parse("src/a.ts", `/** Head. */\n${"\n".repeat(400)}`)])).toHaveLength(1)
    expect(lengths([parse("src/a.ts", `/** Long because one table. */\n${"\n".repeat(400)}`)])).toEqual([])
    expect(typeEscapes([parse("src/a.ts", "const a = b as any")])).toHaveLength(1)
    expect(typeEscapes([parse("src/a.ts", "const a = b as unknown as C")])).toHaveLength(1)
    expect(typeEscapes([parse("src/a.ts", "// The driver types this wrongly.\nconst a = b as unknown as C")])).toEqual(
      [],
    )
  })
})
