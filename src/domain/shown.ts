/**
 * A value in an error message.
 */

/** At most 60 characters of its JSON; `more` stands for the rest. */
export const shown = (value: unknown, more: "..." | "…" = "..."): string => {
  const json = value === undefined ? "nothing" : (JSON.stringify(value) ?? String(value))
  return json.length > 60 ? `${json.slice(0, 57)}${more}` : json
}
