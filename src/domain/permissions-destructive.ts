/**
 * Commands that destroy what nobody can bring back: what ConfirmDestructive asks about. Found in the syntax tree, so that quotes, wrappers and
 * the order of options do not matter. A list of known ones, not a proof that the rest is harmless.
 */
import { Either } from "effect"
import { optionsOf } from "./shell/options.ts"
import { type CommandPattern, denies, parsePattern } from "./shell/pattern.ts"
import { programOf, type ShellCommand, type ShellScript } from "./shell/script.ts"

/** Patterns as `permissions.deny` reads them, and what they destroy. */
const patterns: ReadonlyArray<readonly [string, string]> = [
  ["rm -r", "removes directories with all that is in them"],
  ["rm /", "removes files of the system"],
  ["git reset --hard", "throws uncommitted changes away"],
  ["git push --force", "overwrites the history of a remote"],
  ["git push --force-with-lease", "overwrites the history of a remote"],
  ["git push --mirror", "overwrites the refs of a remote"],
  ["git push --delete", "removes a branch of a remote"],
  ["git push -d", "removes a branch of a remote"],
  ["git clean -f", "removes files that git does not know"],
  ["git checkout -f", "throws uncommitted changes away"],
  ["git checkout .", "throws uncommitted changes away"],
  ["git restore .", "throws uncommitted changes away"],
  ["git branch -D", "removes a branch that may not be merged"],
  ["git stash drop", "removes stashed changes"],
  ["git stash clear", "removes stashed changes"],
  ["git reflog expire", "removes the way back to lost commits"],
  ["git gc --prune=now", "removes the way back to lost commits"],
  ["git filter-branch", "rewrites history"],
  ["git filter-repo", "rewrites history"],
  ["git update-ref -d", "removes a ref"],
  ["mkfs*", "formats a disk"],
  ["wipefs", "erases a disk"],
  ["fdisk", "changes partitions"],
  ["parted", "changes partitions"],
  ["shred", "overwrites files"],
  ["srm", "overwrites files"],
  ["truncate", "empties files"],
  ["dd of=*", "overwrites a file or a disk"],
  ["chmod -r", "changes permissions of a whole tree"],
  ["chown -r", "changes owners of a whole tree"],
  ["chgrp -r", "changes groups of a whole tree"],
  ["find -delete", "removes what it finds"],
  ["rsync --delete*", "removes files at the destination"],
  ["crontab -r", "removes the crontab"],
  ["userdel", "removes a user"],
  ["iptables -F", "removes the rules of the firewall"],
  ["shutdown", "ends the machine"],
  ["reboot", "ends the machine"],
  ["halt", "ends the machine"],
  ["poweroff", "ends the machine"],
  ["kill -9 -1", "ends every process"],
  ["killall", "ends processes by name"],
  ["pkill", "ends processes by name"],
  ["docker system prune", "removes containers, networks and images"],
  ["docker volume rm", "removes volumes"],
  ["docker volume prune", "removes volumes"],
  ["docker rm -f", "removes running containers"],
  ["kubectl delete", "removes objects of a cluster"],
  ["helm uninstall", "removes a release"],
  ["terraform destroy", "removes infrastructure"],
  ["terraform apply --auto-approve", "changes infrastructure unseen"],
  ["terraform apply -auto-approve", "changes infrastructure unseen"],
  ["aws s3 rm", "removes objects"],
  ["aws s3 rb", "removes a bucket"],
  ["gsutil rm", "removes objects"],
  ["gh repo delete", "removes a repository"],
  ["npm publish", "publishes a package for good"],
  ["npm unpublish", "withdraws a package"],
  ["cargo publish", "publishes a package for good"],
  ["dropdb", "removes a database"],
  ["redis-cli flushall", "empties a database"],
  ["redis-cli flushdb", "empties a database"],
]

const parsed: ReadonlyArray<readonly [CommandPattern, string]> = patterns.flatMap(([text, what]) => {
  const pattern = parsePattern(text)
  return Either.isRight(pattern) ? [[pattern.right, what] as const] : []
})

/** Programs that send a text to a database. */
const databases =
  /^(psql|mysql|mariadb|sqlite3?|sqlcmd|mssql-cli|clickhouse(-client)?|duckdb|bq|snowsql|cqlsh|mongosh?|pgcli|mycli|usql|wrangler|turso|heroku|supabase|prisma|rails|docker|podman|kubectl|echo|printf)$/

const sql =
  /\b(drop\s+(table|database|schema|index|view|user|role|owned)|truncate\s+(table\s+)?\w|delete\s+from\s+[\w."`[\]]+\s*(;|$|["'])|dropDatabase\s*\(|\.drop\s*\(|deleteMany\s*\(\s*\{\s*\}\s*\))/i

/** Devices that are disks. */
const disk = /^\/dev\/(sd|hd|vd|xvd|nvme|mmcblk|disk|loop|mapper\/|md|dm-)/

const isForkBomb = (script: ShellScript): boolean =>
  /(\S{1,32})\s?\(\)\s?\{[^}]{0,100}\1\s?\|\s?\1\s?&/.test(script.text)

const ofCommand = (command: ShellCommand): string | null => {
  const program = programOf(command)
  if (command.redirects.some(({ target, writes }) => writes && disk.test(target.start))) return "overwrites a disk"
  if (program === null) return null
  const input = command.input.type === "text" ? (command.input.value ?? "") : ""
  const text = [...command.words.slice(1).map((word) => word.value ?? word.text), input].join(" ")
  if (databases.test(program) && sql.test(text)) return "removes data of a database"
  if (program === "git") {
    const { operands, options } = optionsOf("git", command.words)
    const [first, ...rest] = operands.map((word) => word.value ?? "")
    if (first === "checkout" && options.has("--")) return "throws uncommitted changes away"
    if (first === "checkout" && command.words.some((word) => word.value === "--"))
      return "throws uncommitted changes away"
    if (first === "push" && rest.some((one) => one.startsWith("+") || one.startsWith(":")))
      return "overwrites or removes a branch of a remote"
  }
  return null
}

export interface Destructive {
  /** For people: the command and what it does. */
  readonly reason: string
  readonly rule: string
  /** Whether a person may allow exactly this command for the session: not where a redirection or something unknown destroys. */
  readonly keeps: boolean
}

const short = (source: string): string => (source.length > 120 ? `${source.slice(0, 117)}…` : source)

/** What the command destroys, or may destroy; null where nothing known. `more` are patterns of a person. */
export const destructiveIn = (script: ShellScript, more: ReadonlyArray<CommandPattern>): Destructive | null => {
  const all = [...parsed, ...more.map((pattern) => [pattern, "is in the list of destructive commands"] as const)]
  for (const command of script.commands) {
    for (const [pattern, what] of all) {
      if (command.words[0]?.value == null || denies(pattern, command) !== "yes") continue
      return { rule: pattern.text, reason: `\`${short(command.source)}\` ${what}`, keeps: true }
    }
    const what = ofCommand(command)
    if (what !== null) return { rule: "built in", reason: `\`${short(command.source)}\` ${what}`, keeps: false }
  }
  if (isForkBomb(script)) return { rule: "fork bomb", reason: "the command starts itself without end", keeps: false }
  const shells = script.opaque.find(
    (one) => !one.code && /from a pipe|is not known|something that is not known/.test(one.reason),
  )
  if (shells !== undefined)
    return { rule: "unknown command", reason: `\`${short(shells.source)}\`: ${shells.reason}`, keeps: false }
  const fault = script.faults[0]
  return fault === undefined
    ? null
    : { rule: "unknown command", reason: `the command cannot be read: ${fault}`, keeps: false }
}
