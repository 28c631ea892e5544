import { once } from 'node:events'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { parseBuffer } from 'music-metadata'
import { WebSocket } from 'ws'
import {
  converseP2,
  errorOf,
  openP2,
  P2_PATH,
  type P2Conversation,
  p2Frame,
  p2Json,
  P2SimulatorLab,
  p2Spoken,
} from '../../test/speech-simulator-labs.js'
import type { SocketSimulator } from '../server/websocket-protocol.js'
import { startP2Simulator } from './p2.simulator.js'

const lab = new P2SimulatorLab()
const { start } = lab

afterEach(() => lab.close())

describe('the handshake', () => {
  it.each([
    ['another path', '/api/v1/tts', 'Bearer;token-1', 404],
    ['a longer path', `${P2_PATH}/`, 'Bearer;token-1', 404],
    ['a query string', `${P2_PATH}?a=1`, 'Bearer;token-1', 404],
    ['a space instead of the semicolon', P2_PATH, 'Bearer token-1', 401],
    ['a bare token', P2_PATH, 'token-1', 401],
    ['a key with both parts', P2_PATH, 'Bearer;app-1|token-1', 401],
    ['no token', P2_PATH, 'Bearer;', 401],
    ['a wrong token', P2_PATH, 'Bearer;token-2', 401],
  ])('%s is refused with JSON and a trace id', async (_name, path, authorization, status) => {
    const { url } = await start()
    await expect(openP2(`${url}${path}`, { authorization })).rejects.toMatchObject({
      status,
      headers: { 'content-type': 'application/json', 'x-tt-logid': expect.stringMatching(/^\d{14}[0-9A-F]{20}$/) },
      body: expect.stringMatching(/^\{"reqid":"","code":3001,"message":".+"/),
    })
    expect(lab.simulator?.lastSession?.refusedStatus).toBe(status)
  })

  it.each(['Bearer;token-1', 'Bearer; token-1'])('%s opens the socket with a trace id', async (authorization) => {
    const { url } = await start()
    const socket = new WebSocket(`${url}${P2_PATH}`, { headers: { authorization } })
    const opened = once(socket, 'open')
    const [response] = (await once(socket, 'upgrade')) as [{ headers: Record<string, string> }]
    await opened
    expect(response.headers['x-tt-logid']).toMatch(/^\d{14}[0-9A-F]{20}$/)
    expect(response.headers['x-tt-logid']).toBe(lab.simulator?.lastSession?.answerHeaders['x-tt-logid'])
    socket.close()
    await lab.simulator?.idle()
  })

  it('a wrong token can get an error frame instead', async () => {
    const { url } = await start({ wrongToken: 'frame', apiKey: 'app-1|other' })
    const conversation = await converseP2(url, p2Json())
    expect(errorOf(conversation)).toEqual([3001, 'authenticate request: load grant: requested grant not found'])
    expect(lab.simulator?.violations).toEqual([])
  })

  it('plain HTTP on the socket path is no handshake', async () => {
    const { httpUrl } = await start()
    const response = await fetch(`${httpUrl}${P2_PATH}`, { headers: { authorization: 'Bearer;token-1' } })
    expect(response.status).toBe(400)
  })

  it('a key that is no pair cannot start a simulator', () => {
    for (const apiKey of ['a', 'a|', '|b', 'a|b|c', '']) expect(() => startP2Simulator({ apiKey })).toThrow(TypeError)
  })
})

describe('a good request', () => {
  it('gets an ACK, frames numbered from 1, the last one negative, and waits for the close of the client', async () => {
    const { url } = await start()
    const ending = lab.simulator?.nextClose()
    const { frames, audio, closeCode } = await converseP2(url, p2Json())
    expect(frames[0]?.hex).toBe('11b0000000000000')
    const numbers = frames.slice(1).map(({ number }) => number)
    const count = numbers.length
    expect(count).toBeGreaterThan(3)
    expect(numbers).toEqual([...Array.from({ length: count - 1 }, (_, index) => index + 1), -count])
    expect(frames[1]?.hex.slice(0, 24)).toBe(`11b1000000000001${(5760).toString(16).padStart(8, '0')}`)
    expect(frames.at(-1)?.kind).toBe('b3')
    expect(audio.length).toBe(15 * 2880)
    expect(closeCode).toBe(1000)
    const session = await ending
    expect(session?.end).toEqual({ outcome: 'finished', by: 'client', code: 1000, reason: '' })
    expect(session?.sentMessages).toBe(frames.length)
    expect(session?.sentBytes).toBe(frames.reduce((sum, { hex }) => sum + hex.length / 2, 0))
    expect(session?.decoded).toHaveLength(1)
    expect(lab.simulator?.violations).toEqual([])
  })

  it('may be compressed', async () => {
    const { url } = await start()
    const { audio } = await converseP2(url, p2Frame(p2Json(), '11101100', gzipSync))
    expect(audio.length).toBe(43_200)
  })

  it('of the older and the newer demo, with every field there is, is taken', async () => {
    const { url } = await start()
    const extra_param = JSON.stringify({
      disable_markdown_filter: true,
      cache_config: { text_type: 1, use_cache: true },
    })
    const all = p2Json({
      audio: {
        encoding: 'mp3',
        rate: 24_000,
        bitrate: 160,
        speed_ratio: 1,
        loudness_ratio: 2,
        emotion: 'happy',
        enable_emotion: true,
        emotion_scale: 5,
        explicit_language: 'zh',
        context_language: 'es',
      },
      request: {
        model: 'seed-tts-1.1',
        text_type: 'plain',
        silence_duration: 30_000,
        enable_trailing_silence_audio: true,
        with_timestamp: '1',
        extra_param,
      },
    })
    const { frames } = await converseP2(url, all)
    expect(frames.at(-1)?.kind).toBe('b3')
  })

  it('asking for timestamps gets a front-end frame between the audio', async () => {
    const { url } = await start()
    const { frames } = await converseP2(url, p2Json({ request: { text: 'Ni hao', with_timestamp: 1 } }))
    expect(frames.map(({ kind }) => kind)).toEqual(['b0', 'b1', 'c0', 'b1', 'b3'])
    expect(frames[2]?.hex).toMatch(/^11c01000/)
    expect(JSON.parse(frames[2]?.payload.toString('utf8') ?? '')).toMatchObject({
      words: [
        { word: 'Ni', start_time: 0 },
        { word: 'hao', start_time: 0.18 },
      ],
    })
  })

  it('with operation query gets everything in the last frame', async () => {
    const { url } = await start()
    const { frames, audio } = await converseP2(url, p2Json({ request: { operation: 'query' } }))
    expect(frames.map(({ kind, number }) => [kind, number])).toEqual([
      ['b0', undefined],
      ['b3', -1],
    ])
    expect(audio.length).toBe(43_200)
  })

  it('gets no ACK from a simulator without', async () => {
    const { url } = await start({ acknowledge: false })
    expect((await converseP2(url, p2Json())).frames[0]?.kind).toBe('b1')
  })

  it('is closed by the simulator when the client forgets to, which is a violation', async () => {
    const { url } = await start({ closeAfterMs: 20 })
    const socket = await openP2(`${url}${P2_PATH}`)
    socket.send(p2Frame(p2Json()))
    const [code] = (await once(socket, 'close')) as [number]
    expect(code).toBe(1000)
    expect(lab.simulator?.violations).toEqual(['the client did not close after the last frame'])
  })

  it('left by the client in the middle is an abort', async () => {
    const { url } = await start()
    const aborted = lab.simulator?.nextAbort()
    const socket = await openP2(`${url}${P2_PATH}`)
    socket.send(p2Frame(p2Json({ request: { text: '#bytes=800000000' } })))
    await once(socket, 'message')
    socket.terminate()
    expect((await aborted)?.end).toMatchObject({ outcome: 'aborted', by: 'client', code: 1006 })
    expect(lab.simulator?.activeSessions).toBe(0)
  })
})

describe('frames that are none', () => {
  it.each([
    ['text', JSON.stringify(p2Json()), 'a text message instead of a binary frame'],
    ['less than a header', Buffer.from('11101000', 'hex'), 'a frame of 4 bytes'],
    ['a header without JSON', p2Frame(p2Json(), '11100000'), 'frame header 11100000'],
    ['flags', p2Frame(p2Json(), '11111000'), 'frame header 11111000'],
    ['the reserved byte', p2Frame(p2Json(), '11101001'), 'frame header 11101001'],
    ['a wrong size', Buffer.concat([p2Frame({}), Buffer.from(' ')]), 'payload size 2, but 3 bytes follow'],
    ['plain bytes said to be gzip', p2Frame({}, '11101100'), 'payload is not gzip'],
    ['gzip said to be plain', p2Frame({}, '11101000', gzipSync), 'payload is not UTF-8'],
    ['a JSON array', p2Frame([]), 'payload is not a JSON object'],
    ['a bomb', p2Frame('x'.repeat(1_000_000), '11101100', gzipSync), 'payload is not gzip'],
  ])('%s gets error 3001 and the close', async (_name, message, text) => {
    const { url } = await start()
    const conversation = await converseP2(url, message)
    expect(conversation.frames).toHaveLength(1)
    expect(errorOf(conversation)).toEqual([3001, text])
    expect(conversation.closeCode).toBe(1000)
    expect(lab.simulator?.violations).toEqual([text])
  })

  it('a second request on one connection is refused', async () => {
    const { url } = await start({ paceMs: 20 })
    const socket = await openP2(`${url}${P2_PATH}`)
    const kinds: string[] = []
    socket.on('message', (data: Buffer) => kinds.push(data.toString('hex', 1, 2)))
    socket.send(p2Frame(p2Json()))
    socket.send(p2Frame(p2Json()))
    await once(socket, 'close')
    expect(kinds.at(-1)).toBe('f0')
    expect(kinds).not.toContain('b3')
    expect(lab.simulator?.violations).toEqual(['a second message on one connection'])
  })
})

describe('requests that are refused', () => {
  const section =
    (name: string) =>
    (fields: object): object =>
      p2Json({ [name]: { ...fields } })
  const [app, user, audio, request] = [section('app'), section('user'), section('audio'), section('request')]

  it.each([
    ['no app id', app({ appid: undefined }), 3001, 'missing field app.appid'],
    ['an empty app id', app({ appid: '' }), 3001, 'invalid app.appid: ""'],
    ['another app id', app({ appid: 'app-2' }), 3001, 'authenticate request: load grant: requested grant not found'],
    ['an empty token', app({ token: '' }), 3001, 'invalid app.token: ""'],
    ['no cluster', app({ cluster: undefined }), 3001, 'missing field app.cluster'],
    ['a wrong cluster', app({ cluster: 'x' }), 3031, 'Fail to feed text, reason Init Engine Instance failed'],
    ['no user', user({ uid: undefined }), 3001, 'missing field user.uid'],
    ['no voice', audio({ voice_type: undefined }), 3001, 'missing field audio.voice_type'],
    ['an unknown voice', audio({ voice_type: 'alloy' }), 3050, 'voice type not exist'],
    ['an unknown encoding', audio({ encoding: 'flac' }), 3001, 'invalid audio.encoding: "flac"'],
    ['streamed wav', audio({ encoding: 'wav' }), 3001, 'encoding wav cannot be streamed'],
    ['a rate', audio({ rate: 44_100 }), 3001, 'invalid audio.rate: 44100'],
    ['speed 0', audio({ speed_ratio: 0 }), 3001, 'invalid audio.speed_ratio: 0'],
    ['too slow', audio({ speed_ratio: 0.79 }), 3001, 'invalid audio.speed_ratio: 0.79'],
    ['too fast', audio({ speed_ratio: 2.01 }), 3001, 'invalid audio.speed_ratio: 2.01'],
    ['an unknown audio field', audio({ pitch_ratio: 1 }), 3001, 'unknown field audio.pitch_ratio'],
    ['an unknown app field', app({ key: 'x' }), 3001, 'unknown field app.key'],
    ['an unknown section', p2Json({ metadata: {} }), 3001, 'unknown field metadata'],
    ['no text', request({ text: undefined }), 3001, 'missing field request.text'],
    ['an empty text', request({ text: '' }), 3011, 'illegal input text!'],
    ['nothing but punctuation', request({ text: ' ... !? ' }), 3011, 'illegal input text!'],
    ['nothing but emoji', request({ text: '😀' }), 3011, 'illegal input text!'],
    ['SSML that is none', request({ text: 'Hello', text_type: 'ssml' }), 3011, 'illegal input text!'],
    ['1,025 bytes', request({ text: 'x'.repeat(1025) }), 3010, 'text is too long'],
    ['1,026 bytes in 342 characters', request({ text: '你'.repeat(342) }), 3010, 'text is too long'],
    ['a wrong operation', request({ operation: 'stream' }), 3001, 'invalid request.operation: "stream"'],
    ['no request id', request({ reqid: '' }), 3001, 'invalid request.reqid: ""'],
    ['extra_param as an object', request({ extra_param: {} }), 3001, 'invalid request.extra_param: {}'],
    ['an unknown extra', request({ extra_param: '{"a":1}' }), 3001, 'invalid request.extra_param: "{\\"a\\":1}"'],
  ])('%s', async (_name, json, code, text) => {
    const { url } = await start()
    const conversation = await converseP2(url, json)
    expect(conversation.frames).toHaveLength(1)
    expect(errorOf(conversation)).toEqual([code, text])
    expect(conversation.closeCode).toBe(1000)
  })

  it('error 3050 is the example of the protocol, byte for byte', async () => {
    const { url } = await start()
    const { frames } = await converseP2(url, audio({ voice_type: 'nobody' }))
    expect(frames[0]?.hex).toBe('11f0100000000bea00000014766f6963652074797065206e6f74206578697374')
  })

  it('a request id that was used before', async () => {
    const { url } = await start()
    const again = request({ reqid: 'r1' })
    expect((await converseP2(url, again)).frames.at(-1)?.kind).toBe('b3')
    expect(errorOf(await converseP2(url, again))[0]).toBe(3006)
  })

  it('a value out of range is the fault of the caller; an unknown field is a violation', async () => {
    const { url } = await start()
    await converseP2(url, audio({ speed_ratio: 3 }))
    expect(lab.simulator?.violations).toEqual([])
    await converseP2(url, audio({ speed: 3 }))
    expect(lab.simulator?.violations).toEqual(['unknown field audio.speed'])
  })

  it('but not what lies within the limits', async () => {
    const { url } = await start({ voices: ['my_voice'] })
    const good = [
      request({ text: 'x'.repeat(1024) }),
      request({ text: '<speak>Ni <break/>hao</speak>', text_type: 'ssml' }),
      audio({ speed_ratio: 0.8 }),
      audio({ speed_ratio: 2 }),
      audio({ voice_type: 'my_voice' }),
      p2Json({ audio: { voice_type: 'S_cloned' }, app: { cluster: 'volcano_icl' } }),
    ]
    for (const json of good) expect((await converseP2(url, json)).frames.at(-1)?.kind).toBe('b3')
    expect(lab.simulator?.violations).toEqual([])
  })
})

describe('Audio of the P2 simulator', () => {
  const TEXT = 'The gateway speaks with one voice.'
  const SECONDS = TEXT.length * 0.06
  let simulator: SocketSimulator

  beforeEach(async () => {
    simulator = await start({ wavAccepted: true })
  })

  const speak = async (audio: object): Promise<Buffer> => (await converseP2(simulator.url, p2Spoken(TEXT, audio))).audio

  describe('the audio', () => {
    it.each([
      { encoding: 'mp3', mimeType: 'audio/mpeg', codec: 'MPEG 2 Layer 3' },
      { encoding: 'ogg_opus', mimeType: 'audio/ogg', codec: 'Opus' },
      { encoding: 'wav', mimeType: 'audio/wav', codec: 'PCM' },
    ])('is valid $encoding at 24 kHz as long as the text', async ({ encoding, mimeType, codec }) => {
      const { format } = await parseBuffer(await speak({ encoding }), { mimeType }, { duration: true })
      expect(format).toMatchObject({ codec, sampleRate: 24_000, numberOfChannels: 1 })
      expect(Math.abs((format.duration ?? 0) - SECONDS)).toBeLessThan(0.1)
    })

    it.each([8000, 16_000, 24_000])('is audible pcm at %i Hz', async (rate) => {
      const pcm = await speak({ encoding: 'pcm', rate })
      expect(Math.abs(pcm.length / 2 / rate - SECONDS)).toBeLessThan(0.02)
      const samples = Array.from({ length: pcm.length / 2 }, (_, index) => Math.abs(pcm.readInt16LE(index * 2)))
      expect(Math.max(...samples)).toBeGreaterThan(10_000)
    })

    it('is shorter when spoken faster', async () => {
      const slow = await speak({ speed_ratio: 0.8 })
      const fast = await speak({ speed_ratio: 2 })
      expect(slow.length / fast.length).toBeCloseTo(2.5, 1)
    })

    it('is pcm when nothing else was asked for', async () => {
      expect((await speak({ encoding: undefined })).equals(await speak({ encoding: 'pcm' }))).toBe(true)
    })

    it('of other rates than 24 kHz is a violation where the simulator has none', async () => {
      const { frames } = await converseP2(simulator.url, p2Spoken(TEXT, { encoding: 'mp3', rate: 8000 }))
      expect(frames.at(-1)?.number).toBe(3001)
      expect(simulator.violations).toEqual(['the simulator speaks mp3 at 24000 Hz only'])
    })
  })

  describe('POST /api/v1/tts', () => {
    async function post(json: object, authorization = 'Bearer;token-1'): Promise<Response> {
      const headers = { authorization, 'content-type': 'application/json' }
      return fetch(`${simulator.httpUrl}/api/v1/tts`, { method: 'POST', headers, body: JSON.stringify(json) })
    }

    it('answers the same audio in one JSON text', async () => {
      const response = await post(p2Json({ request: { reqid: 'r1', text: TEXT, operation: 'query' } }))
      expect(response.headers.get('x-tt-logid')).toMatch(/^\d{14}/)
      const { data, ...rest } = (await response.json()) as { data: string }
      expect(rest).toEqual({
        reqid: 'r1',
        code: 3000,
        operation: 'query',
        message: 'Success',
        sequence: -1,
        addition: { duration: '2040' },
      })
      expect(Buffer.from(data, 'base64').equals(await speak({}))).toBe(true)
    })

    it('refuses what it cannot take', async () => {
      const query = { operation: 'query' }
      expect((await post(p2Json({ request: query }), 'Bearer token-1')).status).toBe(401)
      expect((await post(p2Json({ request: query }), 'Bearer;other')).status).toBe(401)
      expect(await (await post(p2Json())).json()).toMatchObject({ code: 3001 })
      expect(await (await post(p2Json({ request: { ...query, text: '' } }))).json()).toMatchObject({ code: 3011 })
      expect(await (await post(p2Json({ request: { ...query, text: '#err3031' } }))).json()).toMatchObject({
        code: 3031,
      })
      expect((await fetch(`${simulator.httpUrl}/api/v1/tts`)).status).toBe(405)
      expect((await fetch(`${simulator.httpUrl}/other`)).status).toBe(404)
    })
  })
})

describe('The P2 simulator', () => {
  const GAP_MS = 60
  let simulator: SocketSimulator

  beforeEach(async () => {
    simulator = await start({ gapMs: GAP_MS })
  })

  const say = (text: string): Promise<P2Conversation> => converseP2(simulator.url, p2Spoken(text))
  const kinds = ({ frames }: P2Conversation): string[] => frames.map(({ kind }) => kind)
  const plain = { text: 'ni hao', frames: ['b0', 'b1', 'b1', 'b3'] }

  describe('errors asked for', () => {
    it.each([3001, 3003, 3006, 3010, 3011, 3050, 9999])('#err%i comes before the ACK', async (code) => {
      const conversation = await say(`#err${code} please`)
      expect(kinds(conversation)).toEqual(['f0'])
      expect(conversation.frames[0]?.number).toBe(code)
      expect(conversation.closeCode).toBe(1000)
      expect((await endOf())?.outcome).toBe('finished')
    })

    it.each([3005, 3030, 3031, 3032, 3040])('#err%i comes after the ACK', async (code) => {
      const conversation = await say(`#err${code} please`)
      expect(kinds(conversation)).toEqual(['b0', 'f0'])
      expect(conversation.frames[1]?.number).toBe(code)
    })

    it.each([
      ['#errgrant', 3001, 'authenticate request: load grant: requested grant not found'],
      ['#errquota', 3001, 'quota exceeded for types: text_words_lifetime'],
      ['#errconcurrency', 3003, 'quota exceeded for types: concurrency'],
      ['#erraccess', 3001, 'extract request resource id: get resource id: access denied'],
      ['#errengine', 3031, 'Fail to feed text, reason Init Engine Instance failed'],
      ['#errquota #err3003', 3003, 'quota exceeded for types: text_words_lifetime'],
    ])('%s', async (text, code, words) => {
      const error = (await say(text)).frames.at(-1)
      expect([error?.number, error?.payload.toString()]).toEqual([code, words])
    })

    it('#errmid comes after two audio frames, with any code', async () => {
      const conversation = await say('#errmid hello')
      expect(kinds(conversation)).toEqual(['b0', 'b1', 'b1', 'f0'])
      expect(conversation.frames.at(-1)?.number).toBe(3031)
      expect((await say('#errmid #err3005')).frames.at(-1)?.number).toBe(3005)
    })

    it('#gziperr compresses the text', async () => {
      const error = (await say('#gziperr #err3003')).frames[0]
      expect(error?.hex).toMatch(/^11f0110000000bbb/)
      expect(gunzipSync(error?.payload ?? '').toString()).toBe('quota exceeded for types: concurrency')
      expect((await say('#gziperr')).frames.at(-1)?.number).toBe(3031)
    })

    it('#jsonerr makes a JSON object of the text', async () => {
      const error = (await say('#jsonerr #err3005')).frames.at(-1)
      expect(JSON.parse(error?.payload.toString() ?? '')).toEqual({
        reqid: expect.stringMatching(/^[0-9a-f-]{36}$/),
        code: 3005,
        message: 'backend service is busy',
      })
    })
  })

  describe('odd but legal streams', () => {
    it('#noack and #bareack', async () => {
      expect(kinds(await say('#noack ni'))[0]).toBe('b1')
      expect((await say('#bareack ni')).frames[0]?.hex).toBe('11b00000')
    })

    it('#flag2 ends with flags 0x2 and the negative sequence', async () => {
      const { frames } = await say('#flag2')
      expect(frames.at(-1)?.hex).toMatch(/^11b20000fffffffd00001680/)
      expect(frames.at(-1)?.payload.length).toBe(0x1680)
    })

    it('#flag2bare ends with flags 0x2 and no sequence', async () => {
      const { frames, audio } = await say('#flag2bare')
      expect(frames.at(-1)?.hex).toMatch(/^11b20000(?!ffff)/)
      expect(frames.at(-1)?.number).toBeUndefined()
      expect(audio.length).toBe(10 * 2880)
    })

    it('#merge puts all audio into the last frame', async () => {
      const conversation = await say('#merge ni hao')
      expect(kinds(conversation)).toEqual(['b0', 'b3'])
      expect(conversation.frames[1]?.number).toBe(-1)
      expect(conversation.audio.length).toBe(13 * 2880)
    })

    it('#emptylast ends with the example of the protocol, byte for byte but for the sequence', async () => {
      const { frames } = await say('#emptylast a')
      expect(frames.at(-1)?.hex).toMatch(/^11b30000fffffff[0-9a-f]00000000$/)
    })

    it('#slow is silent after the first audio frame, but #slow has all the audio', async () => {
      const startedAtMs = performance.now()
      const { audio } = await say('#slow')
      expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(GAP_MS - 2)
      expect(audio.length).toBe(5 * 2880)
    })
  })

  describe('broken streams', () => {
    it('#cut destroys the connection after two audio frames', async () => {
      const conversation = await say('#cut hello')
      expect(kinds(conversation)).toEqual(['b0', 'b1', 'b1'])
      expect(conversation.closeCode).toBe(1006)
      expect((await endOf())?.outcome).toBe('broken')
    })

    it('#closeearly closes properly after two audio frames', async () => {
      const conversation = await say('#closeearly hello')
      expect(kinds(conversation)).toEqual(['b0', 'b1', 'b1'])
      expect(conversation.closeCode).toBe(1000)
      expect(await endOf()).toMatchObject({ outcome: 'broken', by: 'simulator' })
    })

    it('#garbage and #textframe come before the audio', async () => {
      const garbage = await say('#garbage hello')
      expect(garbage.frames[1]?.hex).toBe('11b10000000000017fffffffaabb')
      expect(garbage.frames.at(-1)?.kind).toBe('b3')
      expect((await say('#textframe')).texts).toHaveLength(1)
    })

    it('#hang says nothing until the client leaves', async () => {
      const socket = await openP2(`${simulator.url}${P2_PATH}`)
      let messages = 0
      socket.on('message', () => (messages += 1))
      socket.send(p2Frame(p2Spoken('#hang')))
      // A pong proves that the request was read, for it was sent before.
      socket.ping()
      await once(socket, 'pong')
      const aborted = simulator.nextAbort()
      socket.close()
      expect((await aborted).sentMessages).toBe(0)
      expect(messages).toBe(0)
    })
  })

  describe('queued faults', () => {
    it('strike one session, in order, and need no word in the text', async () => {
      simulator.queueFault('#err3005 #noack')
      simulator.queueFault({ kind: 'status', status: 503, headers: { 'retry-after': '1' }, body: 'busy' })
      expect(kinds(await say(plain.text))).toEqual(['f0'])
      await expect(say(plain.text)).rejects.toMatchObject({
        status: 503,
        headers: { 'retry-after': '1' },
        body: 'busy',
      })
      expect(kinds(await say(plain.text))).toEqual(plain.frames)
    })

    it('with a slip in them are seen', async () => {
      simulator.queueFault('#err3005 #flag3')
      expect((await say(plain.text)).closeCode).toBe(1006)
      expect(simulator.violations).toEqual([expect.stringContaining('queued fault knows no #flag3')])
    })

    it('words that are none of the table are text', async () => {
      expect(kinds(await say('#flag3 #error x#cut'))).not.toContain('f0')
      expect((await say('C#merge 5#cut')).closeCode).toBe(1000)
    })
  })

  describe('#bytes=N', () => {
    it.each(['pcm', 'mp3'])('gives exactly as many bytes of %s', async (encoding) => {
      const { audio } = await converseP2(simulator.url, p2Spoken('#bytes=100001', { encoding }))
      expect(audio.length).toBe(100_001)
      expect(audio.findIndex((byte, index) => byte !== index % 251)).toBe(-1)
    })

    it('gives real pages of ogg_opus, as many bytes at least', async () => {
      const { audio } = await converseP2(simulator.url, p2Spoken('#bytes=100000', { encoding: 'ogg_opus' }))
      expect(audio.length).toBeGreaterThanOrEqual(100_000)
      expect(audio.length).toBeLessThan(200_000)
      expect(audio.toString('latin1', 0, 4)).toBe('OggS')
    })

    it('waits for a slow reader, and goes on', async () => {
      const total = 64_000_000
      const socket = await openP2(`${simulator.url}${P2_PATH}`)
      let received = 0
      socket.on('message', (data: Buffer) => (received += data.length))
      socket.send(p2Frame(p2Spoken(`#bytes=${total}`)))
      await once(socket, 'message')
      const session = simulator.lastSession
      socket.pause()
      expect(await session?.nextStall()).toBe(true)
      const sentBytes = session?.sentBytes ?? 0
      expect(sentBytes).toBeLessThan(total / 2)
      expect(session?.blocked).toBe(true)
      expect(await session?.nextStall()).toBe(true)
      expect(session?.sentBytes).toBe(sentBytes)
      socket.resume()
      await new Promise<void>((resolve) => {
        socket.on('message', (data: Buffer) => {
          if (data.readUInt8(1) === 0xb3) resolve()
        })
      })
      expect(received).toBeGreaterThan(total)
      socket.close(1000)
      expect((await session?.closed)?.outcome).toBe('finished')
    })
  })

  async function endOf(): Promise<{ outcome: string; by: string } | undefined> {
    return simulator.lastSession?.closed
  }
})
