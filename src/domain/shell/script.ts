/**
 * A shell command as the policy sees it: every simple command that running it may run, wherever it is written, and what cannot be told.
 */
import type { ShellWord } from "./word.ts"

export interface ShellAssignment {
  readonly name: string
  readonly value: ShellWord
}

export interface ShellRedirect {
  readonly operator: string
  readonly writes: boolean
  readonly target: ShellWord
}

/** Where a command reads from: a pipe, a text of which the value may be known, a file, or what its caller reads from. */
export type ShellInput =
  | { readonly type: "inherited" | "pipe" | "file" }
  | { readonly type: "text"; readonly value: string | null }

/** One simple command. */
export interface ShellCommand {
  /** The program first. Empty for assignments or redirections alone. */
  readonly words: ReadonlyArray<ShellWord>
  readonly assignments: ReadonlyArray<ShellAssignment>
  readonly redirects: ReadonlyArray<ShellRedirect>
  /** The programs that run it, outermost first: `sudo`, `xargs`, `sh`. */
  readonly via: ReadonlyArray<string>
  readonly input: ShellInput
  /**
   * `carrier`: it only runs what follows it, as `timeout 5` does, and needs no permission of its own. `candidate`: whether it runs cannot be
   * told (a word of `docker run` may be the command); it counts for what is denied only.
   */
  readonly role: "command" | "carrier" | "candidate"
  /** For people. */
  readonly source: string
}

/** Something that runs and cannot be judged. `code` belongs to an interpreter other than a shell. */
export interface Opaque {
  readonly source: string
  readonly reason: string
  readonly code: boolean
}

export interface ShellScript {
  readonly text: string
  readonly commands: ReadonlyArray<ShellCommand>
  readonly opaque: ReadonlyArray<Opaque>
  /** Why the text cannot be read as what it will do; empty where it can. */
  readonly faults: ReadonlyArray<string>
}

/** The program's name without its directory, or null where only running it tells. */
export const programOf = ({ words }: Pick<ShellCommand, "words">): string | null => {
  const value = words[0]?.value ?? null
  return value === null ? null : value.slice(value.lastIndexOf("/") + 1)
}
