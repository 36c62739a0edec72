/**
 * A collector on loopback: takes OTLP over HTTP, decodes it with OpenTelemetry's own definitions and keeps the spans.
 */
import { createServer, type IncomingHttpHeaders } from "node:http"
import { createRequire } from "node:module"
import type { AddressInfo } from "node:net"
import { Effect, type Scope } from "effect"

type Value = string | number | boolean | ReadonlyArray<unknown>

export interface ReceivedSpan {
  readonly name: string
  readonly kind: number
  readonly traceId: string
  readonly spanId: string
  /** `""` for the first of a trace. */
  readonly parentId: string
  readonly attributes: Readonly<Record<string, Value>>
  readonly status: { readonly code: number; readonly message: string }
  readonly links: ReadonlyArray<string>
  readonly events: number
  readonly durationNs: bigint
}

interface Message {
  readonly toJSON: () => unknown
}
interface Definitions {
  readonly opentelemetry: {
    readonly proto: {
      readonly collector: {
        readonly trace: {
          readonly v1: {
            readonly ExportTraceServiceRequest: {
              readonly decode: (bytes: Uint8Array) => Message
              readonly toObject: (message: Message, options: Readonly<Record<string, unknown>>) => Exported
            }
          }
        }
      }
    }
  }
}

interface AnyValue {
  readonly stringValue?: string
  readonly intValue?: string
  readonly doubleValue?: number
  readonly boolValue?: boolean
  readonly arrayValue?: { readonly values: ReadonlyArray<AnyValue> }
}
interface KeyValue {
  readonly key: string
  readonly value: AnyValue
}
interface RawSpan {
  readonly name: string
  readonly kind: number
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes?: ReadonlyArray<KeyValue>
  readonly events?: ReadonlyArray<unknown>
  readonly links?: ReadonlyArray<{ readonly spanId: string }>
  readonly status?: { readonly code?: number; readonly message?: string }
}
interface Exported {
  /** Absent where there are none. */
  readonly resourceSpans?: ReadonlyArray<{
    readonly resource: { readonly attributes: ReadonlyArray<KeyValue> }
    readonly scopeSpans: ReadonlyArray<{
      readonly scope: { readonly name: string }
      readonly spans: ReadonlyArray<RawSpan>
    }>
  }>
}

const require = createRequire(import.meta.url)
// The package's own definitions, which it does not type.
const definitions: Definitions = require("@opentelemetry/otlp-transformer/build/src/generated/root.js")

const decode = (bytes: Buffer, contentType: string): Exported => {
  if (contentType === "application/json") return JSON.parse(bytes.toString("utf8"))
  const { ExportTraceServiceRequest: Request } = definitions.opentelemetry.proto.collector.trace.v1
  return Request.toObject(Request.decode(bytes), { longs: String, bytes: String })
}

const valueOf = (value: AnyValue): Value => {
  if (value.arrayValue !== undefined) return value.arrayValue.values.map(valueOf)
  if (value.intValue !== undefined) return Number(value.intValue)
  return value.stringValue ?? value.boolValue ?? value.doubleValue ?? ""
}
const attributesOf = (list: ReadonlyArray<KeyValue> = []) =>
  Object.fromEntries(list.map(({ key, value }) => [key, valueOf(value)]))

/** JSON has ids as hexadecimal digits, Protocol Buffers as bytes. */
const idOf = (id: string | undefined, digits: number): string => {
  if (id === undefined || id === "" || id.length === digits) return id ?? ""
  return Buffer.from(id, "base64").toString("hex")
}

const spanOf = (span: RawSpan): ReceivedSpan => ({
  name: span.name,
  kind: span.kind,
  traceId: idOf(span.traceId, 32),
  spanId: idOf(span.spanId, 16),
  parentId: idOf(span.parentSpanId, 16),
  attributes: attributesOf(span.attributes),
  status: { code: span.status?.code ?? 0, message: span.status?.message ?? "" },
  links: (span.links ?? []).map((link) => idOf(link.spanId, 16)),
  events: span.events?.length ?? 0,
  durationNs: BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano),
})

export class Collector {
  readonly spans: Array<ReceivedSpan> = []
  readonly requests: Array<{ readonly url: string; readonly headers: IncomingHttpHeaders; readonly bytes: Buffer }> = []
  resource: Readonly<Record<string, Value>> = {}
  /** What it answers with, one for each request; then 200. */
  statuses: Array<number> = []
  url = ""
  private waiting: Array<() => void> = []

  /** Resolves once `done` holds. */
  until(done: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (done()) resolve()
        else this.waiting.push(look)
      }
      look()
    })
  }

  receive(url: string, headers: IncomingHttpHeaders, bytes: Buffer): number {
    this.requests.push({ url, headers, bytes })
    const status = this.statuses.shift() ?? 200
    if (status === 200) {
      for (const { resource, scopeSpans } of decode(bytes, headers["content-type"] ?? "").resourceSpans ?? []) {
        this.resource = attributesOf(resource.attributes)
        for (const { spans } of scopeSpans) this.spans.push(...spans.map(spanOf))
      }
    }
    const looks = this.waiting
    this.waiting = []
    queueMicrotask(() => {
      for (const look of looks) look()
    })
    return status
  }
}

/** Serves until the scope closes. */
export const collector: Effect.Effect<Collector, never, Scope.Scope> = Effect.gen(function* () {
  const kept = new Collector()
  const server = createServer((request, response) => {
    const parts: Array<Buffer> = []
    request.on("data", (part: Buffer) => parts.push(part))
    request.on("end", () => {
      response.writeHead(kept.receive(request.url ?? "", request.headers, Buffer.concat(parts)))
      response.end()
    })
  })
  yield* Effect.acquireRelease(
    Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))),
    () =>
      Effect.promise(() => {
        server.closeAllConnections()
        return new Promise<void>((resolve) => server.close(() => resolve()))
      }),
  )
  kept.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return kept
})
