/**
 * A stream of chunks that are pulled one after another: one layer over the pull, since every chunk passes through each layer of a stream.
 */
import { Channel, type Chunk, Effect, Stream } from "effect"

/** A place at which chunks are pulled. Whoever took it must leave it. */
export interface Place<A, E = never> {
  /** What waits; suspends while there is nothing; null at the end. */
  readonly take: Effect.Effect<Chunk.NonEmptyChunk<A> | null, E>
  readonly leave: () => void
}

/** What a place gives, until its end; it is taken when the stream starts, and left when it ends. */
export const pulled = <A, E>(join: () => Place<A, E>): Stream.Stream<A, E> =>
  Stream.unwrapScoped(
    Effect.map(
      Effect.acquireRelease(Effect.sync(join), ({ leave }) => Effect.sync(leave)),
      ({ take }) => {
        const rest: Channel.Channel<Chunk.Chunk<A>, unknown, E, unknown, void, unknown> = Channel.flatMap(
          Channel.fromEffect(take),
          (chunk) => (chunk === null ? Channel.void : Channel.flatMap(Channel.write(chunk), () => rest)),
        )
        return Stream.fromChannel(rest)
      },
    ),
  )
