/**
 * Ended spans as the OpenTelemetry Protocol has them (`ExportTraceServiceRequest`), before they are written as JSON or Protocol Buffers. Pure.
 */
import type { EndedSpan } from "./tracer.ts"

interface AnyValue {
  readonly stringValue?: string
  readonly intValue?: number
  readonly doubleValue?: number
  readonly boolValue?: boolean
  readonly arrayValue?: { readonly values: ReadonlyArray<AnyValue> }
}

/** Characters of a text in an attribute. */
const textLimit = 512

const valueOf = (value: unknown): AnyValue => {
  switch (typeof value) {
    case "string":
      return { stringValue: value.slice(0, textLimit) }
    case "number":
      return Number.isSafeInteger(value) ? { intValue: value } : { doubleValue: value }
    case "bigint":
      return { intValue: Number(value) }
    case "boolean":
      return { boolValue: value }
    default:
      return Array.isArray(value) ? { arrayValue: { values: value.map(valueOf) } } : { stringValue: typeof value }
  }
}

const attributesOf = (entries: Iterable<readonly [string, unknown]>) =>
  Array.from(entries, ([key, value]) => ({ key, value: valueOf(value) }))

const kinds = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 } as const

/** `code` 2 is an error; what is none is left unset, as instrumentation should. */
const statusOf = (code: string | null) => (code === null ? { code: 0 } : { code: 2, message: code })

const spanOf = (span: EndedSpan) => ({
  traceId: span.traceId,
  spanId: span.spanId,
  ...(span.parentId === null ? {} : { parentSpanId: span.parentId }),
  name: span.name,
  kind: kinds[span.kind],
  startTimeUnixNano: String(span.startedAt),
  endTimeUnixNano: String(span.endedAt),
  attributes: attributesOf(span.attributes),
  droppedAttributesCount: 0,
  events: [],
  droppedEventsCount: 0,
  status: statusOf(span.code),
  links: span.links.map((link) => ({ ...link, attributes: [], droppedAttributesCount: 0 })),
  droppedLinksCount: 0,
})

/** The body of one export. */
export const traceData = (spans: ReadonlyArray<EndedSpan>, resource: Readonly<Record<string, string>>) => ({
  resourceSpans: [
    {
      resource: { attributes: attributesOf(Object.entries(resource)), droppedAttributesCount: 0 },
      scopeSpans: [
        { scope: { name: "super-pi", version: resource["service.version"] ?? "" }, spans: spans.map(spanOf) },
      ],
    },
  ],
})
