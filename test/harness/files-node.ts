/**
 * A node that dies with the commit of a given number: by itself, as nothing else can be that exact.
 */
import { Effect } from "effect"
import { life } from "./files-life.ts"

const [, , database = "", base = "", last = "0"] = process.argv
const onCommit = (number: number) => {
  if (number === Number(last)) process.kill(process.pid, "SIGKILL")
}
await Effect.runPromise(life({ database, base, onCommit }))
