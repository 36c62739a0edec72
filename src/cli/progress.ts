/**
 * Progress of a run on the terminal behind stderr: finished tools scroll up, the newest text and a status line are drawn in place.
 * Silent where stderr is no terminal.
 */
import type { Event } from "../domain/event.ts"
import { emptyLayout, lay } from "../protocols/terminal/layout.ts"
import { terminalRenderer } from "../protocols/terminal/renderer.ts"
import { makeScreen } from "../protocols/terminal/screen.ts"
import { frameMs, statusLine } from "../protocols/terminal/status.ts"
import { traitsOf } from "../protocols/terminal/style.ts"

export interface Progress {
  readonly event: (event: Event) => void
  /** A line of the command itself. */
  readonly say: (text: string) => void
  /** Clears what was drawn in place. */
  readonly end: () => void
}

/** Null where nothing is to be shown. */
export const makeProgress = (stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv): Progress | null => {
  const traits = traitsOf(stream, env)
  if (!traits.cursor) return null
  const screen = makeScreen(stream, traits)
  let view = terminalRenderer.init({})
  let layout = emptyLayout
  const draw = (out: string) => {
    const columns = screen.columns() ?? 80
    const status = statusLine(view, Date.now(), columns)
    screen.update(
      out,
      [layout.partial, status ?? ""].filter((one) => one !== ""),
    )
  }
  const timer = setInterval(() => draw(""), frameMs)
  timer.unref()
  return {
    event: (event) => {
      const [next, blocks] = terminalRenderer.render(view, event)
      view = next
      const options = { color: traits.color, columns: screen.columns() }
      const lines = blocks.filter((block) => block.kind === "line")
      // The answer itself goes to stdout when it is whole; here its newest line shows that it grows.
      layout = lay(
        layout,
        blocks.filter((block) => block.kind !== "line"),
        options,
      ).layout
      draw(lay(emptyLayout, lines, options).out)
    },
    say: (text) => draw(`${text}\n`),
    end: () => {
      clearInterval(timer)
      screen.update("", [])
    },
  }
}
