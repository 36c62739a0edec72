/** The election as a pure machine: who owns, who attaches, when to give up. Rule numbers are those of docs/attach.md. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type AttachFailure, NotAnswering } from "../../src/protocols/attach/attachment.ts"
import {
  backoffMs,
  begin,
  type Command,
  type Election,
  type ElectionEvent,
  type Holder,
  holderLine,
  step,
} from "../../src/protocols/attach/election.ts"
import { VersionMismatch } from "../../src/protocols/attach/handshake.ts"

const holder: Holder = { pid: 7, host: "here", since: 0, program: "super-pi chat", socket: "/s" }
const other: Holder = { ...holder, pid: 8 }
const failure = (reason: NotAnswering["reason"]): AttachFailure => new NotAnswering({ socket: "/s", reason })

/** The state after events, and the last command. */
const following = (...events: ReadonlyArray<ElectionEvent<string>>): readonly [Election<string>, Command] => {
  let [state, command] = begin<string>(0)
  for (const event of events) [state, command] = step(state, event, 1000)
  return [state, command]
}

describe("an election", () => {
  it("claims first, before it looks for anybody to attach to (E1)", () => {
    expect(begin(5)).toEqual([
      { name: "electing", holder: null, since: 5, attempts: 0 },
      { type: "claim", afterMs: 0 },
    ])
  })

  it("makes whoever got the lease the owner, for good (E2)", () => {
    const [state] = following({ type: "claimed" })
    expect(state).toEqual({ name: "owning" })
    expect(step(state, { type: "gone", at: 1 })[0]).toBe(state)
    expect(step(state, { type: "held", holder, at: 1 })[0]).toBe(state)
  })

  it("attaches to whoever holds the lease (E3), and starts over when that one is gone (E4)", () => {
    expect(following({ type: "held", holder, at: 1 })[1]).toEqual({ type: "attach", holder })
    const [attached, rest] = following({ type: "held", holder, at: 1 }, { type: "attached" })
    expect([attached, rest]).toEqual([{ name: "attached", holder }, { type: "rest" }])
    expect(step(attached, { type: "gone", at: 9 })).toEqual(begin(9))
  })

  it("tries again while a holder does not answer, at growing distances, and gives up after its patience (E5)", () => {
    const held = { type: "held", holder, at: 100 } as const
    const [waiting, command] = following(held, { type: "notAttached", failure: failure("absent"), at: 200 })
    expect(waiting).toMatchObject({ name: "electing", since: 100, attempts: 1 })
    expect(command).toEqual({ type: "claim", afterMs: 10 })
    expect([0, 1, 2, 3, 4, 5, 50].map(backoffMs)).toEqual([10, 20, 40, 80, 160, 200, 200])
    const [failed] = following(
      held,
      { type: "notAttached", failure: failure("absent"), at: 200 },
      { ...held, at: 300 },
      { type: "notAttached", failure: failure("silent"), at: 1100 },
    )
    expect(failed).toMatchObject({ name: "failed", reason: { type: "holder", holder } })
  })

  it("has its whole patience for each holder (E5)", () => {
    const [state] = following(
      { type: "held", holder, at: 0 },
      { type: "notAttached", failure: failure("refused"), at: 900 },
      { type: "held", holder: other, at: 950 },
      { type: "notAttached", failure: failure("absent"), at: 1800 },
    )
    expect(state).toMatchObject({ name: "electing", holder: other, since: 950 })
  })

  it("gives up at once where waiting does not help: another version, a forbidden socket, a stranger (E5)", () => {
    const hopeless = [
      failure("forbidden"),
      failure("stranger"),
      new VersionMismatch({ pid: 7, theirs: "2", ours: "1" }),
    ]
    for (const failure of hopeless) {
      const [state, command] = following({ type: "held", holder, at: 0 }, { type: "notAttached", failure, at: 0 })
      expect([state.name, command.type]).toEqual(["failed", "rest"])
    }
  })

  it("fails with the lease's or the node's own error (E6), and starts over when somebody asks again (E7)", () => {
    const [state] = following({ type: "ownFailed", error: "disk full" })
    expect(state).toEqual({ name: "failed", reason: { type: "own", error: "disk full" } })
    expect(step(state, { type: "asked", at: 3 })).toEqual(begin(3))
  })

  it("always has something to do while it is undecided, whatever happens in whatever order", () => {
    const at = fc.nat({ max: 5000 })
    const event: fc.Arbitrary<ElectionEvent<string>> = fc.oneof(
      fc.constant({ type: "claimed" } as const),
      fc.record({ type: fc.constant("held" as const), holder: fc.constantFrom(holder, other), at }),
      fc.constant({ type: "attached" } as const),
      fc.record({
        type: fc.constant("notAttached" as const),
        failure: fc.constantFrom(failure("absent"), failure("forbidden")),
        at,
      }),
      fc.constant({ type: "ownFailed", error: "x" } as const),
      fc.record({ type: fc.constant("gone" as const), at }),
      fc.record({ type: fc.constant("asked" as const), at }),
    )
    fc.assert(
      fc.property(fc.array(event), (events) => {
        let state = begin<string>(0)[0]
        for (const event of events) {
          const [next, command] = step(state, event)
          if (next !== state && next.name === "electing") expect(command.type).not.toBe("rest")
          if (next.name !== "electing") expect(command.type).toBe("rest")
          if (state.name === "owning") expect(next).toBe(state)
          state = next
        }
      }),
    )
  })

  it("names the holder, the cause and what to do in one line", () => {
    expect(holderLine(holder, failure("silent"))).toBe(
      "the database is held by super-pi chat (process 7 on here, since 1970-01-01T00:00:00.000Z), which cannot be reached: /s: whoever listens there does not answer; end that process, or give another path with --db",
    )
  })
})
