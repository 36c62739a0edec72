/**
 * What a chat shows: the rendered events, lines of its own, and the status of the running turn.
 */
import type { Interface } from "node:readline"
import type { Event } from "../domain/event.ts"
import { emptyLayout, lay } from "../protocols/terminal/layout.ts"
import { type Block, flush, init, render, type View } from "../protocols/terminal/renderer.ts"
import { makeScreen } from "../protocols/terminal/screen.ts"
import { frameMs, statusLine } from "../protocols/terminal/status.ts"
import { type Paint, painter, type Tone, traitsOf } from "../protocols/terminal/style.ts"

export interface ChatScreen {
  readonly cursor: boolean
  readonly paint: Paint
  readonly event: (event: Event) => void
  /** Lines of the chat itself; what is passed may be painted already. */
  readonly say: (text: string, tone?: Tone) => void
  /** A line was entered in the editor below. */
  readonly entered: (line: string, rows: number) => void
  readonly attach: (editor: Interface | null) => void
  readonly view: () => View
  /** Forgets the conversation, for another one. */
  readonly reset: () => void
  readonly end: () => void
}

export const makeChatScreen = (stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv): ChatScreen => {
  const traits = traitsOf(stream, env)
  const screen = makeScreen(stream, traits)
  const paint = painter(traits.color)
  const thinking = env.SUPER_PI_SHOW_THINKING === "1"
  let view = init({ showThinking: thinking })
  let layout = emptyLayout
  let ended = false

  const draw = (out: string) => {
    if (ended) return
    const columns = screen.columns() ?? 80
    const status = statusLine(view, Date.now(), columns)
    const live = [paint(layout.tone, layout.partial), status === null ? "" : paint("accent", status)]
    screen.update(
      out,
      live.filter((one) => one !== ""),
    )
  }
  const put = (blocks: ReadonlyArray<Block>) => {
    const laid = lay(layout, blocks, { color: traits.color, columns: screen.columns() })
    layout = laid.layout
    draw(laid.out)
  }
  const timer = traits.cursor ? setInterval(() => draw(""), frameMs) : undefined
  timer?.unref()

  return {
    cursor: traits.cursor,
    paint,
    view: () => view,
    attach: (editor) => {
      screen.attach(editor)
      editor?.prompt(true)
    },
    event: (event) => {
      const rendered = render(view, event)
      view = rendered.view
      put(rendered.blocks)
    },
    say: (text, tone = "plain") => {
      // On a screen the unfinished line stays below; where output is append-only it has to end first.
      if (traits.cursor) return draw(`${paint(tone, text)}\n`)
      const broken = lay(layout, [{ kind: "break" }], { color: traits.color, columns: screen.columns() })
      layout = broken.layout
      draw(`${broken.out}${paint(tone, text)}\n`)
    },
    entered: (line, rows) => {
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
      view = init({ showThinking: thinking })
    },
    end: () => {
      put(flush(view).blocks)
      ended = true
      clearInterval(timer)
      screen.attach(null)
      screen.update("", [])
    },
  }
}
