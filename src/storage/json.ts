/**
 * JSON columns.
 */

/** Throws a `TypeError` where a value is not JSON (a cycle, a bigint, undefined): a defect of the caller. */
export const json = (value: unknown, what: string): string => {
  const text: string | undefined = JSON.stringify(value)
  if (text === undefined) throw new TypeError(`${what}: expected a JSON value, got ${typeof value}`)
  return text
}
