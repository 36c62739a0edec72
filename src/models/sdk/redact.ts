/**
 * Takes credentials out of texts that are stored or shown. Pure.
 */

/** Replaces every given secret, and whatever looks like a bearer token, by `[redacted]`. Secrets under 6 characters are no secrets. */
export const redactor = (secrets: ReadonlyArray<string | undefined>): ((text: string) => string) => {
  const known = secrets.filter((secret): secret is string => secret !== undefined && secret.length >= 6)
  return (text) => {
    let out = text
    for (const secret of known) out = out.replaceAll(secret, "[redacted]")
    return out.replace(
      /\b(bearer|x-api-key|x-goog-api-key|api[_-]?key=)(:?\s*)[A-Za-z0-9._~+/=-]{8,}/gi,
      "$1$2[redacted]",
    )
  }
}
