/**
 * Plain text as PostgreSQL can hold it, which has no U+0000: it becomes U+0001 U+0001, and U+0001 becomes U+0001 U+0002. That loses nothing and
 * keeps the order of bytes. What is no Unicode (a lone surrogate) becomes U+FFFD, as in every UTF-8. JSON columns need none of it: JSON
 * escapes such characters. Pure.
 */
const nul = "\u0000"
const escape = "\u0001"
const loneSurrogates = /\p{Surrogate}/gu

/** What is stored, and looked up, for a text. */
export const encodeText = (text: string): string => {
  const escaped =
    text.includes(nul) || text.includes(escape)
      ? text.replaceAll(escape, `${escape}\u0002`).replaceAll(nul, escape + escape)
      : text
  return escaped.replace(loneSurrogates, "\ufffd")
}

export const encodeOptional = (text: string | null): string | undefined =>
  text === null ? undefined : encodeText(text)

/** The text that is stored so. */
export const decodeText = (stored: string): string =>
  stored.includes(escape) ? stored.replaceAll(escape + escape, nul).replaceAll(`${escape}\u0002`, escape) : stored

/** A row with its texts as they were. Changes the row. */
export const decodeTexts = <Row extends Record<string, unknown>>(row: Row): Row => {
  for (const name in row) {
    const value: unknown = row[name]
    if (typeof value === "string" && value.includes(escape)) Object.assign(row, { [name]: decodeText(value) })
  }
  return row
}
