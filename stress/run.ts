/**
 * One stress run: a node, its load, its killer, and the check at the end. The seed fixes the load and the moments of the kills; how far the
 * node has come at such a moment is the machine's.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import path from "node:path"
import { EntryKind } from "../src/domain/entry.ts"
import { TaskKind } from "../src/domain/task.ts"
import { contextFaults } from "./context-faults.ts"
import { LoadedConversation } from "./conversation.ts"
import { openTasks, readEffects, readWorld, type World } from "./database.ts"
import { faultsAtRest } from "./invariants.ts"
import { NodeProcess } from "./node-process.ts"
import { Observations } from "./observations.ts"
import { makePlan, type Options, type Plan } from "./plan.ts"
import { brokenPromises } from "./promises.ts"
import { random } from "./random.ts"
import type { RpcClient } from "./rpc-client.ts"

export interface Report {
  readonly faults: ReadonlyArray<string>
  readonly submissions: number
  readonly answered: number
  readonly entries: number
  readonly unsafeCalls: number
  /** Calls that a kill cut off: reported as interrupted, not run again. */
  readonly interrupted: number
  readonly kills: number
  /** Parked runs that were run again. */
  readonly retries: number
  readonly calls: number
  readonly events: number
}

/** The answers that are still due get this long after the load has ended, in milliseconds. */
const settleLimit = 120_000

/** A kill that is to hit an event waits this long for one, in milliseconds. */
const eventLimit = 2_000

/** How long what follows a run may take, and how often it is looked for, in milliseconds. */
const afterLimit = 30_000
const afterPoll = 50

const wait = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds))

const within = async <A>(limit: number, what: string, work: Promise<A>): Promise<A> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took longer than ${limit} ms`)), limit)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Kills and restarts the node at the planned moments. Connections ask `connect` and wait there while the node is down. */
class Killer {
  readonly #node: NodeProcess
  #up: Promise<void> = Promise.resolve()

  constructor(node: NodeProcess) {
    this.#node = node
  }

  readonly connect = async (): Promise<RpcClient> => {
    await this.#up
    return await this.#node.connect()
  }

  async run(plan: Plan, started: number, seen: Observations): Promise<void> {
    for (const { at, on, afterMs } of plan.kills) {
      await wait(Math.max(0, started + at - Date.now()))
      if (on !== "now") await seen.next(on, eventLimit)
      await wait(afterMs)
      this.#up = this.#restart()
      await this.#up
      seen.kills++
    }
  }

  async #restart(): Promise<void> {
    await this.#node.kill()
    await (await this.#node.start()).close()
  }
}

const load = async (node: NodeProcess, plan: Plan, workspace: string, seen: Observations): Promise<void> => {
  const started = Date.now()
  const until = started + plan.options.seconds * 1_000
  const killer = new Killer(node)
  const killing = killer.run(plan, started, seen)
  const conversations = plan.jobs.map(
    (jobs, index) =>
      new LoadedConversation(index, jobs, {
        connect: killer.connect,
        workspace,
        observations: seen,
        random: random(plan.options.seed * 1_000 + index),
        going: () => Date.now() < until,
        calm: killing,
      }),
  )
  const running = Promise.all([...conversations.map((conversation) => conversation.run()), killing])
  await within(plan.options.seconds * 1_000 + settleLimit, "the load", running).catch((error) =>
    seen.fault(String(error)),
  )
}

/** Results that say something. */
const resultsThat = ({ entries }: World, say: RegExp): number =>
  entries.filter(({ kind, model }) => kind === EntryKind.toolResult && say.test(JSON.stringify(model))).length

/** A call that was refused is no load: then nothing was shown. */
const refusedCalls = (world: World): ReadonlyArray<string> => {
  const refused = resultsThat(world, /"Blocked: /)
  return refused === 0 ? [] : [`L1 ${refused} calls of the script were refused by the permissions`]
}

/** What follows a run goes on beside its answer; a stop before its end would leave it to the next start. Where it does not end, I3 says so. */
const afterWork = async (db: string): Promise<void> => {
  const until = Date.now() + afterLimit
  while (openTasks(db, TaskKind.afterRun) > 0 && Date.now() < until) await wait(afterPoll)
}

/** Starts once more, stops cleanly, and compares: a database at rest stays as it is. */
const restsStill = async (node: NodeProcess, db: string, before: World): Promise<ReadonlyArray<string>> => {
  await (await node.start()).close()
  const code = await node.stop()
  const after = readWorld(db)
  const same =
    JSON.stringify([after.entries, after.submissions]) === JSON.stringify([before.entries, before.submissions])
  return [
    ...(code === 0 ? [] : [`R2 a clean stop ended with code ${code}: ${node.stderr.trim()}`]),
    ...(same ? [] : ["R1 starting again changed a database at rest"]),
  ]
}

/** Runs below `directory`, an empty one; `program` is the path of `bin/super-pi`. */
export const stress = async (options: Options, directory: string, program: string): Promise<Report> => {
  const workspace = path.join(directory, "workspace")
  const effects = path.join(workspace, "effects.log")
  const db = path.join(directory, "stress.db")
  const script = path.join(directory, "script.json")
  mkdirSync(workspace)
  writeFileSync(path.join(workspace, "notes.txt"), "notes for the reader\n")
  const plan = makePlan(options, effects)
  writeFileSync(script, JSON.stringify(plan.script))
  const env = {
    SUPER_PI_SCRIPT: script,
    SUPER_PI_CONFIG_DIR: path.join(directory, "config"),
    SUPER_PI_DATA_DIR: path.join(directory, "data"),
  }
  const node = new NodeProcess({ program, directory: workspace, db, socket: path.join(directory, "rpc.sock"), env })
  const seen = new Observations()
  try {
    await (await node.start()).close()
    await load(node, plan, workspace, seen)
    await afterWork(db)
    const code = await node.stop()
    const world = readWorld(db)
    const traces = readEffects(effects)
    const faults = [
      ...node.accidents,
      ...(code === 0 ? [] : [`R2 a clean stop ended with code ${code}: ${node.stderr.trim()}`]),
      ...brokenPromises(world, seen, plan),
      ...refusedCalls(world),
      ...faultsAtRest(world, traces, contextFaults),
      ...(await restsStill(node, db, world)),
    ]
    return {
      faults,
      submissions: world.submissions.length,
      answered: world.submissions.filter(({ status }) => status === "done").length,
      entries: world.entries.length,
      unsafeCalls: traces.size,
      interrupted: resultsThat(world, /the process died/),
      kills: seen.kills,
      retries: seen.retries,
      calls: seen.calls,
      events: seen.events,
    }
  } finally {
    await node.kill()
  }
}
