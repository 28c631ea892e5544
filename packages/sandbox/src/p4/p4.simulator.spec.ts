import { createHash } from 'node:crypto'
import { afterEach, describe, expect, it } from '@jest/globals'
import OpenAI, { toFile } from 'openai'
import { synthesizeSpeech } from '../audio/speech-synthesizer.js'
import type { Simulator } from '../server/simulator-server.js'
import { type P4SimulatorOptions, startP4Simulator } from './p4.simulator.js'

let simulator: Simulator | undefined

afterEach(async () => {
  await simulator?.close()
  simulator = undefined
})

const clip = Buffer.concat([...synthesizeSpeech('Good morning to you', { format: 'wav', speed: 1 })])
const checksum = createHash('sha1').update(clip).digest('hex').slice(0, 12)

async function start(options: P4SimulatorOptions = {}): Promise<{ url: string; client: OpenAI }> {
  simulator = await startP4Simulator({ apiKey: 'gsk-test', ...options })
  const url = `${simulator.url}${options.prefix ?? (options.mode === 'openai' ? '' : '/openai')}/v1`
  return { url, client: new OpenAI({ apiKey: 'gsk-test', baseURL: url, maxRetries: 0 }) }
}

const upload = (): Promise<File> => toFile(clip, 'speech.wav')

describe('P4 in groq mode', () => {
  it('transcribes under /openai, with x_groq and a leading space', async () => {
    const { client } = await start()
    const answer = await client.audio.transcriptions.create({ model: 'whisper-large-v3', file: await upload() })
    expect(answer.text).toMatch(new RegExp(`^ The audio has checksum ${checksum}\\.`))
    expect(answer).toHaveProperty('x_groq.id', expect.stringMatching(/^req_/))
    expect(answer).not.toHaveProperty('usage')
  })

  it('capitalises the language and knows the duration', async () => {
    const { client } = await start()
    const answer = await client.audio.transcriptions.create({
      model: 'whisper-large-v3-turbo',
      file: await upload(),
      response_format: 'verbose_json',
      timestamp_granularities: ['word'],
    })
    expect(answer.language).toBe('English')
    expect(answer.duration).toBeCloseTo((clip.length - 44) / 48_000, 5)
    expect(answer).toHaveProperty('words')
    expect(answer).not.toHaveProperty('segments')
  })

  it.each(['srt', 'vtt'] as const)('does not give %s', async (response_format) => {
    const { client } = await start()
    const failing = client.audio.transcriptions.create({
      model: 'whisper-large-v3',
      file: await upload(),
      response_format,
    })
    await expect(failing).rejects.toMatchObject({ status: 400, param: 'response_format', code: 'unsupported_value' })
  })

  it('translates with the large model and refuses with turbo', async () => {
    const { client } = await start()
    const file = await upload()
    const answer = await client.audio.translations.create({ model: 'whisper-large-v3', file })
    expect(answer.text).toContain('translated audio')
    const failing = client.audio.translations.create({ model: 'whisper-large-v3-turbo', file })
    await expect(failing).rejects.toMatchObject({ status: 400, param: 'model' })
  })

  it('is not found without its prefix', async () => {
    await start()
    const response = await fetch(`${simulator?.url ?? ''}/v1/audio/transcriptions`, { method: 'POST' })
    expect(response.status).toBe(404)
  })
})

describe('P4 in openai mode', () => {
  it('gives subtitles as plain text and usage by duration', async () => {
    const { client } = await start({ mode: 'openai' })
    const file = await upload()
    const response = await client.audio.transcriptions
      .create({ model: 'whisper-1', file, response_format: 'vtt' })
      .asResponse()
    expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8')
    expect(await response.text()).toMatch(/^WEBVTT\n\n/)
    const json = await client.audio.transcriptions.create({ model: 'whisper-1', file })
    expect(json).toMatchObject({ usage: { type: 'duration' } })
  })
})

describe('P4 judges', () => {
  it('keys', async () => {
    const { url } = await start()
    const stranger = new OpenAI({ apiKey: 'bad', baseURL: url, maxRetries: 0 })
    const failing = stranger.audio.transcriptions.create({ model: 'whisper-large-v3', file: await upload() })
    await expect(failing).rejects.toMatchObject({ constructor: OpenAI.AuthenticationError, code: 'invalid_api_key' })
  })

  it('chunked bodies in strict-length mode', async () => {
    const { url } = await start({ strictLength: true })
    const form = new FormData()
    form.append('model', 'whisper-large-v3')
    form.append('file', new File([clip], 'speech.wav'))
    const whole = new Response(form)
    const type = whole.headers.get('content-type') ?? ''
    const body = Buffer.from(await whole.arrayBuffer())
    const send = (payload: Buffer | ReadableStream): Promise<Response> =>
      fetch(`${url}/audio/transcriptions`, {
        method: 'POST',
        headers: { authorization: 'Bearer gsk-test', 'content-type': type },
        body: payload,
        duplex: 'half',
      })
    expect((await send(new Blob([body]).stream() as ReadableStream)).status).toBe(411)
    expect((await send(body)).status).toBe(200)
    expect(simulator?.lastRequest?.parts?.map((part) => [part.name, part.filename])).toEqual([
      ['model', undefined],
      ['file', 'speech.wav'],
    ])
  })

  it('unknown models, unknown parts and files that are no audio', async () => {
    const { client } = await start()
    const file = await upload()
    const send = (change: object): Promise<unknown> =>
      client.audio.transcriptions.create({ model: 'whisper-large-v3', file, ...change })
    await expect(send({ model: 'missing-whisper' })).rejects.toMatchObject({ status: 404, code: 'model_not_found' })
    await expect(send({ chunking_strategy: 'auto' })).rejects.toMatchObject({ code: 'unknown_parameter' })
    await expect(send({ file: await toFile(Buffer.from('no'), 'a.wav') })).rejects.toMatchObject({ status: 400 })
    await expect(send({ prompt: '#500' })).rejects.toMatchObject({ status: 500 })
  })
})
