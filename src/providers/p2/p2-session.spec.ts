import { once } from 'node:events'
import { afterEach, describe, expect, it } from '@jest/globals'
import { RecordingSink } from '../../../test/support/byte-streams.js'
import { eventually } from '../../../test/support/eventually.js'
import { type Begun, MAXIMUM_MESSAGE_BYTES, P2SessionLab, REQUEST } from '../../../test/support/p2-session-lab.js'
import { acknowledgement, audio, frontEnd, lastAudio, startP2Upstream } from '../../../test/support/p2-upstream.js'
import { GENEROUS_TIMEOUTS, newCall } from '../../../test/support/raw-upstream.js'
import { GatewayError } from '../../core/gateway-error.js'
import { P2Session } from './p2-socket.js'

const lab = new P2SessionLab()
const { begin, expectNothingLeft } = lab

afterEach(() => lab.reset())

describe('A synthesis', () => {
  it('sends its one request and hands on the audio of every frame until the last', async () => {
    const begun = await begin([acknowledgement(), audio('ab'), frontEnd(), audio('cd'), lastAudio('ef')])
    await begun.ended()
    expect(begun.sink.ending).toBe('end')
    expect(begun.sink.text).toBe('abcdef')
    expect(lab.upstream?.received).toEqual([REQUEST])
    expect(begun.call.log.upstreamMs).toBeGreaterThan(0)
    await expectNothingLeft(begun)
    expect(lab.upstream?.closeCodes).toEqual([1000])
  })

  it.each([
    ['without an acknowledgement', [audio('ab'), lastAudio()], 'ab'],
    ['whose last frame holds everything', [acknowledgement(), lastAudio('abc')], 'abc'],
  ])('%s is whole', async (_name, messages, text) => {
    const { sink, ended } = await begin(messages)
    await ended()
    expect([sink.ending, sink.text]).toEqual(['end', text])
  })

  it('of samples is whole when its last sample is, wherever the frames part them', async () => {
    const { sink, ended } = await begin([audio('a'), audio('bc'), lastAudio('d')], { sampleBytes: 2 })
    await ended()
    expect([sink.ending, sink.text]).toEqual(['end', 'abcd'])
  })

  it('is not kept open by an upstream that does not agree to the end', async () => {
    const begun = await begin((socket) => {
      socket.send(lastAudio('abc'))
      socket.pause()
    })
    await begun.ended()
    expect(begun.sink.ending).toBe('end')
    await once(begun.socket, 'close')
  })
})

describe('A slow reader', () => {
  it('slows the upstream, and its pause is not the upstream\u2019s silence', async () => {
    let sent = 0
    const chunk = audio(Buffer.alloc(65_536))
    const begun = await begin(
      (socket) => {
        const speak = (): void => {
          if (sent >= 400) return
          sent++
          socket.send(chunk, () => setImmediate(speak))
        }
        socket.send(audio('first'), speak)
      },
      { timeouts: { idleMs: 100 } },
    )
    await eventually(() => begun.sink.chunks.length > 0)
    begun.session.pause()
    const pausedAtMs = performance.now()
    await eventually(() => (lab.upstream?.sockets[0]?.bufferedAmount ?? 0) > 0)
    await eventually(() => performance.now() - pausedAtMs > 200)
    expect(begun.sink.ending).toBeUndefined()
    expect(sent).toBeLessThan(400)
    begun.session.resume()
    await eventually(() => sent === 400)
    lab.upstream?.sockets[0]?.send(lastAudio('z'))
    await begun.ended()
    expect(begun.sink.ending).toBe('end')
    expect(Buffer.concat(begun.sink.chunks).length).toBe('first'.length + 400 * 65_536 + 1)
    await expectNothingLeft(begun)
  })
})

describe('A reader who leaves', () => {
  it.each<[string, (begun: Begun) => void]>([
    [
      'by leaving the gateway',
      ({ call }) => {
        call.departure.announce()
      },
    ],
    [
      'by giving the rest up',
      ({ session }) => {
        session.cancel()
      },
    ],
  ])('%s ends the connection in the same turn', async (_name, leave) => {
    const begun = await begin([audio('ab')])
    await eventually(() => begun.sink.chunks.length === 1)
    leave(begun)
    expect(begun.sink.failure).toBe('caller_left')
    expect(begun.socket.readyState).toBe(begun.socket.CLOSING)
    await expectNothingLeft(begun)
    expect(lab.upstream?.closeCodes).toEqual([1006])
  })

  it('before the request is sent sends none', async () => {
    const call = newCall()
    const upstream = (lab.upstream = await startP2Upstream(() => undefined))
    const request = { path: '/', headers: {}, maximumMessageBytes: MAXIMUM_MESSAGE_BYTES }
    const { socket } = await lab.sockets.dial(request, upstream.target, call, performance.now() + 20_000)
    if (socket === undefined) throw new Error('refused')
    call.departure.announce()
    const sink = new RecordingSink()
    const refusal = (): GatewayError => new GatewayError('internal', 'unreachable')
    const terms = { call, deadlineAtMs: performance.now() + 20_000, timeouts: GENEROUS_TIMEOUTS, refusal }
    new P2Session(socket, REQUEST, terms).start(sink)
    expect(sink.failure).toBe('caller_left')
    await eventually(() => upstream.closeCodes.length === 1)
    expect(upstream.received).toEqual([])
  })
})
