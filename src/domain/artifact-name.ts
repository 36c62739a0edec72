/**
 * Names of artifacts: relative paths that mean the same on every system.
 */

/** Bytes of a name in UTF-8 at most. */
export const maxNameBytes = 255

/** What is wrong with a name as `expected …, got …`, or null. */
export const artifactNameFault = (name: string): string | null => {
  const got = JSON.stringify(name.length <= 80 ? name : `${name.slice(0, 80)}…`)
  const bytes = new TextEncoder().encode(name).length
  if (name === "") return "expected a name like report.md, got an empty one"
  if (bytes > maxNameBytes) return `expected at most ${maxNameBytes} bytes, got ${bytes}`
  if (/\p{Surrogate}/u.test(name)) return `expected Unicode text, got ${got}`
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\u0000-\u001f\u007f]/.test(name)) return `expected no control characters, got ${got}`
  if (name.includes("\\") || /^[a-z]:/i.test(name)) return `expected parts separated by /, got ${got}`
  if (name.startsWith("/")) return `expected a relative name, got ${got}`
  const bad = name.split("/").find((part) => part === "" || part === "." || part === "..")
  return bad === undefined ? null : `expected no empty part, "." or ".." in it, got ${got}`
}
