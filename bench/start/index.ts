/**
 * How soon a command is at work: from the start of `super-pi run` to the first byte that it sends to a model service on loopback, in alternating
 * rounds beside a bare program that sends the same request.
 */
import { spawn } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import path from "node:path"
import { buildPrograms } from "../build.ts"
import { median, type Row } from "../row.ts"

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 11)
const limitMs = 600

const chunk = { id: "1", object: "chat.completion.chunk", created: 1, model: "m" }
const delta = { index: 0, delta: { role: "assistant", content: "Hello." }, finish_reason: "stop" }
const answer = `data: ${JSON.stringify({ ...chunk, choices: [delta] })}\n\ndata: [DONE]\n\n`

/** A model service that tells when a request begins to come. */
const serve = async (onRequest: () => void): Promise<{ readonly server: Server; readonly url: string }> => {
  const server = createServer((request, response) => {
    onRequest()
    request.resume()
    response.writeHead(200, { "content-type": "text/event-stream" }).end(answer)
  })
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` }
}

/** The programs of a build, to be changed at will; inside the project, so that native modules are found. */
const copyOfBuild = async (): Promise<string> => {
  await buildPrograms()
  const parent = path.resolve("node_modules/.cache")
  mkdirSync(parent, { recursive: true })
  const copy = mkdtempSync(path.join(parent, "super-pi-start-"))
  for (const name of ["cli.js", "sandbox-worker.js", "chunks"]) {
    cpSync(path.resolve("dist", name), path.join(copy, name), { recursive: true })
  }
  return copy
}

const compiled = (copy: string): ReadonlyArray<string> =>
  readdirSync(path.join(copy, "chunks")).filter((name) => name.endsWith(".cache"))

type Program = "bare" | "first" | "again"

const measure = async (copy: string): Promise<Readonly<Record<Program, number>>> => {
  let onRequest = () => {}
  const { server, url } = await serve(() => onRequest())
  const bare = `fetch(process.env.SUPER_PI_OPENAI_BASE_URL, { method: "POST", body: "{}" }).then((answer) => answer.text())`
  /** Milliseconds to the first request of a process that has a home of its own. */
  const once = async (args: ReadonlyArray<string>): Promise<number> => {
    const home = mkdtempSync(path.join(copy, "home-"))
    const env = {
      ...{ PATH: process.env.PATH ?? "", HOME: home, SUPER_PI_DATA_DIR: home, SUPER_PI_CONFIG_DIR: home },
      ...{ SUPER_PI_OPENAI_BASE_URL: url, SUPER_PI_OPENAI_MODEL: "m", OPENAI_API_KEY: "of-nobody" },
    }
    const started = performance.now()
    let first = Number.NaN
    onRequest = () => {
      first = performance.now() - started
    }
    const child = spawn(process.execPath, args, { cwd: home, env, stdio: ["ignore", "ignore", "inherit"] })
    const code = await new Promise((done) => child.on("close", done))
    if (code !== 0 || Number.isNaN(first)) throw new Error(`expected a request and code 0, got code ${code}`)
    return first
  }
  const run = [path.join(copy, "cli.js"), "run", "--cwd", copy, "hello"]
  const rounds: Readonly<Record<Program, Array<number>>> = { bare: [], first: [], again: [] }
  try {
    for (let round = 0; round < ROUNDS; round++) {
      rounds.bare.push(await once(["--eval", bare]))
      for (const name of compiled(copy)) rmSync(path.join(copy, "chunks", name))
      rounds.first.push(await once(run))
      if (compiled(copy).length === 0) throw new Error("expected the first start to keep its compiled code")
      rounds.again.push(await once(run))
    }
  } finally {
    server.close()
  }
  return { bare: median(rounds.bare), first: median(rounds.first), again: median(rounds.again) }
}

export const rows = async (): Promise<ReadonlyArray<Row>> => {
  const copy = await copyOfBuild()
  try {
    const { again, bare, first } = await measure(copy)
    const row = (name: string, ours: number, target: string, met: boolean): Row => ({
      ...{ name: `${name}, to the first byte sent to the model`, unit: "ms" },
      ...{ ours, peer: bare, ratio: bare / ours, target, met },
    })
    return [
      row("super-pi run", again, `≤ ${limitMs}`, again <= limitMs),
      row("the very first run, nothing compiled", first, "", true),
    ]
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}
