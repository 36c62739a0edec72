/**
 * The types of AG-UI 1.0 that are spoken here, from the official package, with its enumeration of types as literals: only types come from it,
 * so nothing of it is loaded.
 */
import type { Event as OfficialEvent } from "@ag-ui/core"

export type {
  ContentPart,
  Interrupt,
  JsonPatch,
  Message as AguiMessage,
  TokenUsage,
} from "@ag-ui/core"

type Literal<E> = E extends OfficialEvent ? Omit<E, "type"> & { readonly type: `${E["type"]}` } : never

/** One event on the wire; all 31 types of the protocol. */
export type AguiEvent = Literal<OfficialEvent>

/** The version that is spoken, as `RUN_STARTED` declares it. */
export const protocolVersion = "1.0"
