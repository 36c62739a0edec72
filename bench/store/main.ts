/**
 * `node scripts/bench.mjs store [part of a case's name]`
 */
import { table } from "../row.ts"
import { rows } from "./index.ts"

const measured = await rows(process.argv[2])
console.log(table("store", measured))
process.exitCode = measured.every((row) => row.met) ? 0 : 1
