/** Takeover between real processes that share one lease: killed, stopped and leaving owners, in the middle of calls. */
import { existsSync, mkdtempSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeAll, describe, expect, it } from "vitest"
import { bundle } from "./bundle.ts"
import { type PeerProcess, startPeer } from "./peer-process.ts"

let program = ""
const peers: Array<PeerProcess> = []

beforeAll(async () => {
  program = await bundle("peer")
})

afterEach(async () => {
  for (const peer of peers) peer.kill("SIGKILL")
  await Promise.all(peers.splice(0).map((peer) => peer.exit))
})

const newDb = () => join(mkdtempSync(join(tmpdir(), "sp-takeover-")), "a.db")

const start = (db: string, name: string, env: Readonly<Record<string, string>> = {}): PeerProcess => {
  const peer = startPeer(program, { DB: db, NAME: name, ...env })
  peers.push(peer)
  return peer
}

const rows = (db: string, field: string): number =>
  readFileSync(`${db}.journal`, "utf8")
    .split("\n")
    .filter((line) => line.includes(`"${field}":`)).length

/** An owner that starts turns and never ends them, and a second process that is attached to it with a conversation and a held input. */
const heldTurn = async (db: string) => {
  const owner = start(db, "first", { HOLD: "1" })
  await owner.news("serving")
  const other = start(db, "second")
  await other.news("attached")
  await other.news("ready")
  await other.ask("open")
  const receipt = await other.ask("submit", { text: "hello" })
  return { owner, other, submission: receipt.result?.submission_id }
}

describe("when the owner is killed", () => {
  it("an attached process takes over in mid-call, the call completes, and nothing was done twice", async () => {
    const db = newDb()
    const { owner, other, submission } = await heldTurn(db)
    expect((await other.ask("tree")).result?.name).toBe("first")
    const waiting = other.begin("await", { submission })
    const watching = other.begin("watch")
    await other.told((line) => line.watch === watching && line.type === "snapshot")
    owner.kill("SIGKILL")
    const settled = await other.told((line) => line.id === waiting)
    expect(settled.result).toMatchObject({ status: "done", text: "HELLO" })
    await other.news("owning")
    expect((await other.ask("tree")).result?.name).toBe("second")
    await other.told((line) => line.watch === watching && line.type === "stream_reset")
    const types = other.lines.filter((line) => line.watch === watching).map((line) => line.type)
    expect(types.slice(0, 3)).toEqual(["snapshot", "stream_reset", "snapshot"])
    expect(rows(db, "submit")).toBe(1)
    expect(rows(db, "answer")).toBe(1)
  })

  it("an input that was admitted but not answered is repeated under its request id, not admitted again", async () => {
    const db = newDb()
    const owner = start(db, "first", { STALL: "1" })
    await owner.news("serving")
    const other = start(db, "second")
    await other.news("ready")
    await other.ask("open")
    const submitting = other.begin("submit", { text: "once" })
    while (!existsSync(`${db}.journal`) || rows(db, "submit") === 0) await other.ask("tree")
    owner.kill("SIGKILL")
    const receipt = await other.told((line) => line.id === submitting)
    expect(receipt.result).toMatchObject({ submission_id: 2 })
    expect((await other.ask("await", { submission: 2 })).result).toMatchObject({ text: "ONCE" })
    expect(rows(db, "submit")).toBe(1)
  })

  it("exactly one of the others owns and the rest attach to it, again and again", async () => {
    const db = newDb()
    const { owner, other, submission } = await heldTurn(db)
    const third = start(db, "third")
    await third.news("ready")
    const all = [other, third]
    const waits = all.map((peer) => peer.begin("await", { submission }))
    owner.kill("SIGKILL")
    for (const [i, peer] of all.entries()) {
      expect((await peer.told((line) => line.id === waits[i])).result).toMatchObject({ text: "HELLO" })
    }
    const names = await Promise.all(all.map(async (peer) => (await peer.ask("tree")).result?.name))
    expect(names[0]).toBe(names[1])
    const winner = names[0] === "second" ? other : third
    const loser = winner === other ? third : other
    expect(winner.lines.some((line) => line.news === "owning")).toBe(true)
    expect(loser.lines.some((line) => line.news === "owning")).toBe(false)
    const removing = loser.ask("list")
    winner.kill("SIGKILL")
    await removing
    await loser.news("owning")
    expect((await loser.ask("await", { submission })).result).toMatchObject({ text: "HELLO" })
    expect(rows(db, "answer")).toBe(1)
  })
})

describe("when the owner leaves", () => {
  it("an attached process goes on at once, and the new owner's socket stays", async () => {
    const db = newDb()
    const { owner, other, submission } = await heldTurn(db)
    const waiting = other.begin("await", { submission })
    owner.kill("SIGTERM")
    expect((await other.told((line) => line.id === waiting)).result).toMatchObject({ text: "HELLO" })
    await owner.news("left")
    await other.news("serving")
    const third = start(db, "third")
    await third.news("attached")
    await third.news("ready")
    expect((await third.ask("tree")).result?.name).toBe("second")
  })
})

describe("when nobody can be asked", () => {
  it("says who holds the database", async () => {
    const db = newDb()
    const owner = start(db, "first")
    await owner.news("serving")
    owner.kill("SIGSTOP")
    const other = start(db, "second", { PATIENCE: "500" })
    const failed = await other.told((line) => line.news === "failed" && line.cause !== undefined)
    expect(failed.cause).toContain(`held by peer first (process ${owner.pid} on `)
    expect(failed.cause).toContain(
      "whoever listens there does not answer; end that process, or give another path with --db",
    )
    owner.kill("SIGCONT")
    const third = start(db, "third")
    await third.news("attached")
  })

  it("says so when the owner is of another version", async () => {
    const db = newDb()
    const owner = start(db, "first")
    await owner.news("serving")
    const other = start(db, "second", { VERSION: "2" })
    const failed = await other.told((line) => line.news === "failed" && line.cause !== undefined)
    expect(failed.cause).toContain(`process ${owner.pid} of super-pi 1, this is super-pi 2`)
  })
})
