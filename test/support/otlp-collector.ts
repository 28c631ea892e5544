import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { listenOnLoopback, type LoopbackServer } from './loopback-server.js'

/** A span as it went over the wire. */
export interface CollectedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  /** 2 = server, 3 = client. */
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: Readonly<Record<string, unknown>>
  readonly events: readonly { readonly name: string; readonly timeUnixNano: string }[]
  /** 2 = error. */
  readonly status: number
}

interface WireValue {
  readonly stringValue?: string
  readonly intValue?: number
  readonly doubleValue?: number
  readonly boolValue?: boolean
}

interface WireAttribute {
  readonly key: string
  readonly value: WireValue
}

interface WireSpan extends Omit<CollectedSpan, 'attributes' | 'status'> {
  readonly attributes: readonly WireAttribute[]
  readonly status: { readonly code: number }
}

interface WireRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly WireAttribute[] }
    readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[]
  }[]
}

/** What the collector does with what it gets: takes it, refuses it, or never answers. */
export type CollectorMood = 'takes' | 'refuses' | 'hangs'

/** A collector of traces over OTLP/HTTP with JSON: a real server that decodes what it gets. */
export class OtlpCollector {
  readonly spans: CollectedSpan[] = []
  /** Of each request. */
  readonly headers: IncomingHttpHeaders[] = []
  readonly paths: string[] = []
  /** Every body as it came, for canary searches. */
  bodies = ''
  mood: CollectorMood = 'takes'
  private listening!: LoopbackServer
  private readonly waiting = new Set<() => void>()
  private readonly server = createServer((request, response) => {
    void this.take(request, response)
  })

  static async start(): Promise<OtlpCollector> {
    const collector = new OtlpCollector()
    collector.listening = await listenOnLoopback(collector.server)
    return collector
  }

  get url(): string {
    return `http://127.0.0.1:${this.listening.port}`
  }

  /** Resolves with what `find` finds, once it does. */
  async found<Found>(find: (spans: readonly CollectedSpan[]) => Found | undefined): Promise<Found> {
    for (;;) {
      const found = find(this.spans)
      if (found !== undefined) return found
      await this.nextRequest()
    }
  }

  nextRequest(): Promise<void> {
    return new Promise((resolve) => this.waiting.add(resolve))
  }

  close(): Promise<void> {
    return this.listening.close()
  }

  private async take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // An exporter that is closed may cut its request in the middle: nothing was received then.
    const body = await text(request).catch((error: unknown) => {
      if (request.complete) throw error
    })
    if (body === undefined) return
    this.bodies += body
    this.headers.push(request.headers)
    this.paths.push(request.url ?? '')
    if (this.mood === 'takes') this.spans.push(...spansIn(JSON.parse(body) as WireRequest))
    if (this.mood !== 'hangs') {
      response.writeHead(this.mood === 'takes' ? 200 : 400, { 'content-type': 'application/json' }).end('{}')
    }
    for (const resolve of this.waiting) resolve()
    this.waiting.clear()
  }
}

const spansIn = ({ resourceSpans }: WireRequest): CollectedSpan[] =>
  resourceSpans
    .flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
    .map(({ attributes, status, ...span }) => ({
      ...span,
      status: status.code,
      attributes: Object.fromEntries(attributes.map(({ key, value }) => [key, plain(value)])),
    }))

const plain = (value: WireValue): unknown => value.stringValue ?? value.intValue ?? value.doubleValue ?? value.boolValue
