/**
 * A node as a service, `node dist/node.js`: the command `super-pi node` with the options that are given.
 */
import { loadProgram } from "./cli/load-program.ts"

loadProgram().runProgram(["node", ...process.argv.slice(2)])
