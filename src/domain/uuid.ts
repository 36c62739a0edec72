/**
 * UUIDs of version 7 (RFC 9562): 48 bits of time, then random bits, so that they sort by age.
 */

/** Random numbers that one UUID takes. */
export const uuidDraws = 19

/** `now` in milliseconds since the epoch; `random` gives numbers in [0, 1), {@link uuidDraws} times. */
export const uuidv7 = (now: number, random: () => number): string => {
  const time = Math.max(0, Math.floor(now)).toString(16).padStart(12, "0").slice(-12)
  const digits = (count: number): string => {
    let out = ""
    for (let i = 0; i < count; i++) out += Math.floor(random() * 16).toString(16)
    return out
  }
  const variant = (8 + Math.floor(random() * 4)).toString(16)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${digits(3)}-${variant}${digits(3)}-${digits(12)}`
}
