/**
 * The command line `super-pi`.
 */
import { runProgram } from "./cli/program.ts"

runProgram(process.argv.slice(2))
