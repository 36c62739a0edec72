/**
 * The environment of commands: an allowlist of the node's variables, so that its keys stay with it, then the workspace's own. Pure.
 */

/** Where programs are, who and where the user is, language and terminal, toolchains and certificates. */
const allowed = new Set([
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "HOSTNAME",
  "LANG",
  "LANGUAGE",
  "TZ",
  "TMPDIR",
  "TEMP",
  "TMP",
  "COLORTERM",
  "NVM_DIR",
  "NVM_BIN",
  "VOLTA_HOME",
  "PNPM_HOME",
  "BUN_INSTALL",
  "DENO_DIR",
  "CARGO_HOME",
  "RUSTUP_HOME",
  "GOPATH",
  "GOROOT",
  "GOPROXY",
  "JAVA_HOME",
  "PYENV_ROOT",
  "VIRTUAL_ENV",
  "CONDA_PREFIX",
  "HOMEBREW_PREFIX",
  "NIX_PATH",
  "NIX_SSL_CERT_FILE",
  "LD_LIBRARY_PATH",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "NODE_EXTRA_CA_CERTS",
  "NO_PROXY",
  "no_proxy",
  // Windows.
  "SystemRoot",
  "ComSpec",
  "PATHEXT",
  "APPDATA",
  "LOCALAPPDATA",
  "USERPROFILE",
  "ProgramFiles",
])

/** Families of names, each with the rest spelled out: a prefix alone would let `LC_API_KEY` through. */
const allowedFamilies =
  /^(?:LC_(?:ALL|ADDRESS|COLLATE|CTYPE|IDENTIFICATION|MEASUREMENT|MESSAGES|MONETARY|NAME|NUMERIC|PAPER|TELEPHONE|TIME)|XDG_(?:(?:CACHE|CONFIG|DATA|STATE)_HOME|(?:CONFIG|DATA)_DIRS|RUNTIME_DIR))$/

/** Proxies are allowed as long as no password is in them. */
const proxies = new Set(["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"])

/** Nobody is there to page, to type a password or to edit. */
const fixed: Readonly<Record<string, string>> = {
  TERM: "dumb",
  PAGER: "cat",
  GIT_PAGER: "cat",
  GIT_EDITOR: "true",
  GIT_TERMINAL_PROMPT: "0",
}

/** Variables for a command, from the node's and the workspace's. The workspace's win. */
export const commandEnvironment = (
  node: Readonly<Record<string, string | undefined>>,
  workspace: Readonly<Record<string, string>> = {},
): Record<string, string> => {
  const environment: Record<string, string> = {}
  for (const [name, value] of Object.entries(node)) {
    if (value === undefined) continue
    const clean = proxies.has(name) && !value.includes("@")
    if (allowed.has(name) || clean || allowedFamilies.test(name)) environment[name] = value
  }
  return { ...environment, ...fixed, ...workspace }
}
