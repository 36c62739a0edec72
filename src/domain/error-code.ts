/**
 * The code of an error of the system or of a driver (`ENOENT`, `SQLITE_FULL`): what tells them apart, never their text.
 */

/** Empty where there is none. */
export const errorCode = (cause: unknown): string =>
  typeof cause === "object" && cause !== null && "code" in cause && typeof cause.code === "string" ? cause.code : ""
