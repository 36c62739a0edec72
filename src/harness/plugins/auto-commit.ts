/**
 * Plugin AutoCommit: commits at the end of a run what the run changed, and only that; off unless `enabled`. docs/undo.md.
 *
 * 1. What a run changed is known from its checkpoints, so the plugin GitCheckpoint has to run before it.
 * 2. A file that had changes of the person when the run began is left alone: its commit would contain them.
 * 3. Nothing is committed on a detached HEAD, nor during a merge, a rebase, a cherry-pick, a revert or a bisection.
 * 4. What the person has staged stays staged, and does not get into the commit. The hooks of the repository run, and may refuse.
 * 5. Run again after a crash it finds nothing left to commit.
 */
import { existsSync } from "node:fs"
import { join, relative, sep } from "node:path"
import { Effect, Schema } from "effect"
import { type Checkpoint, changesOf, checkpointDocument } from "../../domain/checkpoint.ts"
import type { ConversationId } from "../../domain/ids.ts"
import { makeDocuments } from "../../storage/documents/documents.ts"
import { Store, type StoreService } from "../../storage/store.ts"
import { definePlugin } from "../define.ts"
import { git } from "./git-checkpoint/git.ts"

const AutoCommitOptions = Schema.Struct({
  enabled: Schema.optionalWith(Schema.Boolean, { default: () => false }),
  /** Before the subject of every commit; empty for none. */
  commit_prefix: Schema.optionalWith(Schema.String.pipe(Schema.maxLength(50)), { default: () => "[super-pi]" }),
})

/** Characters of a subject. */
const subjectChars = 72

/** The subject of a commit: the first line of the answer, shortened. Pure. */
export const subjectOf = (prefix: string, answer: string | null, files: number): string => {
  const line =
    answer
      ?.split("\n")
      .find((one) => one.trim() !== "")
      ?.trim() ?? ""
  const said = line === "" ? `Change ${files} ${files === 1 ? "file" : "files"}` : line
  const whole = prefix === "" ? said : `${prefix} ${said}`
  return whole.length <= subjectChars ? whole : `${whole.slice(0, subjectChars - 1)}…`
}

/** What goes on in a repository that a commit would disturb, or null. */
const inTheMiddle = async (root: string): Promise<string | null> => {
  const head = await git(root, ["symbolic-ref", "-q", "HEAD"])
  if (head.code !== 0) return "HEAD is detached"
  const found = await git(root, ["rev-parse", "--absolute-git-dir"])
  const directory = found.stdout.toString("utf8").trim()
  const states = [
    ["MERGE_HEAD", "a merge"],
    ["rebase-merge", "a rebase"],
    ["rebase-apply", "a rebase"],
    ["CHERRY_PICK_HEAD", "a cherry-pick"],
    ["REVERT_HEAD", "a revert"],
    ["BISECT_LOG", "a bisection"],
  ] as const
  const state = states.find(([name]) => existsSync(join(directory, name)))
  return state === undefined ? null : `${state[1]} is in progress`
}

/** The checkpoints of the newest run that still stand. */
const newestRun = (store: StoreService, conversation: ConversationId) =>
  Effect.map(makeDocuments(store).family(checkpointDocument, { conversation }), (all) => {
    const turns = all.map(({ value }) => value).filter(({ kind, undoneBy }) => kind === "turn" && undoneBy === null)
    const run = Math.max(0, ...turns.map((one) => one.run))
    return turns.filter((one) => one.run === run).sort((a, b) => a.id - b.id)
  })

/** The content of a path in HEAD, hashed by git as the file of a checkpoint is; null where HEAD has none. */
const headBlob = async (root: string, path: string): Promise<Buffer | null> => {
  const found = await git(root, ["cat-file", "blob", `HEAD:./${path}`])
  return found.code === 0 ? found.stdout : null
}

const sha256 = async (bytes: Buffer): Promise<string> =>
  (await import("node:crypto")).createHash("sha256").update(bytes).digest("hex")

/** The paths below `root` that the run changed from what HEAD has; those that had changes of the person besides. */
const pathsOf = async (
  root: string,
  checkpoints: ReadonlyArray<Checkpoint>,
): Promise<{ readonly own: ReadonlyArray<string>; readonly mixed: ReadonlyArray<string> }> => {
  const own: Array<string> = []
  const mixed: Array<string> = []
  for (const { after, before, foreign, path } of changesOf(checkpoints)) {
    const below = relative(root, path)
    const outside = below.startsWith("..") || below.split(sep).includes(".git")
    const isFile = [before, after].some(({ type }) => type === "file" || type === "symlink")
    if (outside || !isFile) continue
    const head = await headBlob(root, below)
    const clean =
      before.type === "absent"
        ? head === null
        : before.type === "file"
          ? head !== null && (await sha256(head)) === before.hash
          : before.type === "symlink" && head?.toString("utf8") === before.target
    if (clean && foreign !== true) own.push(below)
    else mixed.push(below)
  }
  return { own, mixed }
}

/** Commits; gives a line for the person, or null where there was nothing to do. */
const commit = async (
  root: string,
  checkpoints: ReadonlyArray<Checkpoint>,
  subject: (files: number) => string,
): Promise<{ readonly level: "info" | "warning"; readonly message: string } | null> => {
  if ((await git(root, ["rev-parse", "--is-inside-work-tree"])).code !== 0) return null
  const disturbed = await inTheMiddle(root)
  if (disturbed !== null) return { level: "warning", message: `nothing was committed: ${disturbed}` }
  const { mixed, own } = await pathsOf(root, checkpoints)
  const left = mixed.length === 0 ? "" : `; left alone, since they have other changes too: ${mixed.join(", ")}`
  const ignored = new Set(
    own.length === 0
      ? []
      : (await git(root, ["check-ignore", "-z", "--stdin"], `${own.join("\0")}\0`)).stdout.toString("utf8").split("\0"),
  )
  const paths = own.filter((path) => !ignored.has(path))
  if (paths.length === 0) return mixed.length === 0 ? null : { level: "info", message: `nothing was committed${left}` }
  // Names of files, not patterns. New ones have to be known to git before a commit can name them.
  const named = `${paths.join("\0")}\0`
  const literal = ["--literal-pathspecs"]
  const from = ["--pathspec-from-file=-", "--pathspec-file-nul"]
  const staged = await git(root, [...literal, "add", "--intent-to-add", "--ignore-errors", ...from], named)
  const made = await git(root, [...literal, "commit", "--quiet", "--only", "-m", subject(paths.length), ...from], named)
  if (made.code === 0) {
    const { stdout } = await git(root, ["rev-parse", "--short", "HEAD"])
    const files = `${paths.length} ${paths.length === 1 ? "file" : "files"}`
    return { level: "info", message: `committed ${stdout.toString("utf8").trim()} (${files})${left}` }
  }
  const said = [made.stdout.toString("utf8"), made.stderr, staged.stderr].join("\n").trim().split("\n")[0] ?? ""
  if (/nothing to commit|no changes added/.test(said)) return null
  // What was only announced is taken back, so that the index is as it was.
  const only = await announced(root, paths)
  if (only !== "") await git(root, [...literal, "reset", "--quiet", ...from], `${only}\0`)
  return { level: "warning", message: `nothing was committed: ${said}${left}` }
}

/** Of the paths those that git knows by announcement only. */
const announced = async (root: string, paths: ReadonlyArray<string>): Promise<string> => {
  const { stdout } = await git(root, ["diff", "--name-only", "-z", "--relative", "--diff-filter=A"])
  const added = new Set(stdout.toString("utf8").split("\0"))
  return paths.filter((path) => added.has(path)).join("\0")
}

export const autoCommit = definePlugin<typeof AutoCommitOptions.Type, typeof AutoCommitOptions.Encoded, Store>({
  name: "auto-commit",
  description: "Commits at the end of a run what the run changed; off unless enabled",
  options: AutoCommitOptions,
  // Hooks of a repository may run its tests.
  deadlineMs: 300_000,
  hooks: {
    afterRun: (run, { conversation, notify, options, workspace }) =>
      Effect.gen(function* () {
        if (!options.enabled || run.outcome !== "answered" || run.tools.length === 0) return
        const checkpoints = yield* newestRun(yield* Store, conversation)
        if (checkpoints.length === 0) return
        const subject = (files: number) => subjectOf(options.commit_prefix, run.text, files)
        const done = yield* Effect.promise(() => commit(workspace.root, checkpoints, subject))
        if (done !== null) yield* notify(done.level, done.message)
      }),
  },
})
