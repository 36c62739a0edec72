/**
 * Plugin InlineBash: `!{command}` in a prompt is run before the prompt is placed, and its output stands in its place: one request less.
 * The commands run as calls of the tool `bash`, with a committed intent and under the rules for commands; one that fails or is blocked
 * shows that in its place. docs/flow.md has what counts as a command.
 */
import { Effect, Schema } from "effect"
import type { TextPart, UserPart } from "../../domain/message.ts"
import { definePlugin } from "../define.ts"
import { expressionsOf, mayHoldCommands } from "./inline-bash/expressions.ts"

const InlineBashOptions = Schema.Struct({
  /** How long one command may run, in ms. */
  timeoutMs: Schema.optionalWith(Schema.Int.pipe(Schema.between(1, 600_000)), { default: () => 10_000 }),
  /** Bytes of output of one command at most; what is longer is cut in the middle. */
  maxOutputBytes: Schema.optionalWith(Schema.Int.pipe(Schema.between(1, 1_048_576)), { default: () => 8_192 }),
})

/** Commands of one prompt at most: more of them is pasted text rather than a wish. */
export const maxCommands = 16

const isPlain = (part: UserPart): part is TextPart => part.type === "text"

export const inlineBash = definePlugin({
  name: "inline-bash",
  aliases: ["InlineBash", "inline_bash"],
  description: "Runs !{command} in a prompt and puts its output in its place",
  options: InlineBashOptions,
  hooks: {
    onInput: ({ content }, { notify, options }) => {
      if (!content.some((part) => isPlain(part) && mayHoldCommands(part.text))) return Effect.succeed(undefined)
      const commands: Array<string> = []
      let unclosed = 0
      let overflowing = 0
      const expanded = content.map((part): UserPart => {
        if (!isPlain(part) || !mayHoldCommands(part.text)) return part
        const found = expressionsOf(part.text)
        unclosed += found.unclosed.length
        const pieces = found.pieces.map((piece) => {
          if (piece.type === "text") return piece.text
          if (commands.length === maxCommands) {
            overflowing++
            return piece.raw
          }
          commands.push(piece.command)
          return `{{command:${commands.length - 1}}}`
        })
        return { ...part, text: pieces.join("") }
      })
      const warnings = [
        ...(unclosed === 0 ? [] : [`${unclosed} "!{" without its "}" stayed as text`]),
        ...(overflowing === 0 ? [] : [`a prompt runs at most ${maxCommands} commands; ${overflowing} stayed as text`]),
      ]
      const { maxOutputBytes, timeoutMs } = options
      return Effect.as(
        Effect.forEach(warnings, (warning) => notify("warning", warning), { discard: true }),
        {
          content: expanded,
          ...(commands.length === 0
            ? {}
            : { commands: commands.map((command) => ({ command, timeoutMs, maxBytes: maxOutputBytes })) }),
        },
      )
    },
  },
})
