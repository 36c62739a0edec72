/**
 * The workers that tools share, under a supervisor of their own: the file locks and the sandbox's slots. They stop after the node, whose
 * calls use them.
 */
import { Effect, Layer } from "effect"
import { fileLockLayer } from "../actors/file-lock.ts"
import { spawn } from "../actors/kernel/index.ts"
import { sandboxLayer } from "../actors/sandbox.ts"
import { dynamicSupervisor } from "./dynamic-supervisor.ts"

/** {@link FileLocks} and {@link Sandbox} of a node, as actors below `/user/workers`. */
export const workersLayer = Layer.unwrapEffect(
  Effect.map(spawn(dynamicSupervisor({ name: "workers" }), { name: "workers" }), (parent) =>
    Layer.merge(fileLockLayer({ parent }), sandboxLayer({ parent })),
  ),
)
