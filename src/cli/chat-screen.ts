/**
 * What a chat shows: the rendered events, lines of its own, the status of the running turn and where the conversation stands.
 *
 * A prompt that is entered while text runs stands below that text until it has ended, as it will in the transcript: whatever is shown, it
 * is never above an answer that was there before it.
 */
import type { Interface } from "node:readline"
import type { Event } from "../domain/event.ts"
import { emptyLayout, type LayoutOptions, lay, liveLines } from "../protocols/terminal/layout.ts"
import { type Block, terminalRenderer, type View } from "../protocols/terminal/renderer.ts"
import { makeScreen } from "../protocols/terminal/screen.ts"
import { frameMs, type Standing, standingLine, statusLine, tailLines } from "../protocols/terminal/status.ts"
import { type Paint, painter, type Tone, traitsOf } from "../protocols/terminal/style.ts"
import { truncate } from "../protocols/terminal/width.ts"

export interface ChatScreen {
  readonly cursor: boolean
  /** Columns of the terminal; null where the output is no terminal. */
  readonly columns: () => number | null
  readonly paint: Paint
  /** What happened; `quiet` where it stands there already, such as an input that was typed here. */
  readonly event: (event: Event, quiet?: boolean) => void
  /** Lines of the chat itself; what is passed may be painted already. */
  readonly say: (text: string, tone?: Tone) => void
  /** Lines about what was entered last: they stand below it. */
  readonly remark: (text: string, tone?: Tone) => void
  /** Lines right above the input, until others take their place. */
  readonly hint: (lines: ReadonlyArray<string>) => void
  /** A line was entered in the editor below; `prompt` where it goes to the conversation, rather than to the chat. */
  readonly entered: (line: string, rows: number, prompt: boolean) => void
  readonly attach: (editor: Interface | null) => void
  readonly view: () => View
  /** Text that ran goes on nowhere. */
  readonly settle: () => void
  /** Forgets the conversation, for another one. */
  readonly reset: () => void
  readonly end: () => void
}

interface Held {
  readonly tone: Tone
  readonly lines: ReadonlyArray<string>
}

/** `standing` tells what the events do not. */
export const makeChatScreen = (
  stream: NodeJS.WriteStream,
  env: NodeJS.ProcessEnv,
  standing: () => Standing,
): ChatScreen => {
  const traits = traitsOf(stream, env)
  const screen = makeScreen(stream, traits)
  const paint = painter(traits.color)
  const start = () =>
    terminalRenderer.init({
      showThinking: env.SUPER_PI_SHOW_THINKING === "1",
      details: traits.cursor,
      inputs: traits.cursor,
    })
  let view = start()
  let layout = emptyLayout
  let hints: ReadonlyArray<string> = []
  /** What waits below running text for its end. */
  let held: ReadonlyArray<Held> = []
  let ended = false

  const options = (): LayoutOptions => ({ color: traits.color, columns: screen.columns(), markdown: traits.color })
  const draw = (out: string) => {
    if (ended) return
    const columns = screen.columns() ?? 80
    const status = statusLine(view, Date.now(), columns)
    const stands = standingLine(view, standing(), columns)
    screen.update(out, [
      ...liveLines(layout, options()),
      ...held.flatMap(({ lines, tone }) => lines.map((line) => paint(tone, truncate(line, columns - 1)))),
      ...tailLines(view, columns).map((line) => paint("dim", line)),
      ...(status === null ? [] : [paint("accent", status)]),
      ...(stands === null ? [] : [paint("dim", stands)]),
      ...hints.map((line) => paint("accent", truncate(line, columns - 1))),
    ])
  }
  const final = (one: Held): string => one.lines.map((line) => `${paint(one.tone, line)}\n`).join("")
  /** Shows blocks after which the view is `next`. Where they end the text that ran, what waited for that stands right below it. */
  const put = (next: View, blocks: ReadonlyArray<Block>) => {
    const end = next.running === null ? blocks.findLastIndex(({ kind }) => kind === "break") + 1 : 0
    const text = lay(layout, blocks.slice(0, end), options())
    const rest = lay(text.layout, blocks.slice(end), options())
    const waited = next.running === null ? held.map(final).join("") : ""
    if (next.running === null) held = []
    layout = rest.layout
    view = next
    draw(`${text.out}${waited}${rest.out}`)
  }
  const settle = () => put(...terminalRenderer.flush(view))
  const say = (text: string, tone: Tone = "plain") => {
    // On a screen the unfinished line stays below; where output is append-only it has to end first.
    if (traits.cursor) return draw(`${paint(tone, text)}\n`)
    const broken = lay(layout, [{ kind: "break" }], options())
    layout = broken.layout
    draw(`${broken.out}${paint(tone, text)}\n`)
  }
  const onResize = () => {
    screen.resized()
    draw("")
  }
  const timer = traits.cursor ? setInterval(() => draw(""), frameMs) : undefined
  timer?.unref()
  if (traits.cursor) stream.on("resize", onResize)

  return {
    cursor: traits.cursor,
    columns: screen.columns,
    paint,
    view: () => view,
    attach: (editor) => {
      screen.attach(editor)
      editor?.prompt(true)
    },
    event: (event, quiet = false) => {
      const [next, blocks] = terminalRenderer.render(view, event)
      put(next, quiet ? blocks.filter(({ kind }) => kind === "break") : blocks)
    },
    say,
    remark: (text, tone = "plain") => {
      if (held.length === 0) return say(text, tone)
      held = [...held, { tone, lines: text.split("\n") }]
      draw("")
    },
    hint: (lines) => {
      hints = lines
      draw("")
    },
    entered: (line, rows, prompt) => {
      hints = []
      const lines = line.split("\n").map((one, index) => `${index === 0 ? "› " : "  "}${one}`)
      const echo: Held = { tone: "strong", lines }
      const waits = traits.cursor && prompt && view.running !== null
      if (waits) held = [...held, echo]
      screen.entered(waits ? "" : final(echo), rows)
      draw("")
    },
    settle,
    reset: () => {
      settle()
      view = start()
    },
    end: () => {
      stream.off("resize", onResize)
      clearInterval(timer)
      settle()
      ended = true
      screen.attach(null)
      screen.update("", [])
    },
  }
}
