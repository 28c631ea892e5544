import { type HrTime, type SpanContext, SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter } from '@opentelemetry/sdk-trace'

/** A span that is over, without the packages that send it. Times are Unix milliseconds with fractions. */
export interface SpanRecord {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  /** The parent is the caller's span. */
  readonly isParentRemote: boolean
  /** `server` = a request of a caller; `client` = an attempt at an upstream. */
  readonly kind: 'server' | 'client'
  readonly name: string
  readonly startMs: number
  readonly endMs: number
  readonly isError: boolean
  readonly attributes: Readonly<Record<string, string | number | boolean>>
  /** When the answer began; attempts that got one. */
  readonly answeredAtMs?: number
}

/** Spans that are queued or being sent; further ones are dropped. */
const MAXIMUM_WAITING = 2048
const BATCH_SPANS = 512
const BATCH_INTERVAL_MS = 1_000
const EXPORT_TIMEOUT_MS = 5_000

interface OtlpExporterOptions {
  /** URL of the collector, without `/v1/traces`. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly version: string
}

export interface SpanCounts {
  sent: number
  /** Refused by the collector, or not delivered. */
  failed: number
  /** Dropped because the queue was full. */
  dropped: number
}

/**
 * Sends spans in batches to a collector over OTLP/HTTP as JSON. This file alone imports the packages that do, and it is
 * loaded only where a collector is configured.
 */
export class OtlpExporter {
  readonly counts: SpanCounts = { sent: 0, failed: 0, dropped: 0 }
  private waiting = 0
  private readonly processor: BatchSpanProcessor
  private readonly resource
  private readonly scope

  constructor({ url, headers, version }: OtlpExporterOptions) {
    this.resource = resourceFromAttributes({ 'service.name': 'multi-model-gateway', 'service.version': version })
    this.scope = { name: 'multi-model-gateway', version }
    const exporter = new OTLPTraceExporter({
      url: `${url}/v1/traces`,
      headers: { ...headers },
      timeoutMillis: EXPORT_TIMEOUT_MS,
      concurrencyLimit: MAXIMUM_WAITING / BATCH_SPANS,
    })
    this.processor = new BatchSpanProcessor({
      exporter: this.counted(exporter),
      maxQueueSize: MAXIMUM_WAITING,
      maxExportBatchSize: BATCH_SPANS,
      scheduledDelayMillis: BATCH_INTERVAL_MS,
      exportTimeoutMillis: 2 * EXPORT_TIMEOUT_MS,
    })
  }

  get waitingSpans(): number {
    return this.waiting
  }

  send(record: SpanRecord): void {
    if (this.waiting >= MAXIMUM_WAITING) {
      this.counts.dropped++
      return
    }
    this.waiting++
    this.processor.onEnd(this.readable(record))
  }

  /** Sends queued spans, as far as the collector takes them before the deadline. Never rejects. */
  async close(deadlineMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, deadlineMs)
    })
    await Promise.race([this.processor.shutdown().catch(() => undefined), late])
    clearTimeout(timer)
  }

  /** Wraps the exporter to count the outcome of each batch. */
  private counted(exporter: SpanExporter): SpanExporter {
    return {
      export: (spans, onResult) => {
        exporter.export(spans, (result) => {
          this.waiting -= spans.length
          if (result.error === undefined) this.counts.sent += spans.length
          else this.counts.failed += spans.length
          onResult(result)
        })
      },
      shutdown: () => exporter.shutdown(),
    }
  }

  private readable(record: SpanRecord): ReadableSpan {
    const { traceId, spanId, parentSpanId, isParentRemote, kind, name, startMs, endMs, attributes } = record
    const context: SpanContext = { traceId, spanId, traceFlags: TraceFlags.SAMPLED }
    const parent: SpanContext | undefined =
      parentSpanId === undefined
        ? undefined
        : { traceId, spanId: parentSpanId, traceFlags: TraceFlags.SAMPLED, isRemote: isParentRemote }
    const answered = record.answeredAtMs
    return {
      name,
      kind: kind === 'server' ? SpanKind.SERVER : SpanKind.CLIENT,
      spanContext: () => context,
      ...(parent === undefined ? {} : { parentSpanContext: parent }),
      startTime: highResolution(startMs),
      endTime: highResolution(endMs),
      duration: highResolution(endMs - startMs),
      status: { code: record.isError ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
      attributes: { ...attributes },
      events: answered === undefined ? [] : [{ name: 'answered', time: highResolution(answered) }],
      links: [],
      ended: true,
      resource: this.resource,
      instrumentationScope: this.scope,
      droppedAttributesCount: 0,
      droppedEventsCount: 0,
      droppedLinksCount: 0,
    }
  }
}

/** Seconds and nanoseconds. */
function highResolution(milliseconds: number): HrTime {
  const seconds = Math.floor(milliseconds / 1000)
  return [seconds, Math.round((milliseconds - seconds * 1000) * 1e6)]
}
