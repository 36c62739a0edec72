/**
 * Takes known secrets out of what is written down: the values of the node's own keys, and texts that have the form of one. Pure.
 */
import type { Json } from "./json.ts"

const mark = "[redacted]"

const secretNames = /TOKEN|KEY|SECRET|PASSW|CREDENTIAL|COOKIE/i

/** Shorter values would take ordinary words out. */
const leastChars = 8

/** Values of variables that are named like secrets, the longest first: one may contain another. */
export const secretsOf = (env: Readonly<Record<string, string | undefined>>): ReadonlyArray<string> =>
  Object.entries(env)
    .flatMap(([name, value]) =>
      value !== undefined && value.length >= leastChars && secretNames.test(name) ? [value] : [],
    )
    .sort((a, b) => b.length - a.length)

/** Forms of keys that services give out, and of credentials in texts. Each is linear in its input. */
const forms: ReadonlyArray<readonly [RegExp, string]> = [
  [/-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g, mark],
  [/\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_]){0,4}[A-Za-z0-9]{16,}/g, mark],
  [/\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[\w-]{16,}|npm_[A-Za-z0-9]{30,})/g, mark],
  [/\bxox[a-z]-[\w-]{10,}/g, mark],
  [/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g, mark],
  [/\bAIza[\w-]{30,}/g, mark],
  [/\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}/g, mark],
  [/\b(Bearer|Basic) [\w.~+/=-]{12,}/gi, `$1 ${mark}`],
  [/(\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:@/]{0,100}):[^\s@/]{1,200}@/gi, `$1:${mark}@`],
]

/** A text without the secrets. */
export const redactText = (text: string, secrets: ReadonlyArray<string>): string => {
  let out = text
  for (const secret of secrets) if (out.includes(secret)) out = out.replaceAll(secret, mark)
  for (const [form, instead] of forms) out = out.replace(form, instead)
  return out
}

/** A value in which every text has been changed; names of fields stay. */
export const mapTexts = (value: Json, change: (text: string) => string): Json => {
  if (typeof value === "string") return change(value)
  if (value === null || typeof value !== "object") return value
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change))
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapTexts(item, change)]))
}
