/**
 * A client of a conversation, whichever protocol it speaks: what the test of all of them together asks of each.
 *
 * A story is what a client was told, in its order: `user: …`, `said: …` (a whole text), `bash: ok` or `bash: failed`. It is what every
 * protocol can be compared by.
 */
export interface Client {
  readonly name: string
  /** What it was told so far. */
  readonly story: () => ReadonlyArray<string>
  /** Submits a prompt; completes once it is admitted or, where the protocol has no word for that, sent. */
  readonly prompt: (text: string) => Promise<void>
  /** Completes once it has been asked a question that is open. */
  readonly asked: () => Promise<void>
  /** Answers the open question. Whether the answer counted; null where the protocol does not tell. */
  readonly allow: () => Promise<boolean | null>
  readonly cancel: () => Promise<void>
  /** Completes once it was told that nothing runs. An editor is told so of its own prompts only. */
  readonly rest: () => Promise<void>
  /** Whether its story begins in the middle, with the newest entries. */
  readonly recalls: () => boolean
  /** Completes once the story so far fits. */
  readonly until: (fits: (story: ReadonlyArray<string>) => boolean) => Promise<void>
  /** Comes back to a node that was started again. */
  readonly comeBack: () => Promise<void>
  readonly close: () => void
}

/** Everything that waits for a change. */
export class Waiters {
  private readonly looks = new Set<() => void>()

  /** Something changed. */
  wake(): void {
    for (const look of [...this.looks]) look()
  }

  /** Completes with the first value that is not null; says what was there instead when that takes too long. */
  until<A>(what: string, find: () => A | null, now: () => unknown): Promise<A> {
    return new Promise((done, fail) => {
      const late = setTimeout(() => {
        this.looks.delete(look)
        fail(new Error(`${what} never came; there was ${JSON.stringify(now(), null, 1)}`))
      }, 40_000)
      const look = () => {
        const found = find()
        if (found === null) return
        clearTimeout(late)
        this.looks.delete(look)
        done(found)
      }
      this.looks.add(look)
      look()
    })
  }
}

/** The rest of what every client shares. */
export const untilStory =
  (name: string, waiters: Waiters, story: () => ReadonlyArray<string>): Client["until"] =>
  async (fits) => {
    await waiters.until(`what ${name} waits for`, () => (fits(story()) ? true : null), story)
  }

export const ended = (name: string, failed: boolean): string => `${name}: ${failed ? "failed" : "ok"}`
