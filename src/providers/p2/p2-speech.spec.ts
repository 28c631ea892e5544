import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import type { WebSocket } from 'ws'
import { RecordingSink } from '../../../test/support/byte-streams.js'
import { eventually } from '../../../test/support/eventually.js'
import {
  acknowledgement,
  audio,
  type Begun,
  errorFrame,
  frontEnd,
  lastAudio,
  MAXIMUM_MESSAGE_BYTES,
  P2SessionLab,
  type P2Upstream,
  REQUEST,
  startP2Upstream,
} from '../../../test/support/p2-session-lab.js'
import { attemptOf, GENEROUS_TIMEOUTS, newCall, targetOf } from '../../../test/support/raw-upstream.js'
import { GatewayError } from '../../core/errors.js'
import { JsonBody } from '../../core/json-body.js'
import type { RequestContext } from '../../core/request-context.js'
import { UpstreamSockets } from '../../upstream/websocket-client.js'
import type { AttemptContext } from '../contract.js'
import { OggJoiner } from './ogg-concat.js'
import { decodeFrame, encodeRequest } from './p2-wire.js'
import { P2Session } from './p2-socket.js'
import { type P2SpeechPlan, P2SpeechProvider, P2SpeechSource } from './p2-speech.js'

describe('p2 speech source', () => {
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
  ): Promise<P2SpeechPlan & { readonly call: RequestContext }> {
    upstream = await startP2Upstream(answer)
    const call = newCall()
    const deadlineAtMs = performance.now() + 20_000
    return {
      call,
      exchange: attemptOf(call),
      deadlineAtMs,
      timeouts: GENEROUS_TIMEOUTS,
      refusal: (code, text) => new GatewayError('conflict', `${code} ${text}`),
      pieces,
      requestFor: (piece) => Buffer.from(piece),
      onSpoken: (piece) => spoken.push(piece),
      dial: async () => {
        dials++
        const request = { path: '/', headers: {}, maximumMessageBytes: 1_000_000 }
        const { socket } = await sockets.dial(request, upstream.target, attemptOf(call), deadlineAtMs)
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

    it('is dialled for once before a reader listens, and further only as it is spoken', async () => {
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
      plan.call.disconnect.abort()
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
})

const FIELDS = { model: 'tts', input: 'Hello.', voice: 'alloy' }
const CLOSED_PORT = 1

function speakWith(credentials: string, callersKey: boolean): Promise<unknown> {
  const context: AttemptContext = {
    ...attemptOf(newCall('/v1/audio/speech')),
    channelId: 'first',
    target: targetOf(CLOSED_PORT),
    credentials,
    callersKey,
    upstreamModel: 'tts',
    modelMap: {},
    options: {},
    deadlineAtMs: performance.now() + 20_000,
  }
  const body = JsonBody.parse(Buffer.from(JSON.stringify(FIELDS))).as(FIELDS)
  return new P2SpeechProvider(new UpstreamSockets()).speak({ body, modelClass: 'tts' }, context)
}

describe('A key that is no pair', () => {
  it('is the caller\u2019s to mend when it is theirs', async () => {
    await expect(speakWith('one-part', true)).rejects.toMatchObject({ kind: 'key_malformed' })
  })

  it('is the channel\u2019s fault when it is the channel\u2019s, and another channel may speak', async () => {
    await expect(speakWith('one-part', false)).rejects.toMatchObject({
      kind: 'upstream_failed',
      details: { attempt: { phase: 'unsent', channelError: true }, retryable: false },
    })
  })

  it('keeps no other from being tried', async () => {
    await expect(speakWith('app|token', false)).rejects.toMatchObject({
      kind: 'upstream_failed',
      details: { attempt: { phase: 'unsent', channelError: true }, retryable: true },
    })
  })
})

const hex = (text: string): Buffer => Buffer.from(text.replace(/[\s|]/g, ''), 'hex')
const word = (value: number): string => (value >>> 0).toString(16).padStart(8, '0')

interface Parts {
  readonly type: number
  readonly flags: number
  readonly packing?: string
  /** Words of header extension. */
  readonly extension?: number
  /** The sequence number or the error code. */
  readonly number?: number
  readonly payload: Buffer
}

/** Written from the protocol's description, so that the decoder is not judged by its own arithmetic. */
function frame({ type, flags, packing = '00', extension = 0, number, payload }: Parts): Buffer {
  const header = `1${(1 + extension).toString(16)}${type.toString(16)}${flags.toString(16)}${packing}00`
  const fields = `${'ee'.repeat(4 * extension)}${number === undefined ? '' : word(number)}${word(payload.length)}`
  return Buffer.from(header + fields + payload.toString('hex'), 'hex')
}

const bytes = (maxLength: number): fc.Arbitrary<Buffer> =>
  fc.uint8Array({ maxLength }).map((array) => Buffer.from(array))
const extension = fc.integer({ min: 0, max: 13 })
const positive = fc.integer({ min: 1, max: 0x7fffffff })
const negative = fc.integer({ min: -0x80000000, max: -1 })

describe('a request frame', () => {
  it('is the example of the protocol, byte for byte', () => {
    expect(encodeRequest(Buffer.from('{"request":{"reqid":"r1"}}'))).toEqual(
      hex('11 10 10 00 | 00 00 00 1a | 7b22 7265 7175 6573 7422 3a7b 2272 6571 6964 223a 2272 3122 7d7d'),
    )
  })

  it('carries any payload behind its size', () => {
    fc.assert(
      fc.property(bytes(300), (payload) => {
        const header = hex(`11101000 ${word(payload.length)}`)
        expect(encodeRequest(payload)).toEqual(Buffer.concat([header, payload]))
      }),
    )
  })
})

describe('a server frame', () => {
  it.each([
    ['11 b0 00 00 | 00 00 00 00', { kind: 'acknowledgement' }],
    ['11 b0 00 00', { kind: 'acknowledgement' }],
    ['11 b0 10 00 | 00 00 00 02 | 7b 7d', { kind: 'acknowledgement' }],
    ['12 b0 00 00 | ee ee ee ee', { kind: 'acknowledgement' }],
    ['11 b0 00 00 | 00 00 00 01 | aa', { kind: 'audio', last: false, audio: hex('aa') }],
    ['11 b1 00 00 | 00 00 00 01 | 00 00 00 04 | ff f3 64 c4', { kind: 'audio', last: false, audio: hex('fff364c4') }],
    ['11 b1 00 00 | ff ff ff fe | 00 00 00 01 | aa', { kind: 'audio', last: true, audio: hex('aa') }],
    ['11 b3 00 00 | ff ff ff fe | 00 00 00 02 | aa bb', { kind: 'audio', last: true, audio: hex('aabb') }],
    ['11 b3 00 00 | ff ff ff fd | 00 00 00 00', { kind: 'audio', last: true, audio: hex('') }],
    ['11 b3 00 00 | 00 00 00 02 | 00 00 00 01 | aa', { kind: 'audio', last: false, audio: hex('aa') }],
    ['11 b3 01 00 | ff ff ff fd | 00 00 00 00', { kind: 'audio', last: true, audio: hex('') }],
    ['11 b2 00 00 | ff ff ff fd | 00 00 00 01 | aa', { kind: 'audio', last: true, audio: hex('aa') }],
    ['11 b2 00 00 | 00 00 00 01 | aa', { kind: 'audio', last: true, audio: hex('aa') }],
    ['11 b2 00 00 | 00 00 00 00', { kind: 'audio', last: true, audio: hex('') }],
    ['11 b2 00 00 | 00 00 00 05 | 00 00 00 01 aa', { kind: 'audio', last: true, audio: hex('00000001aa') }],
    ['11 c0 10 00 | 00 00 00 02 | 7b 7d', { kind: 'frontEnd' }],
    ['11 c1 10 00 | 00 00 00 01 | 00 00 00 02 | 7b 7d', { kind: 'frontEnd' }],
    [
      '11 f0 10 00 | 00 00 0b ea | 00 00 00 14 | 766f69636520 7479706520 6e6f7420 6578697374',
      { kind: 'error', code: 3050, text: 'voice type not exist' },
    ],
    ['11 f3 00 00 | 00 00 0b bd | 00 00 00 00', { kind: 'error', code: 3005, text: '' }],
  ])('%s is read as %j', (text, expected) => {
    expect(decodeFrame(hex(text))).toEqual(expected)
  })

  it.each([
    ['nothing at all', ''],
    ['half a header', '11 b0 00'],
    ['another version', '21 b0 00 00 | 00 00 00 00'],
    ['no header size', '10 b0 00 00 | 00 00 00 00'],
    ['the header size without a size', `1f b0 00 00 ${'00'.repeat(60)}`],
    ['a header longer than the message', '13 b0 00 00 | 00 00 00 00'],
    ['a client request', '11 10 10 00 | 00 00 00 02 | 7b 7d'],
    ['a full server response', '11 90 10 00 | 00 00 00 02 | 7b 7d'],
    ['the flag of another version', '11 b4 00 00 | 00 00 01 60 | 00 00 00 00'],
    ['an unknown serialization', '11 b1 30 00 | 00 00 00 01 | 00 00 00 01 | aa'],
    ['an unknown compression', '11 b1 0f 00 | 00 00 00 01 | 00 00 00 01 | aa'],
    ['audio without a size', '11 b1 00 00 | 00 00 00 01'],
    ['a last packet without a size', '11 b2 00 00'],
    ['left-over bytes', '11 b1 00 00 | 00 00 00 01 | 00 00 00 01 | aa bb'],
    ['left-over bytes in an acknowledgement', '11 b0 00 00 | 00 00 00 00 | aa'],
    ['a size beyond the message', '11 b1 00 00 | 00 00 00 01 | 7f ff ff ff | aa'],
    ['audio that is not the gzip it says it is', '11 b1 01 00 | 00 00 00 01 | 00 00 00 02 | aa bb'],
    ['an error that is not the gzip it says it is', '11 f0 11 00 | 00 00 0b ea | 00 00 00 02 | aa bb'],
    ['an error without a size', '11 f0 10 00 | 00 00 0b ea'],
    ['an error with unknown flags', '11 ff 10 00 | 00 00 0b ea | 00 00 00 00'],
    ['a front-end result without a size', '11 c0 10 00'],
  ])('with %s is malformed', (_, text) => {
    expect(decodeFrame(hex(text))).toBeUndefined()
  })

  it('yields the audio it was built from, whatever its header and compression', () => {
    fc.assert(
      fc.property(
        bytes(500),
        extension,
        positive,
        negative,
        fc.boolean(),
        fc.boolean(),
        (audio, words, up, down, last, isGzip) => {
          const message = frame({
            type: 0xb,
            flags: last ? 3 : 1,
            packing: isGzip ? '01' : '00',
            extension: words,
            number: last ? down : up,
            payload: isGzip ? gzipSync(audio) : audio,
          })
          expect(decodeFrame(message)).toEqual({ kind: 'audio', last, audio })
        },
      ),
    )
  })

  it('with the ambiguous flag is the last one with and without its sequence number', () => {
    fc.assert(
      fc.property(bytes(300), extension, fc.option(negative, { nil: undefined }), (audio, words, number) => {
        const parts = { type: 0xb, flags: 2, extension: words, payload: audio }
        const message = frame(number === undefined ? parts : { ...parts, number })
        expect(decodeFrame(message)).toEqual({ kind: 'audio', last: true, audio })
      }),
    )
  })

  it('yields the words of an error, plain or JSON, compressed or not', () => {
    const code = fc.integer({ min: 0, max: 0xffffffff })
    const words = fc.string({ unit: 'grapheme', minLength: 1 }).map((text) => `# ${text}`)
    fc.assert(
      fc.property(code, words, extension, fc.boolean(), fc.boolean(), (number, message, size, isGzip, isJson) => {
        const text = Buffer.from(isJson ? JSON.stringify({ reqid: 'r1', code: number, message }) : message)
        const packing = isGzip ? '11' : '10'
        const payload = isGzip ? gzipSync(text) : text
        const decoded = decodeFrame(frame({ type: 0xf, flags: 0, packing, extension: size, number, payload }))
        expect(decoded).toEqual({ kind: 'error', code: number, text: message })
      }),
    )
  })

  it.each(['{"message":""}', '{"message":7}', 'null', '[]', '"voice"', '{"code":3001}'])(
    'shows the JSON itself when %s has no words',
    (text) => {
      const payload = Buffer.from(text)
      expect(decodeFrame(frame({ type: 0xf, flags: 0, packing: '10', number: 3001, payload }))).toEqual({
        kind: 'error',
        code: 3001,
        text,
      })
    },
  )

  it.each([
    ['an error', 0xf, '11', 64 * 1024],
    ['audio', 0xb, '01', 8 * 1024 * 1024],
  ])('of %s may hold so much decompressed and no byte more', (_, type, packing, maximum) => {
    const message = (size: number): Buffer =>
      frame({ type, flags: 1, packing, number: 1, payload: gzipSync(Buffer.alloc(size, 0x20)) })
    expect(decodeFrame(message(maximum))).toBeDefined()
    expect(decodeFrame(message(maximum + 1))).toBeUndefined()
  })

  it('is never half read: no beginning of a frame is a frame, but a bare acknowledgement', () => {
    const parts = fc.oneof(
      fc.record({
        type: fc.constantFrom(0xb, 0xc),
        flags: fc.constantFrom(1, 3),
        number: fc.oneof(positive, negative),
      }),
      fc.record({ type: fc.constant(0xf), flags: fc.constant(0), number: positive }),
      fc.record({ type: fc.constant(0xb), flags: fc.constant(2), number: negative }),
      fc.record({ type: fc.constantFrom(0xb, 0xc), flags: fc.constant(0) }),
    )
    fc.assert(
      fc.property(parts, extension, bytes(40), fc.boolean(), (known, words, content, isGzip) => {
        const payload = isGzip ? gzipSync(content) : content
        const message = frame({ ...known, packing: isGzip ? '01' : '00', extension: words, payload })
        expect(decodeFrame(message)).toBeDefined()
        for (let length = 0; length < message.length; length++) {
          const isBare = known.type === 0xb && known.flags === 0 && length === 4 + 4 * words
          expect(decodeFrame(message.subarray(0, length))).toEqual(isBare ? { kind: 'acknowledgement' } : undefined)
        }
        expect(decodeFrame(Buffer.concat([message, Buffer.from([0])]))).toBeUndefined()
      }),
    )
  })

  it('of arbitrary bytes is a known frame or malformed, never an exception', () => {
    const header = fc.tuple(
      fc.constantFrom(0x11, 0x12, 0x1f, 0x10),
      fc.constantFrom(0xb0, 0xb1, 0xb2, 0xb3, 0xc0, 0xf0, 0xf1),
      fc.constantFrom(0x00, 0x01, 0x10, 0x11),
      fc.constant(0),
    )
    const nearFrames = fc.tuple(header, bytes(40)).map(([head, rest]) => Buffer.concat([Buffer.from(head), rest]))
    fc.assert(
      fc.property(fc.oneof(bytes(64), nearFrames), (message) => {
        const decoded = decodeFrame(message)
        if (decoded !== undefined) expect(['acknowledgement', 'audio', 'frontEnd', 'error']).toContain(decoded.kind)
      }),
      { numRuns: 3000 },
    )
  })
})

describe('A session with P2', () => {
  const lab = new P2SessionLab()
  const { begin, expectNothingLeft } = lab

  afterEach(() => lab.reset())

  const CHANNEL_FAULT = { details: { attempt: { phase: 'answered', channelError: true } } }

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

    const sends =
      (message: Buffer | string) =>
      (socket: WebSocket): void => {
        socket.send(message)
      }

    it.each<[string, (socket: WebSocket) => void]>([
      [
        'the connection breaks',
        (socket) => {
          socket.terminate()
        },
      ],
      ['a text message comes', sends('{}')],
      ['a frame is malformed', sends(Buffer.from('11', 'hex'))],
      ['a message is too long', sends(Buffer.alloc(MAXIMUM_MESSAGE_BYTES + 1))],
      ['the last frame comes without any audio before or in it', sends(lastAudio())],
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
    const SENT = { details: { attempt: { phase: 'sent', channelError: true }, retryable: false } }

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
        { timeouts: { idleMs: 2_000 } },
      )
      await eventually(() => begun.sink.chunks.length > 0)
      begun.session.pause()
      const pausedAtMs = performance.now()
      await eventually(() => (lab.upstream?.sockets[0]?.bufferedAmount ?? 0) > 0)
      await eventually(() => performance.now() - pausedAtMs > 2_500)
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
          call.disconnect.abort()
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
      const { socket } = await lab.sockets.dial(request, upstream.target, attemptOf(call), performance.now() + 20_000)
      if (socket === undefined) throw new Error('refused')
      call.disconnect.abort()
      const sink = new RecordingSink()
      const refusal = (): GatewayError => new GatewayError('internal', 'unreachable')
      const exchange = attemptOf(call)
      const terms = { exchange, deadlineAtMs: performance.now() + 20_000, timeouts: GENEROUS_TIMEOUTS, refusal }
      new P2Session(socket, REQUEST, terms).start(sink)
      expect(sink.failure).toBe('caller_left')
      await eventually(() => upstream.closeCodes.length === 1)
      expect(upstream.received).toEqual([])
    })
  })
})
