/**
 * `${NAME}` in configured values, replaced from the environment when a server is started. Pure.
 */

const placeholder = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g

/** The values with every placeholder replaced, or the names of the variables that are not set, each once. */
export const expand = (
  values: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string | undefined>>,
):
  | { readonly missing: ReadonlyArray<string> }
  | { readonly missing: null; readonly values: Readonly<Record<string, string>> } => {
  const missing = new Set<string>()
  const entries = Object.entries(values).map(([key, value]): [string, string] => [
    key,
    value.replace(placeholder, (all, name: string) => {
      const found = Object.hasOwn(env, name) ? env[name] : undefined
      if (found === undefined) missing.add(name)
      return found ?? all
    }),
  ])
  return missing.size > 0 ? { missing: [...missing] } : { missing: null, values: Object.fromEntries(entries) }
}
