/**
 * The examples in docs/kernel.md run, and print what their comments say.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"
import { expect, it } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))
const examples = [...readFileSync(join(root, "docs/kernel.md"), "utf8").matchAll(/```ts\n(.*?)```/gs)].map(
  ([, code]) => code ?? "",
)

it("has an example", () => {
  expect(examples.length).toBeGreaterThan(0)
})

it.each(examples.map((code, index) => ({ index, code })))(
  "example $index in the docs prints what it says",
  async ({ code }) => {
    const folder = mkdtempSync(join(tmpdir(), "super-pi-docs-"))
    try {
      symlinkSync(join(root, "node_modules"), join(folder, "node_modules"), "junction")
      const source = join(folder, "example.ts")
      writeFileSync(source, code)
      const file = join(folder, "example.mjs")
      await build({
        entryPoints: [source],
        outfile: file,
        bundle: true,
        platform: "node",
        format: "esm",
        target: "node20",
        logLevel: "silent",
        alias: { "super-pi": join(root, "src/index.ts") },
        external: ["effect", "@effect/*", "@ai-sdk/*", "better-sqlite3"],
      })
      const { stdout, stderr } = spawnSync(process.execPath, [file], { encoding: "utf8" })
      expect(stderr).toBe("")
      const promised = [...code.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map(([, line]) => line)
      expect(stdout.trimEnd().split("\n")).toEqual(promised)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
)
