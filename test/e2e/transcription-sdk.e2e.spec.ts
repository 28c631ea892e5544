import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { toFile, type OpenAI } from 'openai'
import { sha1, TRANSCRIPTIONS, wavOfSeconds } from '../support/audio-uploads.js'
import { OPENAI_CLIENTS } from '../support/openai-clients.js'
import { startP1Gateway, type P1Gateway } from '../support/p1-gateway.js'

let lab: P1Gateway

beforeAll(async () => {
  lab = await startP1Gateway()
})
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

const recording = wavOfSeconds(3)
const heard = `The audio has checksum ${sha1(recording).slice(0, 12)}. It lasts 3.00 seconds.`
const file = (): Promise<File> => toFile(recording, 'speech.wav', { type: 'audio/wav' })

const S = 'whisper-1'
const DIARIZE = 'gpt-4o-transcribe-diarize'

describe.each(OPENAI_CLIENTS)('%s', (_name, makeClient) => {
  let client: OpenAI
  beforeAll(() => {
    client = makeClient(lab.gateway)
  })
  const transcriptions = (): OpenAI['audio']['transcriptions'] => client.audio.transcriptions

  it('reads JSON of class S and of class G with its usage and the request id', async () => {
    const standard = await transcriptions().create({ model: S, file: await file() })
    expect(standard).toMatchObject({ text: heard, usage: { type: 'duration', seconds: 3 } })
    const generated = await transcriptions().create({ model: 'gpt-4o-transcribe', file: await file() })
    expect(generated).toMatchObject({ text: heard, usage: { type: 'tokens', input_tokens: 30 } })
    const { request_id: requestId } = await transcriptions()
      .create({ model: S, file: await file() })
      .withResponse()
    expect(requestId).toMatch(/^req_/)
  })

  it.each(['text', 'srt', 'vtt'] as const)('gets %s as a string', async (format) => {
    const text: unknown = await transcriptions().create({ model: S, file: await file(), response_format: format })
    expect(typeof text).toBe('string')
    expect(text).toContain(heard.slice(0, heard.indexOf('.')))
    const translation: unknown = await client.audio.translations.create({
      model: S,
      file: await file(),
      response_format: format,
    })
    expect(translation).toContain('The translated audio')
  })

  it('reads verbose_json with words and segments', async () => {
    const verbose = await transcriptions().create({
      model: S,
      file: await file(),
      response_format: 'verbose_json',
      timestamp_granularities: ['word', 'segment'],
    })
    expect(verbose.segments?.map(({ id, text }) => [id, text])).toEqual([
      [0, ` ${heard.slice(0, heard.indexOf('.') + 1)}`],
      [1, ' It lasts 3.00 seconds.'],
    ])
    expect(verbose.words?.at(0)).toMatchObject({ word: 'The', start: 0 })
  })

  it('reads a diarized answer with the names of its speakers', async () => {
    const body = {
      model: DIARIZE,
      file: await file(),
      response_format: 'diarized_json',
      chunking_strategy: 'auto',
      known_speaker_names: ['Ann'],
      known_speaker_references: ['data:audio/wav;base64,AAAA'],
    } as unknown as { model: string; file: File; response_format: 'diarized_json' }
    const diarized: unknown = await transcriptions().create(body)
    expect(diarized).toMatchObject({ segments: [{ speaker: 'Ann' }, { speaker: 'B' }] })
  })

  it('streams a transcription to its last event', async () => {
    const stream = await transcriptions().create({ model: 'gpt-4o-transcribe', file: await file(), stream: true })
    let text = ''
    let last: string | undefined
    for await (const event of stream) {
      if (event.type === 'transcript.text.delta') text += event.delta
      last = event.type
    }
    expect(text).toBe(heard)
    expect(last).toBe('transcript.text.done')
  })

  it('reads a translation', async () => {
    const translation = await client.audio.translations.create({ model: S, file: await file() })
    expect(translation.text).toBe(heard.replace('The audio', 'The translated audio'))
  })

  it.each([
    [{ model: 'gpt-4o-transcribe', response_format: 'srt' }, 400, 'unsupported_value', 'response_format'],
    [{ model: 'whisper-1', language: 'xx-bad' }, 400, 'invalid_language_format', 'language'],
    [{ model: 'no-such-model' }, 400, 'model_not_found', 'model'],
  ] as const)('throws a BadRequestError for %j', async (fields, status, code, param) => {
    const call = transcriptions().create({ file: await file(), ...fields })
    await expect(call).rejects.toMatchObject({ status, code, param, type: 'invalid_request_error' })
    await call.catch((error: unknown) => {
      expect((error as Error).constructor.name).toBe('BadRequestError')
    })
    expect(lab.simulator.requests).toEqual([])
  })

  it('does not repeat what the upstream refused, and learns that a failed channel is a 500', async () => {
    const patient = makeClient(lab.gateway, { maxRetries: 2 })
    lab.simulator.queueFault('401')
    const call = patient.audio.transcriptions.create({ model: S, file: await file() })
    await expect(call).rejects.toMatchObject({ status: 500, code: 'upstream_failed', type: 'upstream_error' })
    expect(lab.simulator.requests).toHaveLength(1)
    expect(lab.simulator.requests[0]?.path).toBe(TRANSCRIPTIONS)
  })
})
