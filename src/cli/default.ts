/**
 * `super-pi` without a command: a chat in a terminal, full-screen where there is a client for that; one prompt when stdin is a pipe or a
 * prompt is given.
 */
import type { Invocation } from "./arguments.ts"
import * as option from "./options.ts"

export const main = async (invocation: Invocation): Promise<number> => {
  const single =
    process.stdin.isTTY !== true ||
    invocation.get(option.prompt) !== undefined ||
    invocation.get(option.inputFormat) !== undefined ||
    invocation.get(option.outputFormat) !== undefined ||
    invocation.get(option.jsonSchema) !== undefined
  if (single) return (await import("./run.ts")).main(invocation)
  if (invocation.get(option.noTui) !== true && process.stdout.isTTY === true) {
    const { findTui, runTui } = await import("./tui.ts")
    const tui = findTui(process.env)
    if (tui !== null) return runTui(tui, invocation)
  }
  return (await import("./chat.ts")).main(invocation)
}
