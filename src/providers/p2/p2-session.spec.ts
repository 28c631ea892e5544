import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { WebSocket } from 'ws'
import { RecordingSink } from '../../../test/support/byte-streams.js'
import { eventually } from '../../../test/support/eventually.js'
import {
  acknowledgement,
  audio,
  errorFrame,
  frontEnd,
  lastAudio,
  type P2Upstream,
  startP2Upstream,
} from '../../../test/support/p2-upstream.js'
import { GENEROUS_TIMEOUTS, newCall } from '../../../test/support/raw-upstream.js'
import { GatewayError } from '../../common/errors/gateway-error.js'
import type { Call } from '../../common/http/call.js'
import { UpstreamSockets } from '../../common/websocket/upstream-sockets.js'
import { P2Session } from './p2-session.js'

const MAXIMUM_MESSAGE_BYTES = 1_000_000
const REQUEST = Buffer.from('a request')

let sockets: UpstreamSockets
let upstream: P2Upstream | undefined
beforeEach(() => {
  sockets = new UpstreamSockets()
})
afterEach(async () => {
  sockets.onApplicationShutdown()
  await upstream?.close()
  upstream = undefined
})

interface Begun {
  readonly session: P2Session
  readonly sink: RecordingSink
  readonly socket: WebSocket
  readonly call: Call
  readonly ended: () => Promise<void>
}

interface BeginOptions {
  readonly timeouts?: object
  readonly totalMs?: number
  readonly call?: Call
  readonly sampleBytes?: number
}

/** A session on an upstream that sends these messages in answer to the request, or does what it likes. */
async function begin(
  answer: readonly Buffer[] | ((socket: WebSocket) => void),
  { timeouts = {}, totalMs = 20_000, call = newCall(), ...terms }: BeginOptions = {},
): Promise<Begun> {
  upstream = await startP2Upstream((socket) => {
    if (typeof answer === 'function') answer(socket)
    else for (const message of answer) socket.send(message)
  })
  const deadlineAtMs = performance.now() + totalMs
  const request = { path: '/', headers: {}, maximumMessageBytes: MAXIMUM_MESSAGE_BYTES }
  const { socket } = await sockets.dial(request, upstream.target, call, deadlineAtMs)
  if (socket === undefined) throw new Error('refused')
  // The dial has counted its own time.
  call.log.upstreamMs = 0
  const session = new P2Session(socket, REQUEST, {
    call,
    deadlineAtMs,
    timeouts: { ...GENEROUS_TIMEOUTS, ...timeouts },
    refusal: (code, text) => new GatewayError('conflict', `${code} ${text}`),
    ...terms,
  })
  const sink = new RecordingSink()
  session.start(sink)
  return { session, sink, socket, call, ended: () => eventually(() => sink.ending !== undefined) }
}

/** Nothing of a session stays behind at either end. */
async function expectNothingLeft({ socket }: Begun): Promise<void> {
  await eventually(() => socket.readyState === socket.CLOSED && upstream?.closeCodes.length === 1)
  // One listener of the door stays for errors, as long as the socket lives.
  expect(['message', 'close', 'error'].map((name) => socket.listenerCount(name))).toEqual([0, 0, 1])
}

const CHANNEL_FAULT = { details: { attempt: { phase: 'answered', channelFault: true } } }

describe('A synthesis', () => {
  it('sends its one request and hands on the audio of every frame until the last', async () => {
    const begun = await begin([acknowledgement(), audio('ab'), frontEnd(), audio('cd'), lastAudio('ef')])
    await begun.ended()
    expect(begun.sink.ending).toBe('end')
    expect(begun.sink.text).toBe('abcdef')
    expect(upstream?.received).toEqual([REQUEST])
    expect(begun.call.log.upstreamMs).toBeGreaterThan(0)
    await expectNothingLeft(begun)
    expect(upstream?.closeCodes).toEqual([1000])
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

describe('A synthesis fails', () => {
  it.each([1000, 1001, 1011])('when the upstream closes with %d before the last frame', async (code) => {
    const begun = await begin((socket) => {
      socket.send(audio('ab'))
      socket.close(code)
    })
    await begun.ended()
    expect(begun.sink.text).toBe('ab')
    expect(begun.sink.ending).toMatchObject({ kind: 'upstream_failed', ...CHANNEL_FAULT })
    await expectNothingLeft(begun)
  })

  it.each<[string, (socket: WebSocket) => void]>([
    [
      'the connection breaks',
      (socket) => {
        socket.terminate()
      },
    ],
    [
      'a text message comes',
      (socket) => {
        socket.send('{}')
      },
    ],
    [
      'a frame is malformed',
      (socket) => {
        socket.send(Buffer.from('11', 'hex'))
      },
    ],
    [
      'a message is too long',
      (socket) => {
        socket.send(Buffer.alloc(MAXIMUM_MESSAGE_BYTES + 1))
      },
    ],
    [
      'the last frame comes without any audio before or in it',
      (socket) => {
        socket.send(lastAudio())
      },
    ],
  ])('when %s', async (_name, answer) => {
    const begun = await begin(answer)
    await begun.ended()
    expect(begun.sink.ending).toMatchObject({ kind: 'upstream_failed', ...CHANNEL_FAULT })
    await expectNothingLeft(begun)
  })

  it('when its last frame ends within a sample', async () => {
    const begun = await begin([audio('ab'), lastAudio('c')], { sampleBytes: 2 })
    await begun.ended()
    expect([begun.sink.failure, begun.sink.text]).toEqual(['upstream_failed', 'abc'])
    expect(begun.sink.ending).toMatchObject(CHANNEL_FAULT)
    await expectNothingLeft(begun)
  })

  it('with what an error frame means, and hears nothing after it', async () => {
    const begun = await begin([audio('ab'), errorFrame(3050, 'no such voice'), lastAudio('cd')])
    await begun.ended()
    expect(begun.sink.ending).toMatchObject({ kind: 'conflict', message: '3050 no such voice' })
    expect(begun.sink.text).toBe('ab')
    await expectNothingLeft(begun)
  })
})

describe('A silent upstream', () => {
  const SENT = { details: { attempt: { phase: 'sent', channelFault: true }, retryable: false } }

  it.each<[string, Buffer[]]>([
    ['that says nothing', []],
    ['that acknowledges and says nothing more', [acknowledgement()]],
  ])('%s is given up after the first-byte time', async (_name, messages) => {
    const begun = await begin(messages, { timeouts: { firstByteMs: 60 } })
    await begun.ended()
    expect(begun.sink.ending).toMatchObject({ kind: 'upstream_timeout', ...SENT })
    expect(begun.sink.ending).toMatchObject({ message: 'The upstream did not answer in time.' })
    await expectNothingLeft(begun)
  })

  it('that falls silent is given up after the idle time', async () => {
    const begun = await begin([acknowledgement(), audio('ab')], { timeouts: { idleMs: 60 } })
    await begun.ended()
    expect(begun.sink.ending).toMatchObject({ kind: 'upstream_timeout', ...SENT })
    expect(begun.sink.ending).toMatchObject({ message: 'The upstream stopped sending in the middle of its answer.' })
    await expectNothingLeft(begun)
  })

  it('that speaks on and on is given up at the end of the total time', async () => {
    const begun = await begin(
      (socket) => {
        const speak = (): void => {
          socket.send(audio('ab'), (error) => {
            if (error == null) setImmediate(speak)
          })
        }
        speak()
      },
      { totalMs: 100 },
    )
    await begun.ended()
    expect(begun.sink.ending).toMatchObject({ kind: 'upstream_timeout' })
    await expectNothingLeft(begun)
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
    await eventually(() => (upstream?.sockets[0]?.bufferedAmount ?? 0) > 0)
    await eventually(() => performance.now() - pausedAtMs > 200)
    expect(begun.sink.ending).toBeUndefined()
    expect(sent).toBeLessThan(400)
    begun.session.resume()
    await eventually(() => sent === 400)
    upstream?.sockets[0]?.send(lastAudio('z'))
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
    expect(upstream?.closeCodes).toEqual([1006])
  })

  it('before the request is sent sends none', async () => {
    const call = newCall()
    upstream = await startP2Upstream(() => undefined)
    const request = { path: '/', headers: {}, maximumMessageBytes: MAXIMUM_MESSAGE_BYTES }
    const { socket } = await sockets.dial(request, upstream.target, call, performance.now() + 20_000)
    if (socket === undefined) throw new Error('refused')
    call.departure.announce()
    const sink = new RecordingSink()
    const refusal = (): GatewayError => new GatewayError('internal', 'unreachable')
    const terms = { call, deadlineAtMs: performance.now() + 20_000, timeouts: GENEROUS_TIMEOUTS, refusal }
    new P2Session(socket, REQUEST, terms).start(sink)
    expect(sink.failure).toBe('caller_left')
    await eventually(() => upstream?.closeCodes.length === 1)
    expect(upstream.received).toEqual([])
  })
})
