/**
 * Which commands reach the network, by their names. A program that is not known here may do so as well: that is for the workspace (without
 * network) and the sandbox to prevent.
 */
import { optionsOf } from "./options.ts"
import { programOf, type ShellCommand } from "./script.ts"

const always = new Set([
  ..."curl wget http https xh aria2c ssh scp sftp ftp telnet nc ncat netcat socat ping traceroute dig nslookup host whois".split(
    " ",
  ),
  ..."apt apt-get apk yum dnf pacman brew pip pip3 gem gh hub glab aws gcloud az doctl flyctl heroku vercel netlify".split(
    " ",
  ),
  ..."npx bunx pnpx uvx pipx rsync nmap mosh openssl lftp rclone s3cmd gsutil twine mail sendmail lynx w3m links".split(
    " ",
  ),
])

const subcommands: Readonly<Record<string, RegExp>> = {
  git: /^(clone|fetch|pull|push|ls-remote|remote|submodule|archive|send-email|fetch-pack|send-pack)$/,
  npm: /^(i|in|install|add|ci|update|up|upgrade|publish|view|info|show|audit|outdated|login|exec|x|create|init|search|ping|whoami|unpublish|deprecate|access|token|owner|dist-tag)$/,
  pnpm: /^(i|install|add|update|up|publish|dlx|create|view|audit|outdated|fetch|exec)$/,
  yarn: /^(install|add|up|upgrade|publish|npm|dlx|create|info|audit|outdated)$/,
  bun: /^(i|install|add|update|x|create|publish|upgrade)$/,
  cargo: /^(install|add|update|publish|fetch|search|login|yank|owner)$/,
  go: /^(get|install|mod|work)$/,
  uv: /^(add|sync|pip|lock|tool|publish|python|run)$/,
  poetry: /^(add|install|update|publish|lock)$/,
  bundle: /^(install|update|add|outdated)$/,
  composer: /^(install|update|require|create-project)$/,
  docker: /^(pull|push|run|build|login|compose|buildx|search|manifest)$/,
  podman: /^(pull|push|run|build|login|search)$/,
  kubectl: /^./,
  helm: /^./,
  terraform: /^(init|apply|plan|destroy|refresh|import)$/,
  svn: /^(checkout|co|update|up|commit|ci|import|export)$/,
}

export interface NetworkUse {
  /** Hosts that are written; null where it cannot be told where the command goes. */
  readonly hosts: ReadonlyArray<string> | null
}

const hostIn = (text: string): string | null => {
  const url = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/@\s]*@)?(\[[0-9a-f:.]+\]|[^/:?#\s]+)/i.exec(text)?.[1]
  if (url !== undefined) return url
  return /^[^/\s:]+@([^/\s:]+)(:|$)/.exec(text)?.[1] ?? null
}

/** What the command does on the network, or null. */
export const networkUse = (command: ShellCommand): NetworkUse | null => {
  const device = command.redirects
    .map(({ target }) => /^\/dev\/(?:tcp|udp)\/([^/]+)/.exec(target.start)?.[1])
    .find((one) => one !== undefined)
  if (device !== undefined) return { hosts: [device] }
  const program = programOf(command)
  if (program === null) return null
  const { operands } = optionsOf(program, command.words)
  const subcommand = subcommands[program]
  const reaches = always.has(program) || subcommand?.test(operands[0]?.value ?? "") === true
  if (!reaches) return null
  const options = command.words.slice(1)
  // A proxy, a configuration or a resolver of its own sends a request elsewhere than its URL says.
  if (
    options.some(
      (word) =>
        word.value === null ||
        /^(-x|-K|--proxy|--config|--resolve|--connect-to|--preproxy|--socks|--next|-e$)/.test(word.value),
    )
  )
    return { hosts: null }
  const isFetcher = program === "curl" || program === "wget"
  const hosts = options.flatMap((word) => {
    const value = word.value ?? ""
    const host = hostIn(value.replace(/^--?[\w-]+=/, ""))
    if (host !== null) return [host]
    const bare =
      isFetcher && !value.startsWith("-") ? /^([a-z0-9-]+(?:\.[a-z0-9-]+)+)(?:[:/].*)?$/i.exec(value)?.[1] : undefined
    return bare === undefined ? [] : [bare]
  })
  return { hosts: hosts.length === 0 ? null : hosts }
}
