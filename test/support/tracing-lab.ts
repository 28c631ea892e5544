import { beforeEach } from '@jest/globals'
import { Metrics } from '../../src/observability/metrics.js'
import { CHAT_PATH, chatText, sendRaw, type TestGateway } from './gateway.js'
import { closeAfterEach } from './lab-lifetime.js'
import { type CollectedSpan, OtlpCollector } from './otlp-collector.js'
import { parseScrape, valueOf } from './prometheus-text.js'
import { type P1Gateway, startP1Gateway } from './provider-gateways.js'

/** Of a caller that has a trace of its own. */
export const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
export const SPAN = '00f067aa0ba902b7'

/** A collector for each test, and gateways that tell it of their requests: made in a describe, whose hooks it registers. */
export class TracingLab {
  collector!: OtlpCollector
  /** Takes what a test has started, to be closed after it. */
  readonly opened = closeAfterEach()

  constructor() {
    beforeEach(async () => {
      this.collector = this.opened(await OtlpCollector.start())
    })
  }

  /** With two channels; what is given lies over the section `observability`. */
  readonly tracedGateway = async (observability: object = {}): Promise<P1Gateway> => {
    const section = {
      otlpUrl: this.collector.url,
      otlpHeaders: { authorization: 'Api-Key collector-canary' },
      ...observability,
    }
    return this.opened(await startP1Gateway({ withSecond: true, sections: { observability: section } }))
  }

  /** The request's own span and those of its attempts, once all of them have come. */
  readonly spansOf = async (requestId: string, attempts: number): Promise<readonly CollectedSpan[]> => {
    const found = await this.collector.found((spans) => {
      const own = ofRequest(spans, requestId)
      return own.length === attempts + 1 ? own : undefined
    })
    return [...found].sort((one, other) => Number(BigInt(one.startTimeUnixNano) - BigInt(other.startTimeUnixNano)))
  }
}

export const chat = (gateway: TestGateway, text: string, headers: Readonly<Record<string, string>> = {}) =>
  sendRaw(gateway.url, { path: CHAT_PATH, body: chatText(text), headers })

export const ofRequest = (spans: readonly CollectedSpan[], requestId: string): CollectedSpan[] =>
  spans.filter(({ attributes }) => attributes['gateway.request_id'] === requestId)

/** What the gateway has counted of the spans it sent, could not send, and threw away. */
export const spanCounts = async ({
  application,
}: TestGateway): Promise<Readonly<Record<string, number | undefined>>> => {
  const scrape = parseScrape(await application.get(Metrics).collectText())
  const count = (outcome: string): number | undefined => valueOf(scrape, 'gateway_trace_spans_total', { outcome })
  return { sent: count('sent'), failed: count('failed'), dropped: count('dropped') }
}
