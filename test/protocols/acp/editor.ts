/**
 * An editor for tests: the client side of the protocol's own package over two pipes. Every line of the agent is checked against the
 * protocol's schema, and kept.
 */
import { PassThrough, Readable, Writable } from "node:stream"
import {
  type ClientCapabilities,
  type ClientConnection,
  type CreateElicitationRequest,
  type CreateElicitationResponse,
  client,
  type InitializeResponse,
  ndJsonStream,
  type ReadTextFileRequest,
  type ReadTextFileResponse,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from "@agentclientprotocol/sdk"
import { Effect, type Scope } from "effect"
import { type AcpOptions, serveAcp } from "../../../src/protocols/acp/serve.ts"
import type { ProtocolService } from "../../../src/protocols/service.ts"
import { type Wire, wireFault } from "./schema.ts"

export interface Handlers {
  readonly permission?: (request: RequestPermissionRequest, signal: AbortSignal) => Promise<RequestPermissionResponse>
  readonly form?: (request: CreateElicitationRequest, signal: AbortSignal) => Promise<CreateElicitationResponse>
  readonly readFile?: (request: ReadTextFileRequest) => Promise<ReadTextFileResponse>
  readonly capabilities?: ClientCapabilities
}

export interface Editor {
  readonly agent: ClientConnection["agent"]
  readonly info: InitializeResponse
  /** Updates so far, of all sessions. */
  readonly updates: ReadonlyArray<{ readonly sessionId: string; readonly update: SessionUpdate }>
  /** The first update that fits, from the beginning on. */
  readonly until: (fits: (update: SessionUpdate) => boolean) => Promise<SessionUpdate>
  /** The text of all message chunks of a kind. */
  readonly said: (kind: SessionUpdate["sessionUpdate"]) => string
  /** What was wrong with what the agent sent. */
  readonly faults: ReadonlyArray<string>
  /** Everything that the agent sent. */
  readonly lines: ReadonlyArray<Wire>
  readonly close: () => void
}

/** Watches both directions of a connection: every line of the agent is checked. */
export const makeTap = () => {
  const asked = new Map<unknown, string>()
  const faults: Array<string> = []
  const lines: Array<Wire> = []
  const each = (use: (message: Wire) => void) => {
    let rest = ""
    return (chunk: Uint8Array | string) => {
      rest += chunk.toString()
      const parts = rest.split("\n")
      rest = parts.pop() ?? ""
      for (const part of parts) if (part.trim() !== "") use(JSON.parse(part))
    }
  }
  return {
    faults,
    lines,
    toAgent: each((message) => {
      if (message.method !== undefined && message.id !== undefined) asked.set(message.id, message.method)
    }),
    fromAgent: each((message) => {
      lines.push(message)
      const fault = wireFault(message, asked.get(message.id))
      if (fault !== null) faults.push(fault)
    }),
  }
}

/** An editor at the other end of two pipes, initialized. */
export const connectEditor = async (
  streams: { readonly toAgent: Writable; readonly fromAgent: Readable },
  handlers: Handlers = {},
): Promise<Editor> => {
  const tap = makeTap()
  const updates: Array<{ readonly sessionId: string; readonly update: SessionUpdate }> = []
  const waiting = new Set<() => void>()
  const inlet = new PassThrough()
  streams.fromAgent.on("data", (chunk) => {
    tap.fromAgent(chunk)
    inlet.write(chunk)
  })
  streams.fromAgent.on("end", () => inlet.end())
  const outlet = new Writable({
    write: (chunk, _, done) => {
      tap.toAgent(chunk)
      streams.toAgent.write(chunk, done)
    },
    final: (done) => {
      streams.toAgent.end()
      done()
    },
  })
  const app = client({ name: "test-editor" })
    .onRequest("session/request_permission", ({ params, signal }) => {
      if (handlers.permission === undefined) return { outcome: { outcome: "cancelled" } }
      return handlers.permission(params, signal)
    })
    .onRequest("elicitation/create", ({ params, signal }) => {
      if (handlers.form === undefined) return { action: "cancel" }
      return handlers.form(params, signal)
    })
    .onRequest("fs/read_text_file", ({ params }) => {
      if (handlers.readFile === undefined) throw new Error("no such file here")
      return handlers.readFile(params)
    })
    .onNotification("session/update", ({ params }) => {
      updates.push(params)
      for (const look of [...waiting]) look()
    })
  // The types of Node's web streams and those of the package name the same thing.
  const stream = ndJsonStream(
    Writable.toWeb(outlet) as WritableStream<Uint8Array>,
    Readable.toWeb(inlet) as ReadableStream<Uint8Array>,
  )
  const connection = app.connect(stream)
  const info = await connection.agent.request("initialize", {
    protocolVersion: 1,
    clientCapabilities: handlers.capabilities ?? {},
    clientInfo: { name: "test-editor", version: "1" },
  })
  return {
    agent: connection.agent,
    info,
    updates,
    until: (fits) =>
      new Promise((done, fail) => {
        const look = () => {
          const found = updates.find(({ update }) => fits(update))
          if (found === undefined) return
          waiting.delete(look)
          done(found.update)
        }
        waiting.add(look)
        connection.closed.then(() => fail(new Error("the agent is gone")))
        look()
      }),
    said: (kind) =>
      updates
        .map(({ update }) =>
          update.sessionUpdate === kind && "content" in update && update.content !== null && "type" in update.content
            ? update.content.type === "text"
              ? update.content.text
              : ""
            : "",
        )
        .join(""),
    faults: tap.faults,
    lines: tap.lines,
    close: () => {
      connection.close()
      streams.toAgent.end()
    },
  }
}

/** An editor of a service in this process. */
export const editorOf = (
  service: ProtocolService,
  handlers: Handlers = {},
  options: Partial<AcpOptions> = {},
): Effect.Effect<Editor, never, Scope.Scope> =>
  Effect.gen(function* () {
    const [toAgent, fromAgent] = [new PassThrough(), new PassThrough()]
    yield* Effect.forkScoped(
      serveAcp(service, { cwd: process.cwd(), ...options }, { input: toAgent, output: fromAgent }),
    )
    return yield* Effect.acquireRelease(
      Effect.promise(() => connectEditor({ toAgent, fromAgent }, handlers)),
      (editor) => Effect.sync(() => editor.close()),
    )
  })
