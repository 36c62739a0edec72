/**
 * A renderer turns the one event stream of a conversation into what one protocol says. It is a pure state machine: the transport owns the
 * socket, the view is all that a renderer owns, so that it needs neither a socket nor a clock in a test.
 *
 * 1. The first event of a view is a `snapshot`; a later snapshot starts it over without saying again what was said.
 * 2. Every event type of `domain/event.ts` has a case, also where nothing is said.
 * 3. `flush` ends what is open (a text, a call's arguments) when the stream ends; rendering goes on after it as after a snapshot.
 */
import type { Event } from "../domain/event.ts"

/** The next view and what is said, in order. */
export type Rendered<View, Item> = readonly [view: View, items: ReadonlyArray<Item>]

export interface Renderer<Options, View, Item> {
  readonly init: (options: Options) => View
  readonly render: (view: View, event: Event) => Rendered<View, Item>
  readonly flush: (view: View) => Rendered<View, Item>
}
