import { once } from 'node:events'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from '@jest/globals'
import { WebSocket } from 'ws'

import {
  converseP2,
  openP2,
  P2_KEY,
  P2_PATH,
  p2Frame,
  p2Json,
  type P2Conversation,
} from '../../../test/support/p2-raw-client.js'
import type { SocketSimulator } from '../socket-protocol.js'
import { startP2Simulator, type P2SimulatorOptions } from './p2.simulator.js'

let simulator: SocketSimulator | undefined

afterEach(async () => {
  await simulator?.close()
  simulator = undefined
})

async function start(options: P2SimulatorOptions = {}): Promise<SocketSimulator> {
  simulator = await startP2Simulator({ apiKey: P2_KEY, ...options })
  return simulator
}

/** The last frame as an error: its code and its text. */
function errorOf({ frames }: P2Conversation): [number | undefined, string] {
  const last = frames.at(-1)
  expect(last?.kind).toBe('f0')
  return [last?.number, last?.payload.toString('utf8') ?? '']
}

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
    expect(simulator?.lastSession?.refusedStatus).toBe(status)
  })

  it.each(['Bearer;token-1', 'Bearer; token-1'])('%s opens the socket with a trace id', async (authorization) => {
    const { url } = await start()
    const socket = new WebSocket(`${url}${P2_PATH}`, { headers: { authorization } })
    const opened = once(socket, 'open')
    const [response] = (await once(socket, 'upgrade')) as [{ headers: Record<string, string> }]
    await opened
    expect(response.headers['x-tt-logid']).toMatch(/^\d{14}[0-9A-F]{20}$/)
    expect(response.headers['x-tt-logid']).toBe(simulator?.lastSession?.answerHeaders['x-tt-logid'])
    socket.close()
    await simulator?.idle()
  })

  it('a wrong token can get an error frame instead', async () => {
    const { url } = await start({ wrongToken: 'frame', apiKey: 'app-1|other' })
    const conversation = await converseP2(url, p2Json())
    expect(errorOf(conversation)).toEqual([3001, 'authenticate request: load grant: requested grant not found'])
    expect(simulator?.violations).toEqual([])
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
    const ending = simulator?.nextClose()
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
    expect(simulator?.violations).toEqual([])
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
    expect(simulator?.violations).toEqual(['the client did not close after the last frame'])
  })

  it('left by the client in the middle is an abort', async () => {
    const { url } = await start()
    const aborted = simulator?.nextAbort()
    const socket = await openP2(`${url}${P2_PATH}`)
    socket.send(p2Frame(p2Json({ request: { text: '#bytes=800000000' } })))
    await once(socket, 'message')
    socket.terminate()
    expect((await aborted)?.end).toMatchObject({ outcome: 'aborted', by: 'client', code: 1006 })
    expect(simulator?.activeSessions).toBe(0)
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
    expect(simulator?.violations).toEqual([text])
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
    expect(simulator?.violations).toEqual(['a second message on one connection'])
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
    expect(simulator?.violations).toEqual([])
    await converseP2(url, audio({ speed: 3 }))
    expect(simulator?.violations).toEqual(['unknown field audio.speed'])
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
    expect(simulator?.violations).toEqual([])
  })
})
