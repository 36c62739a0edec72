/**
 * The queue between ended spans and the collector. Rules:
 * 1. `push` never waits and never throws; behind `maxQueue` spans a new one is dropped and counted.
 * 2. One request at a time. A collector that is away or busy is asked again, 1 s later, doubled up to 30 s or as late as it says; a batch is
 *    given up after its fifth request, and at once where it is refused for good.
 * 3. Trouble is told once, and again only after an export went well.
 * 4. `close` sends what is left, within its deadline, and asks nobody twice.
 */
import type { TraceSettings } from "./settings.ts"
import type { EndedSpan } from "./tracer.ts"

/** A body and its media type. */
export interface Encoded {
  readonly body: Uint8Array
  readonly contentType: string
}

export interface ExporterParts {
  readonly settings: Pick<TraceSettings, "url" | "headers" | "timeoutMs" | "maxQueue" | "maxBatch" | "intervalMs">
  readonly encode: (spans: ReadonlyArray<EndedSpan>) => Encoded
  /** Takes one line, without a secret. */
  readonly trouble: (line: string) => void
  readonly fetch?: typeof globalThis.fetch
}

const firstWaitMs = 1_000
const longestWaitMs = 30_000
const attempts = 5

/** Statuses that a later request may not meet. */
const passing = new Set([429, 502, 503, 504])

/** What an export came to. */
type Outcome =
  | { readonly type: "sent" }
  | { readonly type: "refused"; readonly why: string }
  | { readonly type: "again"; readonly why: string; readonly afterMs: number | null }

/** `Retry-After` in ms, where it is a number of seconds. */
const retryAfterOf = (response: Response): number | null => {
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN)
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds * 1_000, longestWaitMs) : null
}

export class SpanExporter {
  private readonly parts: ExporterParts
  private queue: Array<EndedSpan> = []
  private timer: ReturnType<typeof setTimeout> | null = null
  private running: Promise<void> | null = null
  private readonly closing = new AbortController()
  private wake: (() => void) | null = null
  private troubled = false
  /** Spans that were dropped or given up. */
  dropped = 0

  constructor(parts: ExporterParts) {
    this.parts = parts
  }

  readonly push = (span: EndedSpan): void => {
    const { intervalMs, maxBatch, maxQueue } = this.parts.settings
    if (this.closing.signal.aborted || this.queue.length >= maxQueue) {
      this.dropped += 1
      return
    }
    this.queue.push(span)
    if (this.queue.length >= maxBatch) this.start()
    else if (this.timer === null && this.running === null) {
      this.timer = setTimeout(() => this.start(), intervalMs)
      this.timer.unref()
    }
  }

  /** Sends what is left and ends. Never rejects; done after `deadlineMs` at the latest. */
  async close(deadlineMs: number): Promise<void> {
    const over = setTimeout(() => this.closing.abort(), deadlineMs)
    this.last = true
    this.wake?.()
    this.start()
    await this.running
    clearTimeout(over)
    this.closing.abort()
    if (this.queue.length > 0) this.tell(`${this.queue.length} spans were not exported before the end`)
    this.dropped += this.queue.length
    this.queue = []
  }

  /** No export is tried twice any more. */
  private last = false

  private start(): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
    this.running ??= this.drain().finally(() => {
      this.running = null
    })
  }

  private async drain(): Promise<void> {
    while (this.queue.length > 0 && !this.closing.signal.aborted) {
      const batch = this.queue.slice(0, this.parts.settings.maxBatch)
      const sent = await this.deliver(batch)
      this.queue.splice(0, batch.length)
      if (!sent) this.dropped += batch.length
    }
  }

  /** Whether the batch has arrived. */
  private async deliver(batch: ReadonlyArray<EndedSpan>): Promise<boolean> {
    const encoded = this.parts.encode(batch)
    let waitMs = firstWaitMs
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.request(encoded)
      if (outcome.type === "sent") {
        this.troubled = false
        return true
      }
      this.tell(`traces are not exported: ${outcome.why}`)
      if (outcome.type === "refused" || attempt >= attempts || this.last) return false
      await this.sleep(outcome.afterMs ?? waitMs)
      waitMs = Math.min(waitMs * 2, longestWaitMs)
    }
  }

  private async request({ body, contentType }: Encoded): Promise<Outcome> {
    const { fetch = globalThis.fetch, settings } = this.parts
    try {
      const response = await fetch(settings.url, {
        method: "POST",
        headers: { ...settings.headers, "content-type": contentType },
        body,
        redirect: "manual",
        signal: AbortSignal.any([this.closing.signal, AbortSignal.timeout(settings.timeoutMs)]),
      })
      await response.body?.cancel()
      if (response.ok) return { type: "sent" }
      const why = `the collector answered with status ${response.status}`
      return passing.has(response.status)
        ? { type: "again", why, afterMs: retryAfterOf(response) }
        : { type: "refused", why }
    } catch (error) {
      return { type: "again", why: `the collector is not reachable (${reasonOf(error)})`, afterMs: null }
    }
  }

  /** Ends early when the exporter is closed. */
  private sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      timer.unref()
      this.wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  private tell(line: string): void {
    if (this.troubled) return
    this.troubled = true
    this.parts.trouble(line)
  }
}

/** The code of the system, or the error's name: `ECONNREFUSED`, `TimeoutError`. */
const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return "unknown"
  const { cause } = error
  if (typeof cause === "object" && cause !== null && "code" in cause && typeof cause.code === "string") {
    return cause.code
  }
  return error.name
}
