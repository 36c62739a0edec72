/**
 * What the flags and the environment of a command come to: paths, settings and the choices for a conversation.
 */
import { realpathSync, statSync } from "node:fs"
import { homedir } from "node:os"
import { resolve } from "node:path"
import type { AgentDocument } from "../domain/document.ts"
import type { Invocation } from "./arguments.ts"
import { CommandFailure, usageFailure } from "./exit.ts"
import { harnessOf } from "./harness-choice.ts"
import * as option from "./options.ts"
import { ensureDataDir, type Paths, resolvePaths } from "./paths.ts"
import type { NodeOptions } from "./ports.ts"
import { serverOf } from "./server.ts"
import { loadSettings } from "./settings.ts"

export const pathsOf = (invocation: Invocation): Paths =>
  resolvePaths(
    { env: process.env, platform: process.platform, home: homedir(), cwd: process.cwd() },
    { db: invocation.get(option.db) },
  )

/** `--cwd` as an absolute, canonical path, or undefined. */
const workspace = (invocation: Invocation): string | undefined => {
  const given = invocation.get(option.cwd)
  if (given === undefined) return undefined
  const path = resolve(given)
  let directory = false
  try {
    directory = statSync(path).isDirectory()
  } catch {
    throw usageFailure(`--cwd: expected a directory, but ${path} does not exist`)
  }
  if (!directory) throw usageFailure(`--cwd: expected a directory, but ${path} is a file`)
  return realpathSync(path)
}

/** What the flags say that a conversation runs with; a new one also gets the current directory as its workspace. */
export const agentOf = (invocation: Invocation, isNew: boolean): AgentDocument => {
  const model = invocation.get(option.model)
  const effort = invocation.get(option.effort)
  const mode = invocation.get(option.mode)
  const harness = harnessOf(invocation)
  const cwd = workspace(invocation) ?? (isNew ? currentDirectory() : undefined)
  return {
    ...(model === undefined ? {} : { model }),
    ...(effort === undefined ? {} : { effort }),
    ...(mode === undefined ? {} : { mode }),
    ...(harness === undefined ? {} : { harness }),
    ...(cwd === undefined ? {} : { cwd }),
  }
}

const currentDirectory = (): string => {
  try {
    return realpathSync(process.cwd())
  } catch {
    throw new CommandFailure("the current directory is gone; change to another one or give --cwd DIRECTORY")
  }
}

/** Options of the node that a command opens; prints the warnings of the settings file. */
export const nodeOptionsOf = (invocation: Invocation): NodeOptions => {
  const paths = pathsOf(invocation)
  ensureDataDir(paths)
  const { settings, warnings } = loadSettings(paths.settingsFile)
  for (const warning of warnings) process.stderr.write(`super-pi: warning: ${warning}\n`)
  const postgres = serverOf(paths, process.env)
  return {
    db: paths.database,
    ...(postgres === null ? {} : { postgres }),
    env: process.env,
    settings,
    cwd: workspace(invocation) ?? currentDirectory(),
    program: invocation.path.join(" "),
  }
}
