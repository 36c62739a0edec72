/**
 * A program behind a real pseudo-terminal. Python has one in its library; where there is no Python the tests that need it are skipped.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import type { Writable } from "node:stream"
import { makeEmulator } from "./emulator.ts"

/** Copies between its own streams and the terminal; lines of `columns rows` on descriptor 3 are its size. Ends with the program's code. */
const driver = `
import fcntl, os, pty, select, signal, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
def size(line):
    columns, rows = line.split()
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", int(rows), int(columns), 0, 0))
sources = [0, 3, fd]
while True:
    for ready in select.select(sources, [], [])[0]:
        try:
            data = os.read(ready, 65536)
        except OSError:
            data = b""
        if ready == fd:
            if not data:
                code = os.waitpid(pid, 0)[1]
                sys.exit(os.WEXITSTATUS(code) if os.WIFEXITED(code) else 128 + os.WTERMSIG(code))
            os.write(1, data)
        elif not data:
            sources.remove(ready)
        elif ready == 0:
            os.write(fd, data)
        else:
            for line in data.decode().split("\\n"):
                if line.startswith("kill"):
                    os.kill(pid, signal.SIGKILL)
                elif line:
                    size(line)
`

const python = ((): string | null => {
  try {
    execFileSync("python3", ["-c", "import pty, termios"], { stdio: "ignore" })
    return "python3"
  } catch {
    return null
  }
})()

export const hasPty = python !== null

export interface Terminal {
  readonly child: ChildProcess
  readonly type: (keys: string) => void
  /** Resolves once what was ever shown matches; rejects when the program ends before. */
  readonly until: (pattern: RegExp) => Promise<void>
  readonly shown: () => string
  readonly raw: () => string
  readonly resize: (columns: number, rows: number) => void
  readonly kill: () => void
  readonly ended: Promise<number | null>
}

const patienceMs = 50_000

/** Runs `command` with a terminal of 80 columns and 40 rows. */
export const openTerminal = (
  command: ReadonlyArray<string>,
  options: { readonly cwd: string; readonly env: Record<string, string> },
): Terminal => {
  const child = spawn(python ?? "python3", ["-c", driver, ...command], {
    cwd: options.cwd,
    env: { TERM: "xterm", ...options.env },
    stdio: ["pipe", "pipe", "inherit", "pipe"],
  })
  // Descriptor 3 is a pipe that we write to.
  const sizes = child.stdio[3] as Writable
  const emulator = makeEmulator(80)
  let raw = ""
  const listeners = new Set<() => void>()
  const ended = new Promise<number | null>((done) => child.on("close", done))
  child.stdin?.on("error", () => {})
  sizes.on("error", () => {})
  child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    raw += chunk
    emulator.write(chunk)
    for (const listener of listeners) listener()
  })
  sizes.write("80 40\n")
  return {
    child,
    ended,
    raw: () => raw,
    shown: emulator.text,
    type: (keys) => void child.stdin?.write(keys),
    resize: (columns, rows) => {
      emulator.resize(columns)
      sizes.write(`${columns} ${rows}\n`)
    },
    kill: () => void sizes.write("kill\n"),
    until: (pattern) =>
      new Promise((done, fail) => {
        // Says what was there instead, before the test itself is out of time.
        const late = setTimeout(() => fail(new Error(`never matched ${pattern}:\n${emulator.text()}`)), patienceMs)
        const look = () => {
          if (!pattern.test(emulator.text())) return
          clearTimeout(late)
          listeners.delete(look)
          done()
        }
        listeners.add(look)
        void ended.then(() => fail(new Error(`ended before ${pattern}:\n${emulator.text()}`)))
        look()
      }),
  }
}
