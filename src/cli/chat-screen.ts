/**
 * What a chat shows: the rendered events, lines of its own, the status of the running turn and where the conversation stands.
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
  /** Lines right above the input, until others take their place. */
  readonly hint: (lines: ReadonlyArray<string>) => void
  /** A line was entered in the editor below. */
  readonly entered: (line: string, rows: number) => void
  readonly attach: (editor: Interface | null) => void
  readonly view: () => View
  /** Forgets the conversation, for another one. */
  readonly reset: () => void
  readonly end: () => void
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
  let ended = false

  const options = (): LayoutOptions => ({ color: traits.color, columns: screen.columns(), markdown: traits.color })
  const draw = (out: string) => {
    if (ended) return
    const columns = screen.columns() ?? 80
    const status = statusLine(view, Date.now(), columns)
    const stands = standingLine(view, standing(), columns)
    screen.update(out, [
      ...liveLines(layout, options()),
      ...tailLines(view, columns).map((line) => paint("dim", line)),
      ...(status === null ? [] : [paint("accent", status)]),
      ...(stands === null ? [] : [paint("dim", stands)]),
      ...hints.map((line) => paint("accent", truncate(line, columns - 1))),
    ])
  }
  const put = (blocks: ReadonlyArray<Block>) => {
    const laid = lay(layout, blocks, options())
    layout = laid.layout
    draw(laid.out)
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
      view = next
      if (!quiet) put(blocks)
    },
    say: (text, tone = "plain") => {
      // On a screen the unfinished line stays below; where output is append-only it has to end first.
      if (traits.cursor) return draw(`${paint(tone, text)}\n`)
      const broken = lay(layout, [{ kind: "break" }], options())
      layout = broken.layout
      draw(`${broken.out}${paint(tone, text)}\n`)
    },
    hint: (lines) => {
      hints = lines
      draw("")
    },
    entered: (line, rows) => {
      hints = []
      screen.entered(
        `${paint(
          "strong",
          line
            .split("\n")
            .map((one, index) => `${index === 0 ? "› " : "  "}${one}`)
            .join("\n"),
        )}\n`,
        rows,
      )
      draw("")
    },
    reset: () => {
      view = start()
    },
    end: () => {
      stream.off("resize", onResize)
      clearInterval(timer)
      put(terminalRenderer.flush(view)[1])
      ended = true
      screen.attach(null)
      screen.update("", [])
    },
  }
}
