/**
 * Help pages, made from the table of commands.
 */
import { type Command, everywhere, type Option, shownCommands } from "./arguments.ts"

const optionHead = (option: Option<unknown>): string => {
  const short = option.short === undefined ? "    " : `-${option.short}, `
  const value =
    option.value === undefined ? "" : option.valueOptional === true ? ` [${option.value}]` : ` ${option.value}`
  return `${short}--${option.long}${value}`
}

/** Two columns; the left one is as wide as its widest short cell, longer cells get a line of their own. */
const columns = (rows: ReadonlyArray<readonly [string, string]>): Array<string> => {
  const width = Math.max(0, ...rows.map(([left]) => left.length).filter((length) => length <= 30))
  return rows.flatMap(([left, right]) =>
    left.length > width ? [`  ${left}`, `  ${" ".repeat(width)}  ${right}`] : [`  ${left.padEnd(width)}  ${right}`],
  )
}

const usageOf = (command: Command, path: ReadonlyArray<string>): string => {
  const words = (command.positionals ?? []).map((one) => {
    const name = one.rest === true ? `${one.name}...` : one.name
    return one.required ? name : `[${name}]`
  })
  const sub = (command.commands ?? []).length === 0 ? [] : [command.load === undefined ? "COMMAND" : "[COMMAND]"]
  return [...path, ...sub, "[OPTIONS]", ...words].join(" ")
}

/** The help page of one command, without a trailing newline. */
export const helpPage = (command: Command, path: ReadonlyArray<string>): string => {
  const lines = [`${path.join(" ")}: ${command.summary}`, "", `Usage: ${usageOf(command, path)}`]
  for (const detail of command.details ?? []) lines.push(detail === "" ? "" : `  ${detail}`)
  const commands = shownCommands(command)
  if (commands.length > 0) {
    lines.push("", "Commands:", ...columns(commands.map((one) => [one.name, one.summary])))
  }
  const positionals = command.positionals ?? []
  if (positionals.length > 0) {
    lines.push("", "Arguments:", ...columns(positionals.map((one) => [one.name, one.summary])))
  }
  lines.push(
    "",
    "Options:",
    ...columns([...command.options, ...everywhere].map((one) => [optionHead(one), one.summary])),
  )
  if (command.examples !== undefined) lines.push("", "Examples:", ...command.examples.map((one) => `  ${one}`))
  return lines.join("\n")
}
