import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { OtlpCollector } from '../../test/support/otlp-collector.js'
import { SpanSender } from './otlp-exporter.js'
import type { SpanRecord } from './span-record.js'

const spanOf = (index: number, changes: Partial<SpanRecord> = {}): SpanRecord => ({
  traceId: 'a'.repeat(32),
  spanId: index.toString(16).padStart(16, '0'),
  isParentRemote: false,
  kind: 'server',
  name: 'GET /v1/models',
  startMs: 1_750_000_000_000.25,
  endMs: 1_750_000_000_001.5,
  isError: false,
  attributes: { 'http.response.status_code': 200 },
  ...changes,
})

let collector: OtlpCollector
let sender: SpanSender

beforeEach(async () => {
  collector = await OtlpCollector.start()
  sender = new SpanSender({ url: collector.url, headers: {}, version: '1.2.3' })
})

afterEach(async () => {
  await sender.close(1)
  await collector.close()
})

describe('The sender of spans', () => {
  it('sends them as they are', async () => {
    sender.send(
      spanOf(1, { parentSpanId: 'b'.repeat(16), kind: 'client', isError: true, answeredAtMs: 1_750_000_000_001 }),
    )
    await sender.close(5_000)
    expect(collector.spans).toEqual([
      expect.objectContaining({
        traceId: 'a'.repeat(32),
        spanId: '0000000000000001',
        parentSpanId: 'b'.repeat(16),
        kind: 3,
        status: 2,
        name: 'GET /v1/models',
        startTimeUnixNano: '1750000000000250000',
        endTimeUnixNano: '1750000000001500000',
        attributes: { 'http.response.status_code': 200 },
        events: [expect.objectContaining({ name: 'answered', timeUnixNano: '1750000000001000000' })],
      }),
    ])
    expect(sender.counts).toEqual({ sent: 1, failed: 0, dropped: 0 })
    expect(JSON.parse(collector.bodies)).toMatchObject({
      resourceSpans: [
        {
          resource: {
            attributes: [
              { key: 'service.name', value: { stringValue: 'multi-model-gateway' } },
              { key: 'service.version', value: { stringValue: '1.2.3' } },
            ],
          },
        },
      ],
    })
  })

  it('sends them in batches', async () => {
    for (let index = 1; index <= 1000; index++) sender.send(spanOf(index))
    await sender.close(5_000)
    expect([collector.spans.length, new Set(collector.spans.map(({ spanId }) => spanId)).size]).toEqual([1000, 1000])
    expect(collector.paths.length).toBeLessThan(10)
    expect(sender.waitingSpans).toBe(0)
  })

  it('drops what comes while 2,048 wait, and counts it', async () => {
    collector.mood = 'hangs'
    for (let index = 1; index <= 3000; index++) sender.send(spanOf(index))
    expect([sender.waitingSpans, sender.counts.dropped]).toEqual([2048, 952])
    await sender.close(50)
    expect(sender.counts.sent).toBe(0)
  })

  it('counts what the collector refused, and goes on', async () => {
    collector.mood = 'refuses'
    const refused = collector.nextRequest()
    sender.send(spanOf(1))
    await refused
    collector.mood = 'takes'
    sender.send(spanOf(2))
    await sender.close(5_000)
    expect(sender.counts).toEqual({ sent: 1, failed: 1, dropped: 0 })
    expect(collector.spans.map(({ spanId }) => spanId)).toEqual(['0000000000000002'])
  })
})
