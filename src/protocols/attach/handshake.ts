/**
 * The first line each side of an attach connection sends: who it is. Pure. Only processes of the very same version of the program talk,
 * since records and messages are not translated between versions.
 */
import { Either, Option, Schema } from "effect"

/** A process as the other side of a connection sees it. `instance` is new for every life of an owner. */
export const Peer = Schema.Struct({
  program: Schema.Literal("super-pi"),
  version: Schema.String,
  pid: Schema.Int,
  instance: Schema.String,
})
export type Peer = typeof Peer.Type

/** The owner runs another version of the program. */
export class VersionMismatch extends Schema.TaggedError<VersionMismatch>()("VersionMismatch", {
  pid: Schema.Int,
  theirs: Schema.String,
  ours: Schema.String,
}) {
  override get message() {
    return `the database is open in process ${this.pid} of super-pi ${this.theirs}, this is super-pi ${this.ours}; end that process or use its version`
  }
}

/** Bytes that a greeting may have. */
export const maxGreeting = 4096

export const renderGreeting = (peer: Peer): string => `${JSON.stringify(peer)}\n`

const decodePeer = Schema.decodeUnknownOption(Schema.parseJson(Peer))

/** The other side's greeting; null when it is none of ours. */
export const readGreeting = (line: string): Peer | null => Option.getOrNull(decodePeer(line))

/** Whether two processes may talk. */
export const compare = (ours: Peer, theirs: Peer): Either.Either<Peer, VersionMismatch> =>
  ours.version === theirs.version
    ? Either.right(theirs)
    : Either.left(new VersionMismatch({ pid: theirs.pid, theirs: theirs.version, ours: ours.version }))
