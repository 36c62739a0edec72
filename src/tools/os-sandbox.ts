/**
 * Commands inside walls of the operating system: the command lines that put them there. Pure; which of them works on a host is found out
 * in `os-sandbox-probe.ts`, docs/sandbox.md says what they keep out.
 *
 * 1. The whole file system is read-only but for the workspace, further writable directories and a `/tmp` of the call's own.
 * 2. No network where it is not allowed: not even the host's own loopback.
 * 3. A process table of its own: whatever the command starts ends with it, also what left its process group.
 * 4. No new privileges, no capabilities; limits on processes, memory, file size and processor time.
 * 5. Secrets of the person and the node's own files are not there; repository settings that git would execute are read-only.
 */

import { isInside } from "./inside.ts"

/** What does it: bubblewrap, or `unshare` and `mount`. */
export type SandboxEngine = "bwrap" | "unshare"

export interface SandboxLimits {
  /** Processes and threads at once. */
  readonly processes: number
  /** Bytes of data memory of one process. */
  readonly memoryBytes: number
  /** Bytes of one file. */
  readonly fileBytes: number
  /** Seconds of processor time of one process. */
  readonly cpuSeconds: number
}

export const defaultSandboxLimits: SandboxLimits = {
  processes: 1024,
  memoryBytes: 8 * 1024 ** 3,
  fileBytes: 8 * 1024 ** 3,
  cpuSeconds: 3600,
}

export interface SandboxPolicy {
  /** Absolute, canonical. Writable; the working directory. */
  readonly root: string
  /** Further writable directories that exist. */
  readonly writable: ReadonlyArray<string>
  /** Files and directories in writable ones that stay as they are. They exist. */
  readonly readOnly: ReadonlyArray<string>
  /** Directories and files that are empty inside. They exist. */
  readonly hidden: ReadonlyArray<{ readonly path: string; readonly directory: boolean }>
  /** What is shown although something above is hidden, read-only. It exists. */
  readonly shown: ReadonlyArray<string>
  readonly network: boolean
  /** Who runs the node. */
  readonly user: { readonly uid: number; readonly gid: number }
  readonly limits: SandboxLimits
}

/** What is hidden in the open or above it: before or behind the binding of what is open. */
const hiddenAround = ({ hidden, root, writable }: SandboxPolicy) => {
  const within = ({ path }: { readonly path: string }) => [root, ...writable].some((open) => isInside(open, path))
  return { outside: hidden.filter((one) => !within(one)), inside: hidden.filter(within) }
}

/** `'` for a shell. */
const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`

/** A shell that sets the limits and becomes the command. `-u` is not everywhere. */
const limited = ({ cpuSeconds, fileBytes, memoryBytes, processes }: SandboxLimits): ReadonlyArray<string> => {
  const kibibytes = (bytes: number) => Math.floor(bytes / 1024)
  const script = [
    "ulimit -c 0",
    `ulimit -t ${cpuSeconds}`,
    `ulimit -d ${kibibytes(memoryBytes)}`,
    `ulimit -f ${kibibytes(fileBytes)}`,
    `ulimit -u ${processes} 2>/dev/null`,
    'exec "$@"',
  ].join("; ")
  return ["bash", "-c", script, "bash"]
}

/** Switches of the kernel, which belong to root whatever walls are around it. */
const kernelSwitches = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"]

const covered = ({ directory, path }: { readonly path: string; readonly directory: boolean }) =>
  directory ? ["--tmpfs", path] : ["--ro-bind", "/dev/null", path]

const bubblewrap = (policy: SandboxPolicy): ReadonlyArray<string> => [
  "bwrap",
  "--die-with-parent",
  "--new-session",
  "--unshare-user-try",
  "--unshare-pid",
  "--unshare-ipc",
  "--unshare-uts",
  "--unshare-cgroup-try",
  ...(policy.network ? [] : ["--unshare-net"]),
  ...["--cap-drop", "ALL"],
  ...["--ro-bind", "/", "/"],
  ...["--dev", "/dev"],
  ...["--proc", "/proc"],
  ...kernelSwitches.flatMap((path) => ["--ro-bind-try", path, path]),
  ...["--tmpfs", "/tmp"],
  ...hiddenAround(policy).outside.flatMap(covered),
  ...policy.shown.flatMap((path) => ["--ro-bind-try", path, path]),
  ...[policy.root, ...policy.writable].flatMap((path) => ["--bind", path, path]),
  ...hiddenAround(policy).inside.flatMap(covered),
  ...policy.readOnly.flatMap((path) => ["--ro-bind", path, path]),
  ...["--chdir", policy.root],
  "--",
  ...limited(policy.limits),
]

/** For a shell. */
const coveredByHand = ({ directory, path }: { readonly path: string; readonly directory: boolean }) =>
  directory ? `mount -t tmpfs -o mode=755 tmpfs ${quoted(path)}` : `mount --bind /dev/null ${quoted(path)}`

/** The few devices that programs need: a node that runs as root must not lend its disks. */
const privateDevices = (held: string): ReadonlyArray<string> => [
  `mkdir -p ${held}/dev/shm`,
  `chmod 1777 ${held}/dev/shm`,
  `for d in null zero full random urandom; do : > ${held}/dev/$d; mount --bind /dev/$d ${held}/dev/$d; done`,
  `ln -s /proc/self/fd ${held}/dev/fd`,
  `for n in 0:stdin 1:stdout 2:stderr; do ln -s /proc/self/fd/\${n%%:*} ${held}/dev/\${n#*:}; done`,
  `mount --rbind ${held}/dev /dev`,
]

/**
 * The same by hand. The writable directories are bound first, to directories that the new `/tmp` does not cover, since what is below a mount can
 * no longer be named; every other mount becomes read-only, and one that cannot ends the command.
 */
const byHand = (policy: SandboxPolicy): ReadonlyArray<string> => {
  const { user } = policy
  const writable = [policy.root, ...policy.writable]
  const held = "/run/super-pi-hold"
  const script = [
    "set -e",
    "mount --make-rprivate /",
    "mount -t tmpfs -o mode=755 tmpfs /run",
    ...writable.flatMap((path, at) => [`mkdir -p ${held}/w${at}`, `mount --rbind ${quoted(path)} ${held}/w${at}`]),
    ...policy.shown.flatMap((path, at) => [
      `if [ -d ${quoted(path)} ]; then mkdir -p ${held}/s${at}; else mkdir -p ${held}; : > ${held}/s${at}; fi`,
      `mount --rbind ${quoted(path)} ${held}/s${at}`,
    ]),
    "mount -t tmpfs -o mode=1777 tmpfs /tmp",
    ...hiddenAround(policy)
      .outside.filter(({ path }) => path !== "/run" && path !== "/tmp")
      // What was below the old /tmp is gone with it.
      .map((one) => `if [ -e ${quoted(one.path)} ]; then ${coveredByHand(one)}; fi`),
    ...privateDevices(held),
    ...kernelSwitches.map(
      (path) => `if [ -e ${path} ]; then mount --bind ${path} ${path}; mount -o remount,bind,ro ${path}; fi`,
    ),
    // Every mount that there is, the outermost first; /proc, /dev and /sys keep their own kind, the call's own stay writable.
    `while read -r _ _ _ _ at _; do at=$(printf '%b' "$at"); case "$at" in /proc|/proc/*|/dev|/dev/*|/tmp|/run|${held}/*) continue;; esac; mount -o remount,bind,ro "$at" 2>/dev/null || { echo "sandbox: $at cannot be made read-only" >&2; exit 126; }; done < /proc/self/mountinfo`,
    ...policy.shown.map((path, at) => {
      const make = `if [ -d ${held}/s${at} ]; then mkdir -p ${quoted(path)}; else mkdir -p "$(dirname ${quoted(path)})"; : > ${quoted(path)}; fi 2>/dev/null || true`
      return `${make}; mount --rbind ${held}/s${at} ${quoted(path)}; mount -o remount,bind,ro ${quoted(path)}`
    }),
    ...writable.flatMap((path, at) => [
      `mkdir -p ${quoted(path)} 2>/dev/null || true`,
      `mount --rbind ${held}/w${at} ${quoted(path)}`,
    ]),
    ...hiddenAround(policy).inside.map(coveredByHand),
    ...policy.readOnly.flatMap((path) => [
      `mount --bind ${quoted(path)} ${quoted(path)}`,
      `mount -o remount,bind,ro ${quoted(path)}`,
    ]),
    `umount -R -l ${writable.map((_, at) => `${held}/w${at}`).join(" ")}`,
    `cd ${quoted(policy.root)}`,
    "ip link set lo up 2>/dev/null || true",
    "set +e",
    // What this shell says of the command's end is not its output.
    "exec 9>&2 2>/dev/null",
    // Not in place of this shell: the first process of a table cannot be killed from within. Who is not root is himself again.
    user.uid === 0
      ? 'setpriv --no-new-privs --inh-caps=-all --bounding-set=-all "$@" 2>&9 9>&-'
      : `unshare --user --map-user=${user.uid} --map-group=${user.gid} -- setpriv --no-new-privs "$@" 2>&9 9>&-`,
    "exit $?",
  ].join("\n")
  return [
    "unshare",
    "--user",
    "--map-root-user",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child=KILL",
    "--mount-proc",
    "--ipc",
    "--uts",
    ...(policy.network ? [] : ["--net"]),
    "--",
    ...["bash", "-c", script, "bash"],
    ...limited(policy.limits),
  ]
}

/** What comes before a command and its arguments to run it inside. */
export const sandboxPrefix = (engine: SandboxEngine, policy: SandboxPolicy): ReadonlyArray<string> =>
  engine === "bwrap" ? bubblewrap(policy) : byHand(policy)
