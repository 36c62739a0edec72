/**
 * The decision core of tasks, without a clock, a store or an actor: what a step, an end, an abort, a crash does to the rows of a tree.
 */
import { describe, expect, it } from "vitest"
import { Step } from "../../../src/actors/task/step.ts"
import { TaskId } from "../../../src/domain/ids.ts"
import { restartLimit } from "../../../src/domain/task.ts"
import { World } from "./world.ts"

const done = Step.complete(null)

describe("a step", () => {
  it("that changes the checkpoint goes on in the same actor and starts the crash count over", () => {
    const world = new World()
    const id = world.start()
    world.apply({ type: "ended", id, end: { type: "crashed", message: "boom" } })
    expect(world.get(id)).toMatchObject({ status: "running", crashes: 1 })
    const { goOn } = world.step(id, Step.next({ phase: "two" }))
    expect(goOn).toMatchObject({ status: "running", checkpoint: { phase: "two" }, crashes: 0, node: "here" })
  })

  it.each([
    ["next", Step.next({ phase: "same" })],
    ["sleep", Step.sleep({ ms: 5 }, { phase: "same" })],
    ["wait", Step.wait({ on: [] }, { phase: "same" })],
  ])("%s that neither changes the checkpoint nor ends is faulted", (_name, step) => {
    const world = new World()
    const id = world.start({ checkpoint: { phase: "same" } })
    const decision = world.step(id, step)
    expect(decision.taken).toBe(false)
    expect(world.get(id).outcome).toEqual({
      status: "faulted",
      error: "phase same: expected a new checkpoint or an end, got the same checkpoint",
    })
  })

  it("of a task that ended or never ran changes nothing", () => {
    const world = new World()
    const id = world.start()
    world.step(id, done)
    expect(world.step(id, Step.next({ phase: "late" })).draft.changed.size).toBe(0)
    expect(world.step(TaskId.make(99), done).draft.changed.size).toBe(0)
  })

  it("of a task whose abort was accepted changes nothing", () => {
    const world = new World()
    const id = world.start()
    world.apply({ type: "abort", id, background: false, reason: "enough" })
    expect(world.interrupted.has(id)).toBe(true)
    expect(world.step(id, done).draft.changed.size).toBe(0)
    world.apply({ type: "ended", id, end: { type: "stopped" } })
    expect(world.get(id)).toMatchObject({ status: "completing", outcome: { status: "aborted", reason: "enough" } })
  })

  it("that fails starts none of the children that it spawned", () => {
    const world = new World()
    const id = world.start()
    const child = world.row({ owner: id })
    world.step(id, Step.fail("no"), [child])
    expect(world.rows.has(child.id)).toBe(false)
    expect(world.get(id)).toMatchObject({ status: "terminal", outcome: { status: "failed", error: "no" } })
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY])("that sleeps until %s is faulted", (until) => {
    const world = new World()
    const id = world.start()
    world.step(id, Step.sleep({ until }, { phase: "later" }))
    expect(world.get(id).outcome).toMatchObject({
      status: "faulted",
      error: expect.stringContaining("sleep: expected"),
    })
  })

  it("that sleeps until a time that is over goes on at once", () => {
    const world = new World()
    const id = world.start()
    expect(world.step(id, Step.sleep({ until: world.now }, { phase: "later" })).goOn).not.toBeNull()
  })
})

describe("a sleeping task", () => {
  it("has no node and no actor, and runs again at its time, not before", () => {
    const world = new World()
    const id = world.start()
    world.step(id, Step.sleep({ ms: 50 }, { phase: "later" }))
    expect(world.get(id)).toMatchObject({ status: "sleeping", node: null, wakeAt: world.now + 50 })
    expect(world.live.has(id)).toBe(false)
    world.now += 49
    world.apply({ type: "wake", ids: [id] })
    expect(world.get(id).status).toBe("sleeping")
    world.now += 1
    world.apply({ type: "wake", ids: [id] })
    expect(world.get(id)).toMatchObject({ status: "running", wakeAt: null })
  })
})

describe("a waiting task", () => {
  it("with allSettled wakes when every child has ended, however they ended", () => {
    const world = new World()
    const { children, parent } = world.parentOf(3)
    expect(world.get(parent)).toMatchObject({ status: "waiting", node: null })
    const [a, b, c] = children as [TaskId, TaskId, TaskId]
    world.step(a, done)
    world.step(b, Step.fail("no"))
    expect(world.get(parent).status).toBe("waiting")
    expect(world.get(c)).toMatchObject({ status: "running", abortRequested: false })
    world.apply({ type: "ended", id: c, end: { type: "faulted", message: "bug" } })
    expect(world.get(parent)).toMatchObject({ status: "running", waitingOn: null })
  })

  it("with failFast aborts the others at the first failure and wakes when all have ended", () => {
    const world = new World()
    const { children, parent } = world.parentOf(3, "failFast")
    const [a, b, c] = children as [TaskId, TaskId, TaskId]
    world.step(a, done)
    world.step(b, Step.fail("no"))
    expect(world.get(c)).toMatchObject({ status: "running", abortRequested: true })
    world.apply({ type: "ended", id: c, end: { type: "stopped" } })
    expect(world.live.get(c)).toBe("abort")
    expect(world.get(parent).status).toBe("waiting")
    world.apply({ type: "ended", id: c, end: { type: "undone" } })
    expect(world.get(parent).status).toBe("running")
    expect(world.get(a).outcome?.status).toBe("completed")
  })

  it("that waits for what has ended already goes on", () => {
    const world = new World()
    const other = world.start()
    world.step(other, done)
    const id = world.start()
    world.step(id, Step.wait({ on: [other] }, { phase: "then" }))
    expect(world.get(id).status).toBe("running")
  })

  it("may wait for tasks of others with allSettled", () => {
    const world = new World()
    const other = world.start()
    const id = world.start()
    world.step(id, Step.wait({ on: [other] }, { phase: "then" }))
    expect(world.get(id).status).toBe("waiting")
    world.step(other, done)
    expect(world.get(id).status).toBe("running")
  })

  it("wakes for a task of a conversation that ended elsewhere", () => {
    const world = new World()
    const id = world.start()
    const outcome = { status: "completed" as const, result: null }
    const elsewhere = TaskId.make(77)
    world.rows.set(elsewhere, world.row({ id: elsewhere, kind: "pi.generation" }))
    const env = world.env
    Object.assign(world, { env: () => ({ ...env(), elsewhere: () => "open" as const }) })
    world.step(id, Step.wait({ on: [elsewhere] }, { phase: "then" }))
    expect(world.get(id).status).toBe("waiting")
    Object.assign(world, { env: () => ({ ...env(), elsewhere: () => outcome }) })
    world.apply({ type: "endedElsewhere", id: elsewhere, outcome })
    expect(world.get(id).status).toBe("running")
  })

  it.each([
    ["itself", (_world: World, id: TaskId) => [id]],
    ["what is not there", () => [TaskId.make(1_234)]],
    [
      "a task that waits for it",
      (world: World, id: TaskId) => {
        const other = world.start()
        world.step(other, Step.wait({ on: [id] }, { phase: "then" }))
        return [other]
      },
    ],
    [
      "its own owner",
      (world: World, id: TaskId) => {
        const owner = world.start()
        const row = world.get(id)
        world.rows.set(id, { ...row, owner })
        world.board.adopt({ ...row, owner })
        return [owner]
      },
    ],
  ])("is faulted when it waits for %s", (_name, on) => {
    const world = new World()
    const id = world.start()
    const ids = on(world, id)
    world.step(id, Step.wait({ on: ids }, { phase: "then" }))
    expect(world.get(id).outcome).toMatchObject({
      status: "faulted",
      error: expect.stringMatching(/^wait\.on: expected/),
    })
  })

  it("is faulted when it waits for tasks of others with failFast", () => {
    const world = new World()
    const other = world.start()
    const id = world.start()
    world.step(id, Step.wait({ on: [other], policy: "failFast" }, { phase: "then" }))
    expect(world.get(id).outcome).toMatchObject({
      status: "faulted",
      error: `wait.on: expected own children with failFast, got task ${other}, which task nobody owns`,
    })
  })
})

describe("an end", () => {
  it("of a parent is held until its children have ended", () => {
    const world = new World()
    const parent = world.start()
    const child = world.row({ owner: parent })
    world.step(parent, Step.complete("all good"), [child])
    expect(world.get(parent)).toMatchObject({ status: "completing", outcome: { status: "completed" }, node: null })
    world.step(child.id, done)
    expect(world.get(parent)).toMatchObject({
      status: "terminal",
      outcome: { status: "completed", result: "all good" },
    })
  })

  it("that is no success aborts the children first", () => {
    const world = new World()
    const parent = world.start()
    const child = world.row({ owner: parent })
    world.step(parent, Step.next({ phase: "two" }), [child])
    world.step(parent, Step.fail("no"))
    expect(world.get(parent).status).toBe("completing")
    expect(world.get(child.id).abortRequested).toBe(true)
    world.apply({ type: "ended", id: child.id, end: { type: "stopped" } })
    world.apply({ type: "ended", id: child.id, end: { type: "undone" } })
    expect(world.get(parent)).toMatchObject({ status: "terminal", outcome: { status: "failed" } })
  })

  it("does not wait for background children, which go on", () => {
    const world = new World()
    const parent = world.start()
    const child = world.row({ owner: parent, background: true })
    world.step(parent, Step.complete(1), [child])
    expect(world.get(parent).status).toBe("terminal")
    expect(world.get(child.id)).toMatchObject({ status: "running", abortRequested: false })
  })
})

describe("an abort", () => {
  it("interrupts the whole tree at once and undoes it bottom-up", () => {
    const world = new World()
    const { children, parent } = world.parentOf(1)
    const [child] = children as [TaskId]
    const leaf = world.row({ owner: child })
    world.step(child, Step.wait({ on: [leaf.id] }, { phase: "then" }), [leaf])
    world.apply({ type: "abort", id: parent, background: false, reason: "enough" })
    expect([...world.interrupted]).toEqual([leaf.id])
    expect(world.live.has(parent)).toBe(false)
    world.apply({ type: "ended", id: leaf.id, end: { type: "stopped" } })
    expect([...world.live]).toEqual([[leaf.id, "abort"]])
    world.apply({ type: "ended", id: leaf.id, end: { type: "undone" } })
    expect([...world.live]).toEqual([[child, "abort"]])
    world.apply({ type: "ended", id: child, end: { type: "undone" } })
    expect([...world.live]).toEqual([[parent, "abort"]])
    world.apply({ type: "ended", id: parent, end: { type: "undone" } })
    expect(world.open()).toEqual([])
    expect(world.get(parent).outcome).toEqual({ status: "aborted", reason: "enough" })
  })

  it("does not reach through background work unless it is asked to", () => {
    for (const background of [false, true]) {
      const world = new World()
      const parent = world.start()
      const child = world.row({ owner: parent, background: true })
      world.step(parent, Step.next({ phase: "two" }), [child])
      world.apply({ type: "abort", id: parent, background, reason: "enough" })
      expect(world.get(child.id).abortRequested).toBe(background)
    }
  })

  it("of a task that is completing keeps the outcome that was decided and aborts what it owns", () => {
    const world = new World()
    const parent = world.start()
    const child = world.row({ owner: parent })
    world.step(parent, Step.complete("done"), [child])
    world.apply({ type: "abort", id: parent, background: false, reason: "enough" })
    world.apply({ type: "ended", id: child.id, end: { type: "stopped" } })
    world.apply({ type: "ended", id: child.id, end: { type: "undone" } })
    expect(world.get(parent).outcome).toEqual({ status: "completed", result: "done" })
  })

  it("ends a task that never ran without its abort handler", () => {
    const world = new World()
    world.missing.add("test")
    const id = world.start()
    world.apply({ type: "abort", id, background: false, reason: "enough" })
    expect(world.get(id)).toMatchObject({ status: "terminal", outcome: { status: "aborted" } })
  })

  it("is finished by the next process, bottom-up too", () => {
    const world = new World()
    const { children, parent } = world.parentOf(1)
    const [child] = children as [TaskId]
    world.apply({ type: "abort", id: parent, background: false, reason: "enough" })
    for (const clean of [true, false]) {
      world.restart(clean)
      expect([...world.live]).toEqual([[child, "abort"]])
    }
    world.apply({ type: "ended", id: child, end: { type: "undone" } })
    world.apply({ type: "ended", id: parent, end: { type: "undone" } })
    expect(world.get(parent).outcome).toEqual({ status: "aborted", reason: "enough" })
  })

  it("whose handler breaks ends as faulted, and the owner goes on", () => {
    const world = new World()
    const { children, parent } = world.parentOf(1)
    const [child] = children as [TaskId]
    world.apply({ type: "abort", id: child, background: false, reason: "enough" })
    world.apply({ type: "ended", id: child, end: { type: "stopped" } })
    world.apply({ type: "ended", id: child, end: { type: "faulted", message: "abort: bug" } })
    expect(world.get(child).outcome).toEqual({ status: "faulted", error: "abort: bug" })
    expect(world.get(parent).status).toBe("running")
  })
})

describe("a crash", () => {
  it("at the limit parks the task with its reason; a retry runs it with a count that starts over", () => {
    const world = new World()
    const id = world.start()
    for (let crash = 1; crash < restartLimit; crash++) {
      world.restart(false)
      expect(world.get(id)).toMatchObject({ status: "running", crashes: crash, parked: null })
    }
    world.restart(false)
    expect(world.get(id)).toMatchObject({ status: "pending", crashes: restartLimit, node: null })
    expect(world.get(id).parked).toMatch(/^restart_limit: 5 unclean ends without progress/)
    world.restart(false)
    expect(world.live.has(id)).toBe(false)
    world.apply({ type: "retry", id })
    expect(world.get(id)).toMatchObject({ status: "running", crashes: 0, parked: null })
  })

  it("counts nothing after a clean stop, nor for tasks that wait or sleep", () => {
    const world = new World()
    const { children, parent } = world.parentOf(1)
    const sleeper = world.start()
    world.step(sleeper, Step.sleep({ ms: 1_000 }, { phase: "later" }))
    world.restart(true)
    world.restart(false)
    expect(world.get(parent)).toMatchObject({ status: "waiting", crashes: 0 })
    expect(world.get(sleeper)).toMatchObject({ status: "sleeping", crashes: 0 })
    expect(world.get(children[0] ?? 0)).toMatchObject({ status: "running", crashes: 1 })
  })

  it("loop of an abort handler parks the task too, and an abort runs the handler again", () => {
    const world = new World()
    const id = world.start()
    world.apply({ type: "abort", id, background: false, reason: "enough" })
    world.apply({ type: "ended", id, end: { type: "stopped" } })
    for (let crash = 0; crash < restartLimit; crash++) world.restart(false)
    expect(world.get(id)).toMatchObject({ status: "completing", parked: expect.stringContaining("restart_limit") })
    world.apply({ type: "abort", id, background: false, reason: "again" })
    expect(world.live.get(id)).toBe("abort")
    world.apply({ type: "ended", id, end: { type: "undone" } })
    expect(world.get(id).outcome).toEqual({ status: "aborted", reason: "enough" })
  })

  it("of a parked task's abort ends it", () => {
    const world = new World()
    const id = world.start()
    for (let crash = 0; crash < restartLimit; crash++) world.restart(false)
    world.undo = false
    world.apply({ type: "abort", id, background: false, reason: "enough" })
    expect(world.get(id)).toMatchObject({ status: "terminal", parked: null })
  })

  it("is refused as a retry where nothing is parked", () => {
    const world = new World()
    const id = world.start()
    expect(world.apply({ type: "retry", id }).refused).toBe(
      `task ${id}: expected a parked task, got one that is running`,
    )
    expect(world.apply({ type: "retry", id: TaskId.make(9) }).refused).toContain("got one that is ended")
  })
})

describe("a task whose code is missing", () => {
  it("keeps every byte of its row until the code is there, and only then counts its crash", () => {
    const world = new World()
    const id = world.start()
    const before = world.get(id)
    world.missing.add("test")
    world.restart(false)
    world.restart(false)
    expect(world.get(id)).toEqual(before)
    world.missing.clear()
    world.apply({ type: "registered", kind: "test" })
    expect(world.get(id)).toMatchObject({ status: "running", crashes: 1 })
  })

  it("is orphaned only when that is asked for, after what it owns", () => {
    const world = new World()
    const { children, parent } = world.parentOf(1)
    expect(world.apply({ type: "discard", id: parent, reason: "gone" }).refused).toContain(
      "expected a task whose code is missing",
    )
    const [child] = children as [TaskId]
    world.missing.add("test")
    world.restart(true)
    world.apply({ type: "discard", id: parent, reason: "gone" })
    expect(world.get(parent)).toMatchObject({ status: "completing", outcome: { status: "orphaned", reason: "gone" } })
    world.apply({ type: "discard", id: child, reason: "gone" })
    expect(world.get(parent)).toMatchObject({ status: "terminal", outcome: { status: "orphaned" } })
  })

  it("that its code cannot read is parked", () => {
    const world = new World()
    world.prepare = () => ({ type: "park", reason: "migration from version 1: no" })
    const id = world.start()
    expect(world.get(id)).toMatchObject({ status: "pending", parked: "migration from version 1: no" })
    world.prepare = null
    world.apply({ type: "retry", id })
    world.apply({ type: "ended", id, end: { type: "unreadable", message: "checkpoint: expected x, got y" } })
    expect(world.get(id).parked).toBe("checkpoint: expected x, got y")
  })
})
