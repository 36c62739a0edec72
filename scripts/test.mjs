/**
 * `npm test`: installs what is missing (also the programs in `test/clients`), builds (tests run the built program), runs the whole suite and prints, last and alone on a line,
 * `N passed, N failed` from the runner's own report. Arguments go to the runner: `npm test -- test/storage`.
 */
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { clients, ensureInstalled, Failure, main, root, runChild } from "./install.mjs"
import { log, prepare } from "./prepare.mjs"

/** Counts of a report. A file that could not be loaded holds no tests that could fail: it counts as one failure itself. */
const counts = (report) => {
  const broken = report.testResults.filter((file) => file.status === "failed" && file.assertionResults.length === 0)
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + broken.length,
    skipped: report.numPendingTests + report.numTodoTests,
  }
}

const summary = ({ passed, failed, skipped }) =>
  `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`

await main("super-pi", async () => {
  await prepare()
  // Not everybody's registry has all of them: what cannot be driven is skipped, by name.
  await ensureInstalled(log, clients).catch((error) => {
    if (!(error instanceof Failure)) throw error
    log(`${error.message}; tests that need these programs are skipped`)
  })
  const directory = await mkdtemp(path.join(tmpdir(), "super-pi-test-"))
  try {
    const file = path.join(directory, "report.json")
    const vitest = path.join(root, "node_modules", "vitest", "vitest.mjs")
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`]
    const code = await runChild(process.execPath, [vitest, "run", ...reporters, ...process.argv.slice(2)])
    const report = await readFile(file, "utf8").then(JSON.parse, () => null)
    if (report === null) throw new Failure(`the test runner left no report (exit code ${code})`)
    const found = counts(report)
    if (code !== 0 && found.failed === 0) log("the runner reports an error outside the tests; see above")
    console.log(summary(found))
    return code
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
})
