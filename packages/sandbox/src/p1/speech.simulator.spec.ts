import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import OpenAI from 'openai'
import type { Simulator } from '../server/simulator-server.js'
import { startP1Simulator } from './p1.simulator.js'

let simulator: Simulator
let client: OpenAI

beforeAll(async () => {
  simulator = await startP1Simulator({ apiKey: 'sk-test-key' })
  client = new OpenAI({ apiKey: 'sk-test-key', baseURL: `${simulator.url}/v1`, maxRetries: 0 })
})
afterEach(() => {
  simulator.reset()
})
afterAll(async () => {
  await simulator.close()
})

const good = { model: 'tts-1', input: 'Hello there.', voice: 'alloy' }

function post(body: object): Promise<Response> {
  return fetch(`${simulator.url}/v1/audio/speech`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk-test-key', 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

describe('the official SDK against the P1 speech simulator', () => {
  it.each([
    ['mp3', 'audio/mpeg', /^(fff|494433)/],
    ['opus', 'audio/opus', /^4f676753/],
    ['aac', 'audio/aac', /^fff[19]/],
    ['flac', 'audio/flac', /^664c6143/],
    ['wav', 'audio/wav', /^52494646ffffffff57415645.{48}64617461ffffffff/],
    ['pcm', 'audio/pcm', /^/],
  ] as const)('gets %s as chunked %s with its signature', async (format, type, signature) => {
    const response = await client.audio.speech.create({ ...good, response_format: format })
    expect(response.headers.get('content-type')).toBe(type)
    expect(response.headers.get('content-length')).toBeNull()
    const bytes = Buffer.from(await response.arrayBuffer())
    expect(bytes.subarray(0, 44).toString('hex')).toMatch(signature)
    expect(bytes.length).toBeGreaterThan(200)
  })

  it('gets events from the style models: CRLF frames, usage once, [DONE] last', async () => {
    const response = await client.audio.speech.create({
      ...good,
      model: 'gpt-4o-mini-tts',
      response_format: 'pcm',
      stream_format: 'sse',
      instructions: 'Speak calmly.',
    })
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const frames = (await response.text()).split('\r\n\r\n')
    expect(frames.slice(-2)).toEqual(['data: [DONE]', ''])
    const events = frames.slice(0, -2).map((frame) => JSON.parse(frame.slice(6)) as Record<string, unknown>)
    const audio = Buffer.concat(events.slice(0, -1).map((event) => Buffer.from(String(event['audio']), 'base64')))
    const plain = await client.audio.speech.create({ ...good, model: 'gpt-4o-mini-tts', response_format: 'pcm' })
    expect(audio.equals(Buffer.from(await plain.arrayBuffer()))).toBe(true)
    expect(events.at(-1)).toMatchObject({ type: 'speech.audio.done', usage: { input_tokens: 3 } })
  })

  it('gets raw audio from tts-1 although it asked for events', async () => {
    const response = await client.audio.speech.create({ ...good, stream_format: 'sse' })
    expect(response.headers.get('content-type')).toBe('audio/mpeg')
  })

  it('raises NotFoundError for an unknown model', async () => {
    const failing = client.audio.speech.create({ ...good, model: 'missing-tts' })
    await expect(failing).rejects.toMatchObject({ constructor: OpenAI.NotFoundError, code: 'model_not_found' })
  })
})

describe('long speech', () => {
  it('streams as many bytes as the magic text says', async () => {
    const bytes = Buffer.from(await (await post({ ...good, input: '#bytes=1000001' })).arrayBuffer())
    expect(bytes.length).toBe(1_000_001)
    expect(bytes.findIndex((byte, index) => byte !== index % 251)).toBe(-1)
  })

  it('stops when the reader leaves', async () => {
    const aborted = simulator.nextAbort()
    const response = await post({ ...good, input: '#bytes=800000000' })
    await response.body?.cancel()
    expect(await (await aborted).closed).toBe('aborted')
  })

  it('is destroyed, not ended, by a cut or an error in the middle', async () => {
    await expect((await post({ ...good, input: '#cut me' })).arrayBuffer()).rejects.toThrow('terminated')
    await expect((await post({ ...good, input: '#errorframe' })).arrayBuffer()).rejects.toThrow('terminated')
  })
})

describe('what speech refuses', () => {
  const list = (entry: string): RegExp => new RegExp(`^\\[\\{'type': '${entry}`)
  it.each([
    ['no model', { model: undefined }, /^you must provide a model parameter$/],
    ['metadata', { metadata: {} }, list("extra_forbidden', 'loc': \\('body', 'metadata'\\)")],
    ['no input', { input: undefined }, list("missing', 'loc': \\('body', 'input'\\)")],
    ['empty input', { input: '' }, list('string_too_short')],
    ['long input', { input: 'x'.repeat(4097) }, list('string_too_long')],
    ['a number as input', { input: 5 }, list('string_type')],
    [
      'unknown voice',
      { voice: 'bob' },
      /"Input should be 'alloy', .* or 'shimmer'", 'input': 'bob', 'ctx': \{'expected'/,
    ],
    ['a style voice on tts-1', { voice: 'verse' }, list('enum')],
    ['unknown format', { response_format: 'ogg' }, list("literal_error', 'loc': \\('body', 'response_format'\\)")],
    ['slow speed', { speed: 0.2 }, list('greater_than_equal')],
    ['fast speed', { speed: 4.1 }, list('less_than_equal')],
    [
      'too many tokens',
      { model: 'gpt-4o-mini-tts', input: '你'.repeat(2132) },
      /^Input of 2132 tokens is over the maximum input limit of 2000 tokens\. Please shorten your input\.$/,
    ],
  ])('%s', async (_name, change, message) => {
    const response = await post({ ...good, ...change })
    expect(response.status).toBe(400)
    const { error } = (await response.json()) as { error: Record<string, unknown> }
    expect(error['message']).toMatch(message)
    expect(error).toMatchObject({ type: 'invalid_request_error', param: null })
  })

  it('4,096 characters are counted as code points', async () => {
    expect((await post({ ...good, input: `#bytes=1 ${'😀'.repeat(4087)}` })).status).toBe(200)
  })

  it('custom voices are taken', async () => {
    expect((await post({ ...good, voice: { id: 'voice_123' } })).status).toBe(200)
  })
})
