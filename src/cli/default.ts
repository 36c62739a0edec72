/**
 * `super-pi` without a command: a chat in a terminal; one prompt when stdin is a pipe or a prompt is given.
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
  const { main: run } = single ? await import("./run.ts") : await import("./chat.ts")
  return run(invocation)
}
