/**
 * No discovery: nobody is looked for.
 */
import { Stream } from "effect"
import type { Discovery } from "./discovery.ts"

export const none: Discovery = { strategy: "none", peers: Stream.concat(Stream.make([]), Stream.never) }
