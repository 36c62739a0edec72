/**
 * `super-pi demo`: a node is killed in the middle of a tool call and the turn still ends well. Everything is real (the node's process, the
 * database, the tools, the SIGKILL) but the model, which follows a script. Needs no key and no network; leaves nothing behind.
 */
import { spawn } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Schema } from "effect"
import { Receipt, Settled } from "../actors/contract.ts"
import { Entry } from "../domain/entry.ts"
import { type Event, SessionState } from "../domain/event.ts"
import { TreeNode } from "../domain/tree.ts"
import { duration, shortArguments } from "../protocols/terminal/format.ts"
import { emptyLayout, lay } from "../protocols/terminal/layout.ts"
import { terminalRenderer } from "../protocols/terminal/renderer.ts"
import { oneLine } from "../protocols/terminal/sanitize.ts"
import { painter, traitsOf } from "../protocols/terminal/style.ts"
import { renderTree } from "../protocols/terminal/tree.ts"
import { prove } from "./demo-evidence.ts"
import { type DemoNode, startNode } from "./demo-node.ts"
import { CommandFailure, ExitCode } from "./exit.ts"
import { packageRoot } from "./package.ts"

const prompt = "A test fails in this project. Find out why, repair it and show that the test passes."

/** The demonstration gives up after this many milliseconds. */
const limit = 60_000

/**
 * Lines of the test's nine after which the tree is shown, and after which the node is killed: then the test is in its middle, and its
 * first lines have been committed (output reaches the database within a second), so that the interrupted call's result can show them.
 */
const linesBefore = { tree: 2, kill: 5 }

const traits = traitsOf(process.stdout, process.env)
const paint = painter(traits.color)
const say = (text: string): void => void process.stdout.write(`${text}\n`)
const heading = (text: string): void => say(`\n${paint("strong", text)}`)
const indent = (text: string): string => text.replace(/^/gm, "    ")

/** Renders events under each other, as a pipe sees them. */
const narrator = () => {
  let view = terminalRenderer.init({})
  let layout = emptyLayout
  let buffered = ""
  return (event: Event): void => {
    if (event.type === "tool_started")
      buffered += paint("accent", `→ ${oneLine(event.name)} ${shortArguments(event.arguments, 60)}\n`)
    if (event.type === "tool_output") buffered += paint("dim", event.delta.replace(/^(?=.)/gm, "  "))
    const [next, blocks] = terminalRenderer.render(view, event)
    view = next
    const laid = lay(layout, blocks, { color: traits.color, columns: null })
    layout = laid.layout
    buffered += laid.out
    const end = buffered.lastIndexOf("\n") + 1
    if (end > 0) process.stdout.write(buffered.slice(0, end).replace(/^(?=.)/gm, "    "))
    buffered = buffered.slice(end)
  }
}

/** Only what programs need: no key of the person's reaches the demonstration. */
const environment = (directory: string, script: string): NodeJS.ProcessEnv => {
  const kept = ["PATH", "HOME", "LANG", "TMPDIR", "SystemRoot", "SUPER_PI_DEBUG"]
  return {
    ...Object.fromEntries(kept.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]))),
    SUPER_PI_DATA_DIR: directory,
    SUPER_PI_CONFIG_DIR: directory,
    SUPER_PI_SCRIPT: script,
  }
}

const runTest = (repository: string): Promise<number | null> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["test/price.test.js"], { cwd: repository, stdio: "ignore" })
    child.on("error", reject)
    child.on("close", resolve)
  })

/** How many lines of output the events hold for the call that runs. */
const seenLines = (events: ReadonlyArray<Event>, callId: string): number =>
  events.reduce(
    (sum, event) =>
      event.type === "tool_output" && event.call_id === callId ? sum + event.delta.split("\n").length - 1 : sum,
    0,
  )

interface Stage {
  readonly directory: string
  readonly repository: string
  readonly start: (onEvent: (event: Event) => void) => DemoNode
  /** Ends the nodes that still run. */
  readonly clear: () => Promise<void>
}

const setUp = (directory: string): Stage => {
  const source = join(packageRoot(), "examples", "demo")
  const repository = join(directory, "shop")
  cpSync(join(source, "repo"), repository, { recursive: true })
  const launcher = join(packageRoot(), "bin", "super-pi")
  const args = [
    launcher,
    "rpc",
    "--stdio",
    "--db",
    join(directory, "demo.db"),
    "--model",
    "script/demo",
    "--mode",
    "auto",
  ]
  const env = environment(directory, join(source, "script.json"))
  const nodes: Array<DemoNode> = []
  return {
    directory,
    repository,
    start: (onEvent) => {
      const node = startNode({ file: process.execPath, args, env, cwd: repository }, onEvent)
      nodes.push(node)
      return node
    },
    clear: async () => void (await Promise.all(nodes.map((node) => node.kill()))),
  }
}

const treeOf = async (node: DemoNode): Promise<string> => {
  const tree = await node.call("node.tree", {}, TreeNode)
  return indent(renderTree(tree, { color: traits.color, columns: null, now: Date.now() }))
}

/** A value that is given once and waited for. */
const signal = <A>() => {
  let give: (value: A) => void = () => {}
  const given = new Promise<A>((resolve) => {
    give = resolve
  })
  return { given, give }
}

/** From the prompt to the kill. */
const firstLife = async (stage: Stage) => {
  const events: Array<Event> = []
  const narrate = narrator()
  const running = signal<string>()
  const middle = signal<string>()
  const node = stage.start((event) => {
    events.push(event)
    narrate(event)
    const test = events.find((one) => one.type === "tool_started" && one.name === "bash")
    if (test?.type !== "tool_started") return
    const lines = seenLines(events, test.call_id)
    if (lines >= linesBefore.tree) running.give(test.call_id)
    if (lines >= linesBefore.kill) middle.give(test.call_id)
  })
  const agent = { model: "script/demo", mode: "auto", cwd: stage.repository }
  const session = await node.call(
    "session.open",
    { agent, title: "Repair the price test", requestId: "demo-open" },
    SessionState,
  )
  const conversationId = session.conversation_id
  await node.call("session.watch", { conversationId }, Schema.Unknown)
  const submit = { conversationId, content: prompt, requestId: "demo-prompt" }
  const receipt = await node.call("session.submit", submit, Receipt)
  say(
    `    ${paint("dim", `conversation ${conversationId}, submission ${receipt.submission_id}, node process ${node.pid}`)}`,
  )
  const ended = node
    .call("session.await", { conversationId, submissionId: receipt.submission_id }, Settled)
    .then((settled) => {
      throw new CommandFailure(`the turn ended before the kill: ${settled.detail ?? settled.text ?? settled.status}`)
    })
  // The node dies soon, so nobody waits for the end any more.
  ended.catch(() => {})
  await Promise.race([running.given, ended])
  const tree = await treeOf(node)
  const killedCall = await Promise.race([middle.given, ended])
  const editedAt = statSync(join(stage.repository, "src", "price.js")).mtimeMs
  const cause = await node.kill()
  heading(
    `3. The node's process ${node.pid} is killed (${cause}) in the middle of the test. Its supervision tree until then:`,
  )
  say(tree)
  if (cause !== "SIGKILL") throw new CommandFailure(`expected the node to die of SIGKILL, got ${cause}`)
  return { conversationId, submit, receipt, killedCall, events, editedAt }
}

const perform = async (stage: Stage): Promise<number> => {
  heading("1. A small project with a failing test, in a temporary copy")
  const before = await runTest(stage.repository)
  rmSync(join(stage.repository, "runs.log"))
  say(`    ${stage.repository}`)
  say(`    node test/price.test.js ends with code ${before}`)
  if (before !== 1) throw new CommandFailure(`expected the test to fail with code 1, got ${before}`)

  heading(`2. A node starts and is asked: "${prompt}"`)
  const first = await firstLife(stage)

  heading("4. Another node starts on the same database, recovers and goes on with the turn")
  const { conversationId } = first
  const events: Array<Event> = []
  const narrate = narrator()
  const node = stage.start((event) => {
    events.push(event)
    narrate(event)
  })
  await node.call("session.watch", { conversationId }, Schema.Unknown)
  const again = await node.call("session.submit", first.submit, Receipt)
  const settled = await node.call("session.await", { conversationId, submissionId: again.submission_id }, Settled)
  heading("5. The supervision tree after the turn")
  say(await treeOf(node))
  const entries = await node.call("session.transcript", { conversationId }, Schema.Array(Entry))
  const code = await node.stop()
  if (code !== 0) throw new CommandFailure(`expected the node to stop with code 0, got ${code}`)

  const testRuns = readFileSync(join(stage.repository, "runs.log"), "utf8").trim().split("\n").length
  const testCode = await runTest(stage.repository)
  const proofs = prove({
    entries,
    lives: [first.events, events],
    killedCall: first.killedCall,
    answer: settled.text,
    submissions: [first.receipt.submission_id, again.submission_id],
    editedAt: [first.editedAt, statSync(join(stage.repository, "src", "price.js")).mtimeMs],
    testRuns,
    testCode,
  })
  heading("6. What this shows")
  for (const { claim, holds, shown } of proofs) {
    say(`    ${holds ? paint("good", "✓") : paint("error", "✗")} ${claim}`)
    say(paint("dim", `      ${oneLine(shown)}`))
  }
  const missing = proofs.filter((proof) => !proof.holds)
  if (missing.length > 0) throw new CommandFailure(`not as promised: ${missing.map((proof) => proof.claim).join("; ")}`)
  return ExitCode.ok
}

export const main = async (): Promise<number> => {
  const startedAt = Date.now()
  say("Super-Pi: a durable turn outlives the death of its process.")
  say(
    "To chat with a model, set GEMINI_API_KEY, ANTHROPIC_API_KEY or OPENAI_API_KEY (or SUPER_PI_OPENAI_BASE_URL for another",
  )
  say(
    "service; see super-pi doctor) and run npm start again. This demonstration uses a scripted model: no key, no network.",
  )
  const stage = setUp(realpathSync(mkdtempSync(join(tmpdir(), "super-pi-demo-"))))
  const { directory } = stage
  let giveUp: (failure: CommandFailure) => void = () => {}
  const givenUp = new Promise<never>((_, reject) => {
    giveUp = reject
  })
  const timer = setTimeout(
    () => giveUp(new CommandFailure(`the demonstration did not end within ${limit / 1000} s`)),
    limit,
  )
  const onInterrupt = () => giveUp(new CommandFailure("the demonstration was interrupted", ExitCode.interrupted))
  const onTerm = () => giveUp(new CommandFailure("the demonstration was stopped", ExitCode.terminated))
  process.once("SIGINT", onInterrupt)
  process.once("SIGTERM", onTerm)
  try {
    const code = await Promise.race([perform(stage), givenUp])
    say(`\nDone in ${duration(Date.now() - startedAt)}.`)
    return code
  } finally {
    clearTimeout(timer)
    process.off("SIGINT", onInterrupt)
    process.off("SIGTERM", onTerm)
    await stage.clear()
    rmSync(directory, { recursive: true, force: true, maxRetries: 3 })
  }
}
