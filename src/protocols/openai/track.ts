/**
 * A text that is streamed to a client who cannot take anything back. What is streamed a second time, after a retry or in a snapshot, is not
 * said again as long as it repeats what was said. Pure.
 */

/** `said` is what the client has of the present response; `again` what has been repeated of it, null while nothing is repeated. */
export interface Track {
  readonly said: string
  readonly again: string | null
}

export const freshTrack: Track = { said: "", again: null }

/** What is to be said; `diverged` where it takes the place of something else that was said before. */
export interface Spoken {
  readonly track: Track
  readonly delta: string
  readonly diverged: boolean
}

/** The response starts over: what follows repeats it, or takes its place. */
export const startOver = (track: Track): Track => (track.said === "" ? track : { said: track.said, again: "" })

/** The next piece. */
export const speak = ({ again, said }: Track, delta: string): Spoken => {
  if (again === null) return { track: { said: said + delta, again: null }, delta, diverged: false }
  const now = again + delta
  if (now.length <= said.length && said.startsWith(now)) {
    return { track: { said, again: now.length === said.length ? null : now }, delta: "", diverged: false }
  }
  const goesOn = now.startsWith(said)
  return {
    track: { said: now, again: null },
    delta: goesOn ? now.slice(said.length) : now,
    diverged: !goesOn,
  }
}

/** The whole text of the response as it is now known: says what is missing of it. */
export const settle = (track: Track, whole: string): Spoken => {
  if (track.again === null && whole.length === track.said.length) return { track, delta: "", diverged: false }
  return speak({ said: track.said, again: "" }, whole)
}
