import { once } from 'node:events'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from '@jest/globals'
import { errorOf, P2SimulatorLab } from '../../test/p2-simulator-lab.js'
import { converseP2, openP2, P2_PATH, p2Frame, p2Json } from '../../test/speech-simulator-labs.js'

const lab = new P2SimulatorLab()
const { start } = lab

afterEach(() => lab.close())

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
