import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { toFile, type OpenAI } from 'openai'
import { form, sha1, TRANSCRIPTIONS, TRANSLATIONS, upload, wavOfSeconds } from '../support/audio-uploads.js'
import { OPENAI_CLIENTS } from '../support/openai-clients.js'
import { startP1Gateway, UPSTREAM_KEY, type P1Gateway } from '../support/p1-gateway.js'
import { eventsOf, sendRaw, type RawAnswer, type RawRequest } from '../support/raw-http.js'

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

/** What the upstream itself says to the same form. */
const upstreamSays = (request: RawRequest): Promise<RawAnswer> =>
  sendRaw(lab.simulator.url, { ...request, headers: { ...request.headers, authorization: `Bearer ${UPSTREAM_KEY}` } })

const TEXT = 'text/plain; charset=utf-8'
const JSON_TYPE = 'application/json'
const S = 'whisper-1'
const G = ['gpt-4o-transcribe', 'gpt-4o-mini-transcribe', 'gpt-4o-mini-transcribe-2025-12-15'] as const
const DIARIZE = 'gpt-4o-transcribe-diarize'

const FORMATS = [
  [S, 'json', JSON_TYPE],
  [S, 'text', TEXT],
  [S, 'srt', TEXT],
  [S, 'vtt', TEXT],
  [S, 'verbose_json', JSON_TYPE],
  ...G.flatMap((model) => [[model, 'json', JSON_TYPE] as const, [model, 'text', TEXT] as const]),
  [DIARIZE, 'json', JSON_TYPE],
  [DIARIZE, 'text', TEXT],
  [DIARIZE, 'diarized_json', JSON_TYPE],
] as const

describe('a transcription', () => {
  it.each(FORMATS)('of %s as %s is, byte for byte, what the upstream says', async (model, format, contentType) => {
    const request = upload(
      form(
        [
          ['model', model],
          ['response_format', format],
        ],
        recording,
      ),
    )
    const answer = await sendRaw(lab.gateway.url, request)
    expect(answer.status).toBe(200)
    expect(answer.headers['content-type']).toBe(contentType)
    expect(answer.headers['content-length']).toBe(String(answer.body.length))
    expect(answer.body).toEqual((await upstreamSays(request)).body)
    expect(answer.text).toContain('It lasts 3.00 seconds.')
    expect(lab.simulator.violations).toEqual([])
  })

  it.each([S, ...G, DIARIZE])('of %s is JSON when no format is asked for', async (model) => {
    const answer = await sendRaw(lab.gateway.url, upload(form([['model', model]], recording)))
    expect(JSON.parse(answer.text)).toMatchObject({ text: heard })
    expect(answer.headers['content-type']).toBe(JSON_TYPE)
  })

  it.each([
    ['words', ['word']],
    ['segments', ['segment']],
    ['words and segments', ['word', 'segment']],
  ])('as verbose_json has the %s asked for', async (_name, granularities) => {
    const request = upload(
      form(
        [
          ['model', S],
          ...granularities.map((value) => ['timestamp_granularities[]', value] as const),
          ['response_format', 'verbose_json'],
        ],
        recording,
      ),
    )
    const answer = await sendRaw(lab.gateway.url, request)
    const verbose = JSON.parse(answer.text) as Record<string, unknown>
    expect({ words: 'words' in verbose, segments: 'segments' in verbose }).toEqual({
      words: granularities.includes('word'),
      segments: granularities.includes('segment'),
    })
    expect(verbose).toMatchObject({ task: 'transcribe', language: 'english', duration: 3, text: heard })
    expect(answer.body).toEqual((await upstreamSays(request)).body)
  })

  it.each([
    ['gpt-4o-transcribe', 'json', []],
    ['gpt-4o-mini-transcribe', 'json', [['include[]', 'logprobs'] as const]],
    ['gpt-4o-transcribe', 'text', []],
    [DIARIZE, 'json', []],
    [DIARIZE, 'diarized_json', []],
  ])('of %s as %s streams, frame for frame, what the upstream sends', async (model, format, more) => {
    const request = upload(
      form([['model', model], ['stream', 'true'], ['response_format', format], ...more], recording),
    )
    const answer = await sendRaw(lab.gateway.url, request)
    expect(answer.headers['content-type']).toBe('text/event-stream; charset=utf-8')
    expect(answer.headers).not.toHaveProperty('content-length')
    expect(answer.text).toBe((await upstreamSays(request)).text)
    expect(eventsOf(answer.text).at(-1)).toBe('[DONE]')
    expect(answer.text.replaceAll('\r\n', '')).not.toContain('\n')
    const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
    expect(line).toMatchObject({ usage: { estimated: false, units: { input_tokens: 30 } } })
  })

  it('of class S is an ordinary answer when a stream is asked for', async () => {
    const answer = await sendRaw(
      lab.gateway.url,
      upload(
        form(
          [
            ['model', S],
            ['stream', 'true'],
          ],
          recording,
        ),
      ),
    )
    expect(answer.headers['content-type']).toBe(JSON_TYPE)
    expect(JSON.parse(answer.text)).toEqual({ text: heard, usage: { type: 'duration', seconds: 3 } })
  })

  it('tells nobody about the account of the gateway, and carries its own request id and the limits', async () => {
    const { headers } = await sendRaw(lab.gateway.url, upload(form([['model', S]], recording)))
    expect(JSON.stringify(headers)).not.toMatch(/organization|project|simulated|cloudflare|set-cookie/)
    expect(headers['x-request-id']).toMatch(/^req_/)
    expect(headers['x-ratelimit-limit-requests']).toBeDefined()
  })
})

describe.each([
  ['before', (fields: readonly (readonly [string, string])[]) => form(fields, recording).toSorted(byFileLast)],
  ['behind', (fields: readonly (readonly [string, string])[]) => form(fields, recording)],
])('with its fields %s the file', (_place, parts) => {
  it('a form is understood', async () => {
    const answer = await sendRaw(
      lab.gateway.url,
      upload(
        parts([
          ['model', 'gpt-4o-transcribe'],
          ['response_format', 'text'],
        ]),
      ),
    )
    expect(answer.text).toBe(`${heard}\n`)
  })
})

const byFileLast = (a: { head: string }, b: { head: string }): number =>
  Number(a.head.includes('name="file"')) - Number(b.head.includes('name="file"'))

describe('a translation', () => {
  const translated = heard.replace('The audio', 'The translated audio')

  it.each([
    ['json', JSON_TYPE],
    ['text', TEXT],
    ['srt', TEXT],
    ['vtt', TEXT],
    ['verbose_json', JSON_TYPE],
  ])('as %s is, byte for byte, what the upstream says', async (format, contentType) => {
    const request = upload(
      form(
        [
          ['model', S],
          ['response_format', format],
        ],
        recording,
      ),
      TRANSLATIONS,
    )
    const answer = await sendRaw(lab.gateway.url, request)
    expect(answer.status).toBe(200)
    expect(answer.headers['content-type']).toBe(contentType)
    expect(answer.body).toEqual((await upstreamSays(request)).body)
    expect(answer.text).toContain('The translated audio')
  })

  it('uses the class S model when none is named, and tells the upstream so', async () => {
    const answer = await sendRaw(lab.gateway.url, upload(form([], recording), TRANSLATIONS))
    expect(JSON.parse(answer.text)).toMatchObject({ text: translated })
    expect(lab.simulator.lastRequest?.parts?.find(({ name }) => name === 'model')?.value).toBe('whisper-1')
    expect(lab.simulator.lastRequest?.path).toBe(TRANSLATIONS)
    expect(await lab.gateway.logLine(String(answer.headers['x-request-id']))).toMatchObject({ model: 'whisper-1' })
  })

  it('needs the access to that default model', async () => {
    const limited = await startP1Gateway({ keys: [{ id: 'limited', key: 'limited-key', models: ['tts-*'] }] })
    try {
      const headers = { authorization: 'Bearer limited-key' }
      const answer = await sendRaw(limited.gateway.url, upload(form([], recording), TRANSLATIONS, headers))
      expect(answer.status).toBe(403)
      expect(limited.simulator.requests).toEqual([])
    } finally {
      await limited.close()
    }
  })
})

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
