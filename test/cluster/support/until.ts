/**
 * Waiting for something that becomes so, with a limit that only a fault reaches.
 */
export const pause = (ms: number): Promise<void> => new Promise((next) => setTimeout(next, ms))

/** How long anything may take on a machine that does much else, in ms. */
export const limitMs = 120_000

/** Asks until the answer is not null; fails with what was waited for after `limit`. */
export const until = async <A>(
  what: string | (() => string),
  ask: () => Promise<A | null> | A | null,
  { every = 20, limit = limitMs }: { readonly every?: number; readonly limit?: number } = {},
): Promise<A> => {
  const deadline = Date.now() + limit
  for (;;) {
    const answer = await ask()
    if (answer !== null) return answer
    if (Date.now() > deadline) {
      throw new Error(`within ${limit} ms it did not become so: ${typeof what === "string" ? what : what()}`)
    }
    await pause(every)
  }
}

/** Like {@link until}, for a condition. */
export const untilTrue = async (
  what: string | (() => string),
  holds: () => Promise<boolean> | boolean,
  options?: { readonly every?: number; readonly limit?: number },
): Promise<void> => {
  await until(what, async () => ((await holds()) ? true : null), options)
}
