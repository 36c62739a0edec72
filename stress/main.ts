/**
 * `npm run stress`: reads the flags, runs, prints what was done and every fault, and for a failing seed the command that replays it.
 */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { parseArgs } from "node:util"
import type { Options } from "./plan.ts"
import { type Report, stress } from "./run.ts"

const usage = `npm run stress -- [options]

  --conversations N   conversations at once (default 20)
  --seconds N         how long new work is submitted (default 20)
  --kills N           how often the node is killed with SIGKILL and restarted (default 5)
  --seed N            load and moments of the kills (default: the clock)
  --keep              leave the directory of a run for a look`

const whole = (name: string, given: string | undefined, otherwise: number, least: number): number => {
  const value = given === undefined ? otherwise : Number(given)
  if (!Number.isSafeInteger(value) || value < least) {
    throw new RangeError(`--${name}: expected a whole number of at least ${least}, got "${given}"`)
  }
  return value
}

interface Flags extends Options {
  readonly keep: boolean
  readonly help: boolean
}

export const readFlags = (argv: ReadonlyArray<string>, now: number): Flags => {
  const text = { type: "string" } as const
  const { values } = parseArgs({
    args: [...argv],
    options: {
      conversations: text,
      seconds: text,
      kills: text,
      seed: text,
      keep: { type: "boolean" },
      help: { type: "boolean" },
    },
  })
  return {
    conversations: whole("conversations", values.conversations, 20, 1),
    seconds: whole("seconds", values.seconds, 20, 1),
    kills: whole("kills", values.kills, 5, 0),
    seed: whole("seed", values.seed, now % 1_000_000, 0),
    keep: values.keep ?? false,
    help: values.help ?? false,
  }
}

/** The command that does the same again. */
export const replay = ({ conversations, seconds, kills, seed }: Options): string =>
  `npm run stress -- --conversations ${conversations} --seconds ${seconds} --kills ${kills} --seed ${seed}`

const summary = (report: Report): string =>
  [
    `${report.submissions} submissions (${report.answered} answered), ${report.entries} entries`,
    `${report.unsafeCalls} unsafe calls, none repeated; ${report.interrupted} calls cut off by a kill`,
    `${report.kills} kills, ${report.retries} parked runs run again, ${report.calls} calls, ${report.events} events`,
  ].join("; ")

/** Resolves with the exit code. */
export const main = async (argv: ReadonlyArray<string>, program: string): Promise<number> => {
  let flags: Flags
  try {
    flags = readFlags(argv, Date.now())
  } catch (error) {
    console.error(`stress: ${error instanceof Error ? error.message : String(error)}\n\n${usage}`)
    return 2
  }
  if (flags.help) {
    console.log(usage)
    return 0
  }
  const directory = await mkdtemp(path.join(tmpdir(), "super-pi-stress-"))
  console.log(
    `stress: seed ${flags.seed}, ${flags.conversations} conversations, ${flags.seconds} s, ${flags.kills} kills`,
  )
  const report = await stress(flags, directory, program)
  if (flags.keep || report.faults.length > 0) console.log(`stress: its files are in ${directory}`)
  else await rm(directory, { recursive: true, force: true })
  for (const fault of report.faults.slice(0, 50)) console.error(`  ${fault}`)
  if (report.faults.length > 0) {
    console.error(`stress: ${report.faults.length} faults; replay with: ${replay(flags)}`)
    return 1
  }
  console.log(`stress: every invariant holds. ${summary(report)}`)
  return 0
}
