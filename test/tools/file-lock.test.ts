/**
 * File locks in the process, and the rules of their table.
 */

import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { FileLocks } from "../../src/tools/file-lock.ts"
import { LockTable } from "../../src/tools/lock-table.ts"
import { fileLockBehaviour } from "./file-lock-behaviour.ts"

fileLockBehaviour("file locks without actors", FileLocks.layer)

describe("the lock table", () => {
  it("keeps its rules over any sequence of requests and releases", () => {
    const paths = fc.uniqueArray(fc.constantFrom("a", "b", "c", "d"), { minLength: 1 })
    const step = fc.oneof(
      fc.record({ request: paths }),
      // Which of the ids so far is released.
      fc.record({ release: fc.nat(30) }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const table = new LockTable()
        const wanted: Array<ReadonlyArray<string>> = []
        const held = new Set<number>()
        let waiting: Array<number> = []
        const check = () => {
          const owners = new Map<string, number>()
          for (const id of held) {
            for (const path of wanted[id] ?? []) {
              expect(owners.has(path)).toBe(false)
              owners.set(path, id)
              expect(table.holderOf(path)).toBe(id)
            }
          }
          // Whoever waits has a holder or an earlier waiter in the way: nobody waits for nothing.
          for (const [index, id] of waiting.entries()) {
            const earlier = new Set(waiting.slice(0, index).flatMap((other) => wanted[other] ?? []))
            expect((wanted[id] ?? []).some((path) => owners.has(path) || earlier.has(path))).toBe(true)
          }
          expect(table.size).toEqual({ held: held.size, waiting: waiting.length })
        }
        for (const one of steps) {
          if ("request" in one) {
            const id = wanted.push(one.request) - 1
            if (table.request(id, one.request)) held.add(id)
            else waiting.push(id)
          } else {
            const granted = table.release(one.release)
            held.delete(one.release)
            waiting = waiting.filter((id) => id !== one.release && !granted.includes(id))
            for (const id of granted) held.add(id)
            expect([...granted]).toEqual([...granted].sort((left, right) => left - right))
          }
          check()
        }
        for (let id = 0; id < wanted.length; id++) for (const next of table.release(id)) held.add(next)
        expect(table.size).toEqual({ held: 0, waiting: 0 })
      }),
    )
  })
})
