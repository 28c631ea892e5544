import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { WebSocket } from 'ws'
import { RecordingSink } from '../../../test/support/byte-streams.js'
import { eventually } from '../../../test/support/eventually.js'
import { audio, errorFrame, lastAudio, type P2Upstream, startP2Upstream } from '../../../test/support/p2-upstream.js'
import { GENEROUS_TIMEOUTS, newCall } from '../../../test/support/raw-upstream.js'
import { GatewayError } from '../../core/gateway-error.js'
import type { Call } from '../../core/request-context.js'
import { UpstreamSockets } from '../../upstream/upstream-sockets.js'
import { OggJoiner } from './ogg-concat.js'
import { type P2SpeechPlan, P2SpeechSource } from './p2-speech.js'

let sockets: UpstreamSockets
let upstream: P2Upstream
let dials: number
/** Pieces that were said to have been spoken. */
let spoken: string[]
beforeEach(() => {
  sockets = new UpstreamSockets()
  dials = 0
  spoken = []
})
afterEach(async () => {
  sockets.onApplicationShutdown()
  await upstream.close()
})

const speakBack = (socket: WebSocket, message: Buffer): void => {
  socket.send(audio(`<${message.toString()}`))
  socket.send(lastAudio('>'))
}

async function planFor(
  pieces: readonly string[],
  answer: (socket: WebSocket, message: Buffer, index: number) => void,
  changes: Partial<P2SpeechPlan> = {},
): Promise<P2SpeechPlan & { readonly call: Call }> {
  upstream = await startP2Upstream(answer)
  const call = newCall()
  const deadlineAtMs = performance.now() + 20_000
  return {
    call,
    deadlineAtMs,
    timeouts: GENEROUS_TIMEOUTS,
    refusal: (code, text) => new GatewayError('conflict', `${code} ${text}`),
    pieces,
    requestFor: (piece) => Buffer.from(piece),
    onSpoken: (piece) => spoken.push(piece),
    dial: async () => {
      dials++
      const request = { path: '/', headers: {}, maximumMessageBytes: 1_000_000 }
      const { socket } = await sockets.dial(request, upstream.target, call, deadlineAtMs)
      if (socket === undefined) throw new Error('refused')
      return socket
    },
    ...changes,
  }
}

async function started(plan: P2SpeechPlan): Promise<{ source: P2SpeechSource; sink: RecordingSink }> {
  const source = await P2SpeechSource.open(plan)
  const sink = new RecordingSink()
  source.start(sink)
  return { source, sink }
}

const ended = (sink: RecordingSink): Promise<void> => eventually(() => sink.ending !== undefined)

describe('A text in several pieces', () => {
  it('is spoken in order, on one connection after the other, as one body', async () => {
    const plan = await planFor(['One.', 'Two.', 'Three.'], (socket, message, index) => {
      expect(index).toBe(upstream.received.length - 1)
      speakBack(socket, message)
    })
    const { sink } = await started(plan)
    await ended(sink)
    expect([sink.ending, sink.text]).toEqual(['end', '<One.><Two.><Three.>'])
    expect(spoken).toEqual(['One.', 'Two.', 'Three.'])
    expect(upstream.received.map(String)).toEqual(['One.', 'Two.', 'Three.'])
    expect(plan.call.log.firstByteMs).toBeGreaterThan(0)
    await eventually(() => upstream.closeCodes.length === 3)
    expect(upstream.closeCodes).toEqual([1000, 1000, 1000])
  })

  it('is dialled for once before anybody listens, and further only as it is spoken', async () => {
    let first: WebSocket | undefined
    const plan = await planFor(['One.', 'Two.'], (socket, message, index) => {
      if (index === 0) first = socket
      else speakBack(socket, message)
    })
    const { sink } = await started(plan)
    await eventually(() => first !== undefined)
    expect(dials).toBe(1)
    first?.send(lastAudio('1'))
    await ended(sink)
    expect([dials, sink.text]).toEqual([2, '1<Two.>'])
  })

  it('fails as a whole with a piece that fails, and the rest is not spoken', async () => {
    const plan = await planFor(['One.', 'Two.', 'Three.'], (socket, message, index) => {
      if (index === 1) socket.send(errorFrame(3005, 'busy'))
      else speakBack(socket, message)
    })
    const { sink } = await started(plan)
    await ended(sink)
    expect([sink.failure, sink.text]).toEqual(['conflict', '<One.>'])
    expect(upstream.received).toHaveLength(2)
    expect(spoken).toEqual(['One.'])
  })

  it('was not spoken where the upstream hung up in the middle of it, nor what came behind', async () => {
    const plan = await planFor(['One.', 'Two.', 'Three.'], (socket, message, index) => {
      if (index === 0) speakBack(socket, message)
      else {
        socket.send(audio('<Tw'))
        socket.close()
      }
    })
    const { sink } = await started(plan)
    await ended(sink)
    expect([sink.failure, sink.text]).toEqual(['upstream_failed', '<One.><Tw'])
    expect(spoken).toEqual(['One.'])
  })

  it('fails with a piece that ends within a sample: the rest would be noise', async () => {
    const plan = await planFor(['One.', 'Two.'], (socket, message, index) => {
      socket.send(lastAudio(index === 0 ? 'abc' : message.toString()))
    })
    const { sink } = await started({ ...plan, sampleBytes: 2 })
    await ended(sink)
    expect([sink.failure, sink.text, spoken]).toEqual(['upstream_failed', 'abc', []])
    expect(upstream.received).toHaveLength(1)
  })

  it('fails as a whole when a later piece finds no connection', async () => {
    const plan = await planFor(['One.', 'Two.'], speakBack)
    const refused = new GatewayError('rate_limited', 'busy')
    const { sink } = await started({
      ...plan,
      dial: () => (dials === 0 ? plan.dial() : Promise.reject(refused)),
    })
    await ended(sink)
    expect(sink.ending).toBe(refused)
  })

  it('fails as a whole, and lets go of the connection, when the audio cannot be joined', async () => {
    const plan = await planFor(['One.', 'Two.'], (socket) => {
      socket.send(audio('no Ogg page at all, by any measure'))
    })
    const { sink } = await started({ ...plan, joiner: new OggJoiner() })
    await ended(sink)
    expect([sink.failure, sink.chunks]).toEqual(['upstream_failed', []])
    await eventually(() => upstream.closeCodes.length === 1)
  })
})

describe('A reader who pauses between two pieces', () => {
  it('pauses the next one, too', async () => {
    const plan = await planFor(['One.', 'Two.'], speakBack)
    const begun = await started({
      ...plan,
      dial: async () => {
        const socket = await plan.dial()
        if (dials === 2) begun.source.pause()
        return socket
      },
    })
    await eventually(() => upstream.received.length === 2)
    // Far more turns than an answer on the same machine needs to arrive.
    for (let turns = 0; turns < 200; turns++) await nextTurn()
    expect(begun.sink.text).toBe('<One.>')
    begun.source.resume()
    await ended(begun.sink)
    expect(begun.sink.text).toBe('<One.><Two.>')
  })
})

describe('A reader who leaves', () => {
  it('while the next piece is dialled ends the speech at once, and what comes of the dial is closed', async () => {
    const plan = await planFor(['One.', 'Two.'], speakBack)
    const begun = await started({
      ...plan,
      dial: async () => {
        const socket = await plan.dial()
        if (dials === 2) begun.source.cancel()
        return socket
      },
    })
    await ended(begun.sink)
    expect([begun.sink.failure, begun.sink.text]).toEqual(['caller_left', '<One.>'])
    await eventually(() => upstream.closeCodes.length === 2)
    expect(upstream.received).toHaveLength(1)
  })

  it('the gateway in the middle of a piece ends its connection', async () => {
    const plan = await planFor(['One.'], (socket) => {
      socket.send(audio('ab'))
    })
    const { sink } = await started(plan)
    await eventually(() => sink.chunks.length === 1)
    plan.call.departure.announce()
    expect(sink.failure).toBe('caller_left')
    await eventually(() => upstream.closeCodes.length === 1)
  })

  it('before the speech begins leaves no connection', async () => {
    const source = await P2SpeechSource.open(await planFor(['One.'], speakBack))
    source.cancel()
    await eventually(() => upstream.closeCodes.length === 1)
    expect(upstream.received).toEqual([])
  })
})
