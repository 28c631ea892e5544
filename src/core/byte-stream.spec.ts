import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ManualSource, RecordingSink } from '../../test/support/byte-streams.js'
import { hold } from './byte-stream.js'
import { GatewayError } from './gateway-error.js'

const failure = (): GatewayError => new GatewayError('upstream_failed', 'reset')
const settled = async (promise: Promise<unknown>): Promise<boolean> => {
  const pending = Symbol('pending')
  return (await Promise.race([promise.catch(() => undefined), Promise.resolve(pending)])) !== pending
}

let source: ManualSource
beforeEach(() => {
  jest.useFakeTimers()
  source = new ManualSource()
})
afterEach(() => {
  jest.useRealTimers()
})

describe('A held body', () => {
  it('is handed over when enough bytes are there, and delivers them first, then the rest in order', async () => {
    const holding = hold(source, { bytes: 3 })
    source.data('ab')
    expect(await settled(holding)).toBe(false)
    source.data('c')
    const held = await holding
    source.data('d')
    expect(held.complete).toBeUndefined()
    const sink = new RecordingSink()
    held.start(sink)
    source.data('e')
    source.end()
    expect(sink.chunks.map(String)).toEqual(['ab', 'c', 'd', 'e'])
    expect(sink.ending).toBe('end')
  })

  it('is known as a whole when it ended in time, be it empty', async () => {
    const holding = hold(source, { bytes: 100 })
    source.data('ab', 'cd')
    source.end()
    const held = await holding
    expect(held.complete?.toString()).toBe('abcd')
    const sink = new RecordingSink()
    held.start(sink)
    expect([sink.text, sink.ending]).toEqual(['abcd', 'end'])
    const empty = new ManualSource()
    const holdingNothing = hold(empty, { bytes: 1 })
    empty.end()
    expect((await holdingNothing).complete).toHaveLength(0)
  })

  it('rejects when it fails before it was handed over', async () => {
    const holding = hold(source, { bytes: 100, graceMs: 1000 })
    source.data('ab')
    source.fail(failure())
    await expect(holding).rejects.toMatchObject({ kind: 'upstream_failed' })
    expect(jest.getTimerCount()).toBe(0)
  })

  it('reports a failure between the handing over and the start after what had arrived', async () => {
    const holding = hold(source, { bytes: 1 })
    source.data('ab')
    const held = await holding
    source.fail(failure())
    expect(held.complete).toBeUndefined()
    const sink = new RecordingSink()
    held.start(sink)
    expect([sink.text, sink.failure]).toEqual(['ab', 'upstream_failed'])
  })

  it('is handed over after the grace time although nothing came, and works from then on', async () => {
    const holding = hold(source, { bytes: 1, graceMs: 1000 })
    jest.advanceTimersByTime(999)
    expect(await settled(holding)).toBe(false)
    jest.advanceTimersByTime(1)
    const held = await holding
    const sink = new RecordingSink()
    held.start(sink)
    source.data('late')
    source.fail(failure())
    expect([sink.text, sink.failure]).toEqual(['late', 'upstream_failed'])
  })

  it('pauses an upstream that sends far more than was asked for, and resumes it at the start', async () => {
    const holding = hold(source, { bytes: 10 })
    source.data(Buffer.alloc(10 + 65_536))
    expect(source.asked).toEqual([])
    source.data('x')
    expect(source.asked).toEqual(['pause'])
    const held = await holding
    held.start(new RecordingSink())
    expect(source.asked).toEqual(['pause', 'resume'])
  })

  it('carries back-pressure and cancellation to the upstream', async () => {
    const holding = hold(source, { bytes: 1 })
    source.data('x')
    const held = await holding
    held.pause()
    held.resume()
    held.cancel()
    expect(source.asked).toEqual(['pause', 'resume', 'cancel'])
  })
})
