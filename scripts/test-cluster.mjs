/**
 * `npm run test:cluster`: the tests of a cluster of real processes in their long forms, one file after the other; figures are printed. Arguments
 * go to the runner: `npm run test:cluster -- test/cluster/kill.test.ts`.
 */
process.env.SUPER_PI_TEST_CLUSTER = "long"
if (process.argv.length === 2) process.argv.push("test/cluster")
process.argv.push("--no-file-parallelism")
await import("./test.mjs")
