/**
 * A stream of chunks that are pulled one after another: one layer over the pull, since every chunk passes through each layer of a stream.
 */
import { Channel, type Chunk, type Effect, Stream } from "effect"

/** What `pull` gives, until it gives null. */
export const pulled = <A, E, R>(pull: Effect.Effect<Chunk.NonEmptyChunk<A> | null, E, R>): Stream.Stream<A, E, R> => {
  const rest: Channel.Channel<Chunk.Chunk<A>, unknown, E, unknown, void, unknown, R> = Channel.flatMap(
    Channel.fromEffect(pull),
    (chunk) => (chunk === null ? Channel.void : Channel.flatMap(Channel.write(chunk), () => rest)),
  )
  return Stream.fromChannel(rest)
}
