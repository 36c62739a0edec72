/**
 * What a program runs that is written on its line.
 */
import type { ShellCommand } from "./script.ts"
import type { ShellWord } from "./word.ts"

export interface Carried {
  /** Whether the program does nothing else than run what it carries. */
  readonly transparent: boolean
  readonly commands: ReadonlyArray<{
    readonly words: ReadonlyArray<ShellWord>
    readonly assignments?: ShellCommand["assignments"]
    readonly candidate?: boolean
  }>
  /** Texts that a shell reads. `elsewhere`: on another machine. */
  readonly scripts: ReadonlyArray<{ readonly text: string; readonly elsewhere?: boolean }>
  /** Why something that runs cannot be judged. */
  readonly opaque: ReadonlyArray<string>
  /** Whether it is code of another language than the shell's. */
  readonly code?: boolean
}

export const nothing: Carried = { transparent: false, commands: [], scripts: [], opaque: [] }
export const opaqueFor = (reason: string, code = false): Carried => ({ ...nothing, opaque: [reason], code })
