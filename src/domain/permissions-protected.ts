/**
 * Paths that hold secrets, or what runs later: `.env`, `.git/`, private keys, credentials. Pure: names alone decide, on every part of a path,
 * without regard to case and to characters that file systems ignore.
 */
import { wildcard } from "./shell/pattern.ts"

/** Names of files and directories; whatever is below such a directory is protected as well. */
const names: ReadonlyArray<string> = [
  ...".git git~1 .hg .svn .ssh .gnupg .aws .azure .kube .docker .password-store .env .env.* .envrc .netrc _netrc .npmrc".split(
    " ",
  ),
  ...".pypirc .pgpass .my.cnf .htpasswd .git-credentials .dockercfg .vault-token .boto .s3cfg kubeconfig".split(" "),
  ..."id_rsa* id_dsa* id_ecdsa* id_ed25519* *.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk *.gpg".split(" "),
  ..."credentials credentials.* secrets.* service-account*.json client_secret*.json application_default_credentials.json".split(
    " ",
  ),
]

/** Parts of paths in a row. */
const rows: ReadonlyArray<ReadonlyArray<string>> = [
  [".config", "gcloud"],
  [".config", "gh"],
  ["etc", "shadow"],
  ["etc", "sudoers"],
  ["proc", "*", "environ"],
]

/** Examples are there to be read, and public keys to be given away. */
const exempt =
  /\.(example|sample|template|dist|defaults|schema|pub)$|^(secrets|credentials)\.(ts|tsx|js|jsx|mjs|py|go|rs|java|rb|md|test\..*)$/

const shapes = names.map((name) => wildcard(name))
const rowShapes = rows.map((row) => row.map((name) => wildcard(name)))

/** As a file system that folds case, drops ignorable characters and ends of names would see it. */
const fold = (part: string): string =>
  part
    .normalize("NFKC")
    .replace(/\p{Default_Ignorable_Code_Point}/gu, "")
    .toLowerCase()
    .replace(/(?<=.)(::\$data|[ .]+)$/, "")

const partsOf = (path: string): ReadonlyArray<string> => {
  const parts: Array<string> = []
  for (const part of path.split(/[\\/]+/)) {
    if (part === "..") parts.pop()
    else if (part !== "" && part !== ".") parts.push(fold(part))
  }
  return parts
}

/** A rule of a person: a name at any depth, or with a slash a path, absolute or from the workspace root. */
export interface ProtectedRule {
  readonly text: string
  readonly parts: ReadonlyArray<RegExp>
  readonly anchor: "anywhere" | "root" | "workspace"
}

export const protectedRule = (text: string): ProtectedRule => {
  const isPath = /[\\/]./.test(text)
  return {
    text,
    parts: partsOf(text).map((part) => wildcard(part)),
    anchor: !isPath ? "anywhere" : /^([\\/]|[A-Za-z]:)/.test(text) ? "root" : "workspace",
  }
}

const rowAt = (parts: ReadonlyArray<string>, row: ReadonlyArray<RegExp>, at: number): boolean =>
  row.length > 0 && row.every((shape, index) => shape.test(parts[at + index] ?? "\0"))

/**
 * Why a path is protected, or null. `path` is absolute, or relative to the workspace whose absolute path is `root`.
 */
export const protectedBy = (path: string, root: string, rules: ReadonlyArray<ProtectedRule>): string | null => {
  const isAbsolute = /^([\\/]|[A-Za-z]:)/.test(path)
  const parts = partsOf(isAbsolute || path.startsWith("~") ? path : `${root}/${path}`)
  const above = partsOf(root)
  const inside = above.every((part, index) => parts[index] === part)
  // A workspace inside of a directory with such a name is no secret.
  const own = inside ? parts.slice(above.length) : parts
  const name = own.find((part) => !exempt.test(part) && shapes.some((shape) => shape.test(part)))
  if (name !== undefined) return name
  const row = rowShapes.findIndex((one) => own.some((_, index) => rowAt(own, one, index)))
  if (row !== -1) return rows[row]?.join("/") ?? null
  const rule = rules.find(({ anchor, parts: wanted }) => {
    if (anchor === "anywhere") return own.some((_, index) => rowAt(own, wanted, index))
    return anchor === "root" ? rowAt(parts, wanted, 0) : inside && rowAt(own, wanted, 0)
  })
  return rule?.text ?? null
}

/** Names that a pattern of file names is tried on; a leading dot has to be written, as in the shell. */
const samples =
  ".env .env.local .git .ssh .netrc .npmrc .pgpass .git-credentials .envrc .aws id_rsa id_ed25519 credentials credentials.json server.pem private.key".split(
    " ",
  )

/** Why what a pattern of file names may stand for is protected, or null. */
export const protectedGlob = (glob: string, root: string, rules: ReadonlyArray<ProtectedRule>): string | null => {
  for (const part of glob.split("/")) {
    if (!/[*?]/.test(part)) {
      const reason = protectedBy(part, root, rules)
      if (reason !== null && part !== "" && part !== "..") return reason
      continue
    }
    if (!/[^*?.]/.test(part) && !/^\.[*?]/.test(part)) continue
    const shape = new RegExp(
      `^${part
        .replace(/[.+^${}()|[\]\\]/g, "\\$&")
        .replace(/\?/g, ".")
        .replace(/\*+/g, ".*")}$`,
      "i",
    )
    const found = samples.find((sample) => shape.test(sample) && (!sample.startsWith(".") || part.startsWith(".")))
    if (found !== undefined) return found
  }
  return null
}
