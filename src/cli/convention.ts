/**
 * Where the operating system has programs keep what is theirs: the XDG base directories, and their like on Windows and macOS. Pure, and without
 * imports of ours: the start of every command asks it.
 */
import { posix, win32 } from "node:path"

export interface Host {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
  readonly home: string
}

/** An unset and an empty variable are the same. */
export const given = (value: string | undefined): string | undefined =>
  value === undefined || value === "" ? undefined : value

const xdgPlaces = {
  cache: ["XDG_CACHE_HOME", ".cache"],
  config: ["XDG_CONFIG_HOME", ".config"],
  data: ["XDG_DATA_HOME", ".local/share"],
} as const

/** The directory of Super-Pi for one kind of file, absolute where `home` is. A cache may go at any time. */
export const conventionalPlace = ({ env, home, platform }: Host, kind: keyof typeof xdgPlaces): string => {
  if (platform === "win32") {
    const roaming = given(env.APPDATA) ?? win32.join(home, "AppData", "Roaming")
    return win32.join(kind === "config" ? roaming : (given(env.LOCALAPPDATA) ?? roaming), "super-pi")
  }
  if (platform === "darwin") {
    return posix.join(home, "Library", kind === "cache" ? "Caches" : "Application Support", "super-pi")
  }
  const [variable, place] = xdgPlaces[kind]
  const named = env[variable]
  // The specification has relative values ignored.
  return posix.join(named !== undefined && posix.isAbsolute(named) ? named : posix.join(home, place), "super-pi")
}
