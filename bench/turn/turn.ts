/**
 * The turn that is measured, the same for everyone: an input of 200 characters, one call of a tool that does nothing, its result of 300, an
 * answer of 400.
 */
const filler = (length: number): string => "the quick brown fox jumps over the lazy dog ".repeat(20).slice(0, length)

export const promptText = (turn: number): string => `turn ${turn}: ${filler(190)}`
export const toolArguments = { path: "src/index.ts", note: filler(80) }
export const toolOutput = filler(300)
export const answerText = filler(400)
