/**
 * A node as a service, `node dist/node.js`: the command `super-pi node` with the options that are given.
 */
import { runProgram } from "./cli/program.ts"

runProgram(["node", ...process.argv.slice(2)])
