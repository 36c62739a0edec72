/**
 * The process group of a command when the node that started it is gone, and output for watchers that are slow.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { PassThrough } from "node:stream"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { build } from "esbuild"
import * as fc from "fast-check"
import { vi } from "vitest"
import { Intake } from "../../src/tools/intake.ts"
import { LiveOutput } from "../../src/tools/live-output.ts"
import { temporaryDirectory } from "./support.ts"

const source = (path: string) => fileURLToPath(new URL(`../../src/tools/${path}`, import.meta.url))

const alive = (pid: number): boolean => {
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch {
    return false
  }
}

/** A program that starts a command in a group, prints what the command prints, and then waits for its death. */
const program = `
import { ProcessGroup } from ${JSON.stringify(source("process-group.ts"))}
const command = "trap 'echo term' TERM; echo $$; sleep 1000 & echo $!; wait; wait"
await ProcessGroup.start({
  command,
  cwd: "/",
  env: { PATH: process.env.PATH ?? "" },
  shell: "bash",
  onOutput: (chunk) => void process.stdout.write(chunk),
})
setInterval(() => undefined, 1000)
`

describe("the process group of a command", () => {
  it.scopedLive("is ended when the node dies without a word, also what ignores TERM", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      yield* Effect.promise(async () => {
        await writeFile(join(directory, "node.ts"), program)
        const outfile = join(directory, "node.mjs")
        const banner = {
          js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
        }
        const options = { bundle: true, platform: "node", format: "esm", logLevel: "silent", banner } as const
        await build({ ...options, entryPoints: [join(directory, "node.ts")], outfile })
        const node = spawn(process.execPath, [outfile], { stdio: ["ignore", "pipe", "inherit"] })
        let output = ""
        for await (const chunk of node.stdout) {
          output += String(chunk)
          if (output.split("\n").length > 2) break
        }
        const pids = output.trim().split("\n").map(Number)
        expect(pids).toHaveLength(2)
        expect(pids.map(alive)).toEqual([true, true])
        node.kill("SIGKILL")
        await once(node, "exit")
        while (pids.some(alive)) await new Promise((resolve) => setTimeout(resolve, 20))
      })
    }),
  )
})

describe("live output", () => {
  it.effect("hands everything on in order to a watcher that keeps up", () =>
    Effect.gen(function* () {
      const live = new LiveOutput()
      const heard: Array<string> = []
      const delivery = yield* Effect.fork(live.deliver((chunk) => Effect.sync(() => void heard.push(chunk))))
      for (const part of ["a", "b", "", "c"]) {
        live.push(part)
        yield* Effect.yieldNow()
      }
      live.end()
      yield* Fiber.join(delivery)
      expect(heard.join("")).toBe("abc")
    }),
  )

  it.effect("leaves out the oldest for a watcher that is slow, says how much, and keeps the newest", () =>
    Effect.gen(function* () {
      const live = new LiveOutput()
      const [began, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const heard: Array<string> = []
      const delivery = yield* Effect.fork(
        live.deliver((chunk) =>
          Effect.gen(function* () {
            heard.push(chunk)
            yield* Deferred.succeed(began, undefined)
            yield* Deferred.await(go)
          }),
        ),
      )
      live.push("first")
      yield* Deferred.await(began)
      for (let index = 0; index < 2000; index++) live.push(`${String(index).padStart(99, "-")}\n`)
      live.end()
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(delivery)
      expect(heard[0]).toBe("first")
      expect(heard).toHaveLength(2)
      const [, skipped = "0"] = /^\n\[… (\d+) characters not shown …\]\n/.exec(heard[1] ?? "") ?? []
      const rest = (heard[1] ?? "").replace(/^\n\[.*\]\n/, "")
      expect(Number(skipped) + rest.length).toBe(200_000)
      expect(rest.length).toBeLessThanOrEqual(64 * 1024)
      expect(rest.endsWith("1999\n")).toBe(true)
    }),
  )
})

describe("the intake of output", () => {
  /** What is handed on when these bytes arrive in these pieces and the mark is awaited from the start. */
  const taken = async (bytes: Buffer, cuts: ReadonlyArray<number>, mark: string) => {
    const stream = new PassThrough()
    const got: Array<Buffer> = []
    const intake = new Intake(stream, (chunk) => {
      got.push(chunk)
      return undefined
    })
    intake.endAt(Buffer.from(mark))
    let at = 0
    for (const size of [...cuts, bytes.length]) {
      if (at < bytes.length && size > 0) stream.write(bytes.subarray(at, at + size))
      at += size
    }
    await intake.finished(60_000, 60_000)
    return Buffer.concat(got).toString("latin1")
  }

  it("ends at the mark, however it is cut, and leaves out the mark and what comes after", async () => {
    const text = fc.string({ unit: fc.constantFrom("m", "a", "r", "k", "\n"), maxLength: 30 })
    await fc.assert(
      fc.asyncProperty(text, text, fc.array(fc.nat(8), { maxLength: 12 }), async (before, after, cuts) => {
        fc.pre(!`${before}mark`.slice(0, -1).includes("mark"))
        expect(await taken(Buffer.from(`${before}mark${after}`), cuts, "mark")).toBe(before)
      }),
    )
  })

  it("ends with the pipe when the mark never comes, and hands on what looked like its start", async () => {
    const stream = new PassThrough()
    let got = ""
    const intake = new Intake(stream, (chunk) => {
      got += chunk.toString()
      return undefined
    })
    intake.endAt(Buffer.from("mark"))
    stream.end("some ma")
    await intake.finished(60_000, 60_000)
    expect(got).toBe("some ma")
  })

  it("reads no further while what it handed on is being dealt with", async () => {
    const stream = new PassThrough()
    const pieces: Array<string> = []
    let release = () => {}
    const intake = new Intake(stream, (chunk) => {
      pieces.push(chunk.toString())
      return new Promise<void>((resolve) => {
        release = resolve
      })
    })
    stream.write("one")
    await vi.waitUntil(() => pieces.length === 1)
    stream.end("two")
    expect(stream.isPaused()).toBe(true)
    release()
    await vi.waitUntil(() => pieces.length === 2)
    release()
    await intake.finished(60_000, 60_000)
    expect(pieces).toEqual(["one", "two"])
  })
})
