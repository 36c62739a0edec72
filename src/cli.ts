/**
 * The command line `super-pi`.
 */
import { loadProgram } from "./cli/load-program.ts"

loadProgram().runProgram(process.argv.slice(2))
