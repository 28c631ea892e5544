import { describe, expect, it } from '@jest/globals'
import { ManualSource, RecordingSink } from '../../../test/support/byte-streams.js'
import { GatewayError } from '../../core/gateway-error.js'
import { MeasuredSource } from './measured-source.js'

function measured(leastBytes: number): { body: ManualSource; sink: RecordingSink; source: MeasuredSource } {
  const body = new ManualSource()
  const sink = new RecordingSink()
  const source = new MeasuredSource(body, leastBytes, (bytes) => new GatewayError('upstream_failed', `${bytes} bytes`))
  source.start(sink)
  return { body, sink, source }
}

describe('A body of an announced length', () => {
  it.each([0, 3, 4])('of 4 bytes where %i were announced is whole', (leastBytes) => {
    const { body, sink } = measured(leastBytes)
    body.data('ab', 'cd')
    body.end()
    expect([sink.text, sink.ending]).toEqual(['abcd', 'end'])
  })

  it('that ends before it is cut off, and what came until then has been passed on', () => {
    const { body, sink } = measured(5)
    body.data('ab', 'cd')
    expect(sink.text).toBe('abcd')
    body.end()
    expect(sink.ending).toMatchObject({ kind: 'upstream_failed', message: '4 bytes' })
  })

  it('fails with its own failure, and is slowed down and given up where it comes from', () => {
    const { body, sink, source } = measured(5)
    source.pause()
    source.resume()
    source.cancel()
    expect(body.asked).toEqual(['pause', 'resume', 'cancel'])
    body.fail(new GatewayError('caller_left', 'left'))
    expect(sink.failure).toBe('caller_left')
  })
})
