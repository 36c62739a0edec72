/**
 * The failure of a call that reached a node which does not hold the place any more (or not yet). It never reaches a client: whoever routes
 * calls asks the right node instead.
 */
import { type Failure, ServiceFailure } from "./failure.ts"

const code = "moved"

/** `what` is at work on another node. */
export const moved = (what: string): ServiceFailure =>
  new ServiceFailure({ code, detail: `${what} is at work on another node; try again`, reference: "cluster" })

export const isMoved = (failure: Failure): boolean => failure._tag === "ServiceFailure" && failure.code === code
