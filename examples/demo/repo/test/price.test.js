import { appendFileSync } from "node:fs"
import { setTimeout as pause } from "node:timers/promises"
import { total } from "../src/price.js"

// One line for each time the test was really started.
appendFileSync(new URL("../runs.log", import.meta.url), `${process.pid}\n`)

const checks = [
  ["one piece", total(250, 1), 250],
  ["several pieces", total(250, 4), 1000],
  ["many pieces", total(3, 1000), 3000],
  ["no pieces", total(250, 0), 0],
  ["no discount", total(200, 2, 0), 400],
  ["half off", total(200, 2, 0.5), 200],
  ["a tenth off", total(1000, 1, 0.1), 900],
  ["everything off", total(99, 3, 1), 0],
]

let failed = 0
for (const [name, actual, expected] of checks) {
  await pause(350)
  const good = actual === expected
  if (!good) failed++
  console.log(`${good ? "ok  " : "FAIL"} ${name}${good ? "" : `: expected ${expected}, got ${actual}`}`)
}
console.log(failed === 0 ? "all checks passed" : `${failed} checks failed`)
process.exitCode = failed === 0 ? 0 : 1
