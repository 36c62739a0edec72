/**
 * The append log against plain arrays: every version keeps its own elements, whatever is appended to others.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { AppendLog } from "../../src/domain/append-log.ts"

describe("an append log", () => {
  it("gives every version exactly what was appended on its way", () => {
    const step = fc.record({ to: fc.nat(), items: fc.array(fc.nat(9), { maxLength: 3 }) })
    fc.assert(
      fc.property(fc.array(fc.nat(9)), fc.array(step, { maxLength: 40 }), (first, steps) => {
        const logs = [AppendLog.from(first)]
        const models: Array<ReadonlyArray<number>> = [first]
        for (const { items, to } of steps) {
          const at = to % logs.length
          logs.push((logs[at] as AppendLog<number>).append(items))
          models.push([...(models[at] ?? []), ...items])
        }
        logs.forEach((log, at) => {
          expect(log.slice()).toEqual(models[at])
          expect(log.slice(1)).toEqual(models[at]?.slice(1))
        })
      }),
      { numRuns: 1_000 },
    )
  })

  it("says that it extends an earlier version of itself, and nothing else", () => {
    const a = AppendLog.from([1])
    const b = a.append([2])
    const c = a.append([3])
    expect(b.extends(a)).toBe(true)
    expect(a.extends(b)).toBe(false)
    expect(c.extends(b)).toBe(false)
    expect(b.slice()).toEqual([1, 2])
    expect(c.slice()).toEqual([1, 3])
  })
})
