/** A person at a terminal: `super-pi chat` behind a pseudo-terminal. Its story is what stands on the screen. */
import { launcher } from "../../cli/program.ts"
import { openTerminal, type Terminal } from "../../terminal/pty.ts"
import { type Client, ended, untilStory, Waiters } from "./client.ts"

export interface Chat extends Client {
  readonly kill: () => Promise<void>
  /** Completes once the screen shows this. */
  readonly sees: (pattern: RegExp) => Promise<void>
}

/** `texts`: what the model may say, so that its lines are told from those of the chat itself. */
export const openChat = async (options: {
  readonly args: ReadonlyArray<string>
  readonly conversationId: number
  readonly cwd: string
  readonly env: Record<string, string>
  readonly texts: ReadonlySet<string>
}): Promise<Chat> => {
  const waiters = new Waiters()
  let terminal: Terminal
  let lives = 0
  const start = async () => {
    lives++
    terminal = openTerminal(
      [process.execPath, launcher, "chat", ...options.args, "--conversation", String(options.conversationId)],
      { cwd: options.cwd, env: options.env },
    )
    terminal.child.stdout?.on("data", () => waiters.wake())
    await terminal.until(/\/help lists what can be typed[\s\S]*conversation \d+ ·/)
  }
  await start()
  const lineOf = (line: string): string | null => {
    const [, typed] = /^[›>] (.+)$/.exec(line) ?? []
    // A digit is an answer to a question.
    if (typed !== undefined) return /^\d$/.test(typed) ? null : `user: ${typed}`
    const [, mark, tool] = /^([✓✗]) (\w+) /.exec(line) ?? []
    if (tool !== undefined) return ended(tool, mark === "✗")
    return options.texts.has(line.trim()) ? `said: ${line.trim()}` : null
  }
  const story = () => {
    const told: Array<string> = []
    for (const line of terminal.shown().split("\n")) {
      const one = lineOf(line)
      if (one !== null) told.push(one)
      // What stands above is void.
      else if (line.startsWith("the answer starts over")) told.pop()
    }
    return told
  }
  /** The options of a question stand below the end of the one before. */
  const asked = (): true | null => {
    const lines = terminal.shown().split("\n")
    const options = lines.findLastIndex((line) => line.trimStart().startsWith("1) "))
    const settled = lines.findLastIndex((line) => /^(allowed|rejected|the question was withdrawn)/.test(line))
    return options > settled ? true : null
  }
  return {
    name: "chat",
    story,
    sees: (pattern) => terminal.until(pattern),
    prompt: async (text) => terminal.type(`${text}\r`),
    asked: async () => void (await waiters.until("a question", asked, terminal.shown)),
    allow: async () => {
      await waiters.until("a question", asked, terminal.shown)
      terminal.type("1\r")
      return null
    },
    recalls: () => lives > 1,
    cancel: async () => terminal.type("\u0003"),
    rest: async () =>
      void (await waiters.until(
        "rest",
        () => (/· idle ·[^\n]*\n›$/.test(terminal.shown()) ? true : null),
        terminal.shown,
      )),
    until: untilStory("the chat", waiters, story),
    comeBack: start,
    kill: async () => {
      terminal.kill()
      await terminal.ended
    },
    close: () => {
      terminal.kill()
      terminal.child.kill("SIGKILL")
    },
  }
}
