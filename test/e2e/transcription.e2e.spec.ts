import { afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { type OpenAI, toFile } from 'openai'
import { eventually } from '../support/eventually.js'
import { expectRefused, type Refusal } from '../support/failing-calls.js'
import {
  errorOf,
  eventsOf,
  lastRequest,
  type RawAnswer,
  type RawRequest,
  sendRaw,
  TEST_KEY,
} from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import {
  type P1Gateway,
  startP1Gateway,
  startP4Gateway,
  UPSTREAM_KEY,
  withLab,
  withP1Gateway,
} from '../support/provider-gateways.js'
import { OPENAI_CLIENTS } from '../support/sdk-clients.js'
import {
  BOUNDARY,
  fieldPart,
  filePart,
  form,
  type FormFields,
  MULTIPART,
  multipartBytes,
  type RawPart,
  sample,
  sha1,
  spoolsLeft,
  TRANSCRIPTIONS,
  TRANSLATIONS,
  upload,
  wavOf,
  wavOfSeconds,
} from '../support/upload-server.js'

const TEXT = 'text/plain; charset=utf-8'
const JSON_TYPE = 'application/json'
const S = 'whisper-1'
const DIARIZE = 'gpt-4o-transcribe-diarize'

const recording = wavOfSeconds(3)
const checksum = sha1(recording).slice(0, 12)
const heard = `The audio has checksum ${checksum}. It lasts 3.00 seconds.`

/** The parts as they reached the upstream: name and value, the file's as its digest. */
const receivedBy = ({ simulator }: P1Gateway): (readonly [string, string | undefined])[] =>
  (simulator.lastRequest?.parts ?? []).map(({ name, value, sha1: digest }) => [name, value ?? digest])

const keys = [
  { id: 'test', key: TEST_KEY },
  { id: 'limited', key: 'limited-gateway-key', models: ['tts-*'] },
]

const FILE_BYTES = 300_000
const BODY_BYTES = 400_000
const bad = (code: string | null, param: string | null = null): Refusal => ({ status: 400, code, param })

describe('transcription', () => {
  let lab: P1Gateway
  shareLab(async () => (lab = await startP1Gateway({ keys })))

  /** What the upstream itself says to the same form. */
  const upstreamSays = (request: RawRequest): Promise<RawAnswer> =>
    sendRaw(lab.simulator.url, { ...request, headers: { ...request.headers, authorization: `Bearer ${UPSTREAM_KEY}` } })

  const send = async (parts: readonly RawPart[], path = TRANSCRIPTIONS): Promise<void> => {
    const answer = await sendRaw(lab.gateway.url, upload(parts, path))
    expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 200 })
  }

  const G = ['gpt-4o-transcribe', 'gpt-4o-mini-transcribe', 'gpt-4o-mini-transcribe-2025-12-15'] as const

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
      const request = upload(form({ model, response_format: format }, recording))
      const answer = await sendRaw(lab.gateway.url, request)
      expect(answer.status).toBe(200)
      expect(answer.headers['content-type']).toBe(contentType)
      expect(answer.headers['content-length']).toBe(String(answer.body.length))
      expect(answer.body).toEqual((await upstreamSays(request)).body)
      expect(answer.text).toContain('It lasts 3.00 seconds.')
      expect(lab.simulator.violations).toEqual([])
    })

    it.each([S, ...G, DIARIZE])('of %s is JSON when no format is asked for', async (model) => {
      const answer = await sendRaw(lab.gateway.url, upload(form({ model }, recording)))
      expect(JSON.parse(answer.text)).toMatchObject({ text: heard })
      expect(answer.headers['content-type']).toBe(JSON_TYPE)
    })

    it.each([
      ['words', ['word']],
      ['segments', ['segment']],
      ['words and segments', ['word', 'segment']],
    ])('as verbose_json has the %s asked for', async (_name, granularities) => {
      const fields = { model: S, 'timestamp_granularities[]': granularities, response_format: 'verbose_json' }
      const request = upload(form(fields, recording))
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
      ['gpt-4o-transcribe', 'json', {}],
      ['gpt-4o-mini-transcribe', 'json', { 'include[]': 'logprobs' }],
      ['gpt-4o-transcribe', 'text', {}],
      [DIARIZE, 'json', {}],
      [DIARIZE, 'diarized_json', {}],
    ])('of %s as %s streams, frame for frame, what the upstream sends', async (model, format, more) => {
      const request = upload(form({ model, stream: 'true', response_format: format, ...more }, recording))
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
      const answer = await sendRaw(lab.gateway.url, upload(form({ model: S, stream: 'true' }, recording)))
      expect(answer.headers['content-type']).toBe(JSON_TYPE)
      expect(JSON.parse(answer.text)).toEqual({ text: heard, usage: { type: 'duration', seconds: 3 } })
    })

    it('discloses nothing about the gateway’s account, and has its own request id and the limits', async () => {
      const { headers } = await sendRaw(lab.gateway.url, upload(form({ model: S }, recording)))
      expect(JSON.stringify(headers)).not.toMatch(/organization|project|simulated|cloudflare|set-cookie/)
      expect(headers['x-request-id']).toMatch(/^req_/)
      expect(headers['x-ratelimit-limit-requests']).toBeDefined()
    })
  })

  describe.each(['before', 'behind'])('with its fields %s the file', (place) => {
    it('a form is understood', async () => {
      const file = filePart(recording)
      const fields = [fieldPart('model', 'gpt-4o-transcribe'), fieldPart('response_format', 'text')]
      const request = upload(place === 'before' ? [...fields, file] : [file, ...fields])
      expect((await sendRaw(lab.gateway.url, request)).text).toBe(`${heard}\n`)
    })
  })

  describe('a translation', () => {
    const translated = heard.replace('The audio', 'The translated audio')

    it.each([
      ['json', JSON_TYPE],
      ['text', TEXT],
      ['srt', TEXT],
      ['vtt', TEXT],
      ['verbose_json', JSON_TYPE],
    ])('as %s is, byte for byte, what the upstream says', async (format, contentType) => {
      const request = upload(form({ model: S, response_format: format }, recording), TRANSLATIONS)
      const answer = await sendRaw(lab.gateway.url, request)
      expect(answer.status).toBe(200)
      expect(answer.headers['content-type']).toBe(contentType)
      expect(answer.body).toEqual((await upstreamSays(request)).body)
      expect(answer.text).toContain('The translated audio')
    })

    it('uses the class S model when none is named, and tells the upstream so', async () => {
      const answer = await sendRaw(lab.gateway.url, upload(form({}, recording), TRANSLATIONS))
      expect(JSON.parse(answer.text)).toMatchObject({ text: translated })
      expect(lab.simulator.lastRequest?.parts?.find(({ name }) => name === 'model')?.value).toBe('whisper-1')
      expect(lab.simulator.lastRequest?.path).toBe(TRANSLATIONS)
      expect(await lab.gateway.logLine(String(answer.headers['x-request-id']))).toMatchObject({ model: 'whisper-1' })
    })

    it('needs the access to that default model', async () => {
      const headers = { authorization: 'Bearer limited-gateway-key' }
      const answer = await sendRaw(lab.gateway.url, upload(form({}, recording), TRANSLATIONS, headers))
      expect(answer.status).toBe(403)
      expect(lab.simulator.requests).toEqual([])
    })
  })

  describe.each(OPENAI_CLIENTS)('%s', (_name, makeClient) => {
    const file = (): Promise<File> => toFile(recording, 'speech.wav', { type: 'audio/wav' })
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

    it('has its form relayed part for part, in the order it chose', async () => {
      const transcribe = async (at: { url: string }, apiKey: string): Promise<unknown> =>
        await makeClient(at, { apiKey }).audio.transcriptions.create({
          file: await file(),
          model: 'gpt-4o-transcribe',
          include: ['logprobs'],
          chunking_strategy: { type: 'server_vad', threshold: 0.5, prefix_padding_ms: 300 },
          temperature: 0.2,
          language: 'en',
        })
      // The old client ends its body with an empty line, which the strict simulator refuses after recording the parts.
      await transcribe(lab.simulator, UPSTREAM_KEY).catch(() => undefined)
      const direct = receivedBy(lab)
      await transcribe(lab.gateway, TEST_KEY)
      expect(receivedBy(lab)).toEqual(direct)
      expect(direct).toHaveLength(8)
      expect(direct).toContainEqual(['file', sha1(recording)])
      expect(direct).toContainEqual(['chunking_strategy[prefix_padding_ms]', '300'])
      expect(lab.simulator.requests.at(-1)?.violations).toEqual([])
    })
  })

  describe('the file', () => {
    it.each([
      ['tone.mp3', 'mp3', 'audio/mpeg'],
      ['tone.mp2', 'mpga', 'audio/mpeg'],
      ['tone.wav', 'wav', 'audio/wav'],
      ['tone.flac', 'flac', 'audio/flac'],
      ['tone-opus.ogg', 'ogg', 'audio/ogg'],
      ['tone-vorbis.ogg', 'ogg', 'audio/ogg'],
      ['tone.m4a', 'm4a', 'audio/mp4'],
      ['tone.mp4', 'mp4', 'audio/mp4'],
      ['clip.mp4', 'mp4', 'video/mp4'],
      ['tone.webm', 'webm', 'audio/webm'],
      ['tone.mpeg', 'mpeg', 'audio/mpeg'],
    ])('%s arrives whole, with a generated name that ends in .%s', async (name, extension, contentType) => {
      const bytes = sample(name)
      await sendRaw(lab.gateway.url, upload([filePart(bytes, name), fieldPart('model', 'whisper-1')]))
      expect(lab.simulator.lastRequest?.parts?.[0]).toMatchObject({
        name: 'file',
        filename: `audio.${extension}`,
        contentType,
        size: bytes.length,
        sha1: sha1(bytes),
      })
    })

    it.each([
      ['../../etc/passwd.wav', 'a path'],
      ['C:\\\\Users\\\\x\\\\secret.wav', 'a path of Windows'],
      ['a%0D%0AX-Injected: 1.wav', 'escaped line ends'],
      ['speech.mp3', 'the wrong extension'],
      ['speech', 'no extension'],
      ['Ünï 日本.wav', 'other scripts'],
    ])('called %s (%s) gets a name that shows nothing of it', async (filename) => {
      await send([filePart(recording, filename), fieldPart('model', 'whisper-1')])
      const [part] = lab.simulator.lastRequest?.parts ?? []
      expect(part?.rawDisposition).toMatch(/^form-data; name="file"; filename="audio\.wav"$/)
      expect(part?.sha1).toBe(sha1(recording))
    })

    it.each([
      'Content-Disposition: form-data; name=file; filename=a.wav',
      "Content-Disposition: form-data; name=file; filename=Assets\\a.wav; filename*=utf-8''Assets%5Ca.wav",
      'content-disposition: form-data; filename="a.wav"; name="file"\r\ncontent-type: application/octet-stream',
      'Content-Disposition: form-data; name="file"; filename*=UTF-8\'\'a%20b.wav',
    ])('is understood when its part begins with %j', async (head) => {
      await send([
        { head, content: recording },
        { head: 'Content-Disposition: form-data; name=model', content: 'whisper-1' },
        {
          head: 'Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=language',
          content: 'en',
        },
      ])
      expect(receivedBy(lab)).toEqual([
        ['file', sha1(recording)],
        ['model', 'whisper-1'],
        ['language', 'en'],
      ])
    })

    it('may be the smallest that upstreams read, one above the memory of the spool, and one in between', async () => {
      for (const bytes of [sample('tone.wav'), wavOfSeconds(30), wavOfSeconds(33), wavOfSeconds(200)]) {
        await send(form({ model: 'whisper-1' }, bytes))
        expect(receivedBy(lab)[0]).toEqual(['file', sha1(bytes)])
      }
    })
  })

  const EVERY_FIELD = [
    ['temperature', '0.20'],
    ['include[]', 'logprobs'],
    ['chunking_strategy[type]', 'server_vad'],
    ['language', 'en'],
    ['chunking_strategy[threshold]', '0.50'],
    ['model', 'gpt-4o-transcribe'],
    ['prompt', 'naïve 日本語 \r\n second line "quoted"; name=x'],
    ['response_format', 'json'],
    ['stream', 'false'],
    ['chunking_strategy[prefix_padding_ms]', '300'],
  ] as const

  const DIARIZED = [
    ['model', 'gpt-4o-transcribe-diarize'],
    ['known_speaker_names[]', 'Zoe'],
    ['known_speaker_references[]', 'data:audio/wav;base64,AAAA'],
    ['known_speaker_names[]', 'Ann'],
    ['known_speaker_references[]', 'data:audio/wav;base64,BBBB'],
    ['response_format', 'diarized_json'],
    ['chunking_strategy', '{"type":"server_vad", "threshold":0.50}'],
  ] as const

  const VERBOSE = [
    ['response_format', 'verbose_json'],
    ['timestamp_granularities[]', 'segment'],
    ['model', 'whisper-1'],
    ['timestamp_granularities[]', 'word'],
  ] as const

  describe('the parts of a form', () => {
    describe.each([
      ['every field', EVERY_FIELD],
      ['repeated fields and an object as JSON', DIARIZED],
      ['repeated fields apart', VERBOSE],
    ] as const)('with %s', (_name, fields) => {
      it.each([0, 1, Math.floor(fields.length / 2), fields.length])(
        'reach the upstream in their order and spelling when the file is number %i',
        async (place) => {
          const parts = fields.map(([name, value]) => fieldPart(name, value))
          parts.splice(place, 0, filePart(recording))
          await send(parts)
          const expected: (readonly [string, string])[] = [...fields]
          expected.splice(place, 0, ['file', sha1(recording)])
          expect(receivedBy(lab)).toEqual(expected)
          expect(lab.simulator.violations).toEqual([])
        },
      )
    })

    it('reach the upstream in any order a caller chooses', async () => {
      const all: RawPart[] = [filePart(recording), ...EVERY_FIELD.map(([name, value]) => fieldPart(name, value))]
      await fc.assert(
        fc.asyncProperty(fc.shuffledSubarray(all, { minLength: all.length }), async (parts) => {
          await send(parts)
          const order = parts.map(({ head }) => /name="([^"]+)"/.exec(head)?.[1])
          expect(receivedBy(lab).map(([name]) => name)).toEqual(order)
        }),
        { numRuns: 20 },
      )
    })

    it('of a translation travel on as well', async () => {
      const fields = { prompt: 'Names: Zoë', temperature: '1', model: 'whisper-1' }
      await send(form(fields, recording), TRANSLATIONS)
      expect(receivedBy(lab)).toEqual([['file', sha1(recording)], ...Object.entries(fields)])
    })

    it('are joined by the default model of a translation at the end', async () => {
      await send(form({ temperature: '0' }, recording), TRANSLATIONS)
      expect(receivedBy(lab)).toEqual([
        ['file', sha1(recording)],
        ['temperature', '0'],
        ['model', 'whisper-1'],
      ])
    })

    it('carry the name the channel gives the model, where the caller named it', async () => {
      await withP1Gateway({ channel: { modelMap: { 'whisper-1': 'whisper-mapped' } } }, async (mapped) => {
        const parts = [fieldPart('language', 'en'), fieldPart('model', 'whisper-1'), filePart(recording)]
        await sendRaw(mapped.gateway.url, upload(parts))
        expect(receivedBy(mapped)).toEqual([
          ['language', 'en'],
          ['model', 'whisper-mapped'],
          ['file', sha1(recording)],
        ])
      })
    })
  })

  describe('the request to the upstream', () => {
    it('has a length and no chunks, the key of the channel, and nothing of the caller', async () => {
      const headers = {
        'user-agent': 'caller-canary',
        'x-stainless-lang': 'js',
        'openai-organization': 'org-canary',
        cookie: 'canary=1',
      }
      await sendRaw(lab.gateway.url, upload(form({ model: 'whisper-1' }, recording), TRANSCRIPTIONS, headers))
      const { headers: seen, receivedBytes } = lastRequest(lab.simulator)
      expect(seen['content-length']).toBe(String(receivedBytes))
      expect(seen).not.toHaveProperty('transfer-encoding')
      expect(seen).not.toHaveProperty('expect')
      expect(seen['authorization']).toBe(`Bearer ${UPSTREAM_KEY}`)
      expect(seen['content-type']).toMatch(/^multipart\/form-data; boundary=\S+$/)
      expect(JSON.stringify(seen)).not.toMatch(
        /canary=|caller-canary|org-canary|stainless|spec-boundary|test-gateway-key/,
      )
    })
  })

  /** The upstream's next answer. */
  const answering = (body: string): void => {
    lab.simulator.queueFault({ kind: 'status', status: 200, headers: { 'content-type': 'application/json' }, body })
  }
  const ask = (model: string, file: Buffer): Promise<RawAnswer> =>
    sendRaw(lab.gateway.url, upload(form({ model }, file)))

  const logged = async (answer: RawAnswer): Promise<unknown> =>
    (await lab.gateway.logLine(String(answer.headers['x-request-id'])))['usage']

  describe('a class G answer without usage', () => {
    it.each([
      [60, 1000],
      [6, 100],
      [90, 1500],
      [1, 17],
    ])('for %i seconds of audio gets one of %i audio tokens, marked as estimated', async (seconds, audioTokens) => {
      answering('{"text":"Hello there, you.","logprobs":[{"logprob":-0.10}],"seed":12345678901234567890}')
      const answer = await ask('gpt-4o-transcribe', wavOfSeconds(seconds))
      const usage = {
        type: 'tokens',
        total_tokens: audioTokens + 5,
        input_tokens: audioTokens,
        input_token_details: { text_tokens: 0, audio_tokens: audioTokens },
        output_tokens: 5,
        estimated: true,
      }
      // Everything else keeps its spelling.
      const kept = '{"text":"Hello there, you.","logprobs":[{"logprob":-0.10}],"seed":12345678901234567890'
      expect(answer.text).toBe(`${kept},"usage":${JSON.stringify(usage)}}`)
      expect(answer.headers['content-length']).toBe(String(answer.body.length))
      expect(answer.headers['x-gateway-usage']).toBe('estimated')
      expect(await logged(answer)).toEqual({
        units: { total_tokens: audioTokens + 5, input_tokens: audioTokens, output_tokens: 5 },
        estimated: true,
      })
    })

    it('with a usage of null gets one in its place, and so does a diarized one', async () => {
      answering('{"usage":null,"text":"Hi"}')
      const answer = await ask('gpt-4o-mini-transcribe', wavOfSeconds(6))
      expect(answer.text).toMatch(/^\{"usage":\{"type":"tokens",.*\},"text":"Hi"\}$/)
      answering('{"text":"Hi"}')
      expect((await ask('gpt-4o-transcribe-diarize', wavOfSeconds(6))).text).toContain('"audio_tokens":100')
    })

    it.each(['tone.mp3', 'tone.flac', 'tone-opus.ogg', 'tone.m4a', 'tone.webm'])(
      'gets one from the length of %s as well',
      async (name) => {
        answering('{"text":"Hi"}')
        const parts = [filePart(sample(name), name), fieldPart('model', 'gpt-4o-transcribe')]
        const { text } = await sendRaw(lab.gateway.url, upload(parts))
        const { usage } = JSON.parse(text) as { usage: { input_tokens: number } }
        // Half a second and a little, at 1,000 tokens a minute.
        expect(usage.input_tokens).toBeGreaterThanOrEqual(8)
        expect(usage.input_tokens).toBeLessThanOrEqual(10)
      },
    )

    it('is left alone when the file does not tell how long it is', async () => {
      answering('{"text":"Hi"}')
      const parts = [filePart(sample('tone-live.webm'), 'a.webm'), fieldPart('model', 'gpt-4o-transcribe')]
      const answer = await sendRaw(lab.gateway.url, upload(parts))
      expect(answer.text).toBe('{"text":"Hi"}')
      expect(answer.headers).not.toHaveProperty('x-gateway-usage')
    })
  })

  describe('an answer with usage', () => {
    it.each([
      '{"text":"Hi","usage":{"type":"tokens","total_tokens":0,"input_tokens":0,"output_tokens":0}}',
      '{"text":"Hi","usage":{"type":"tokens","total_tokens":28,"input_tokens":17,"output_tokens":11}}',
    ])('is the truth: %s', async (body) => {
      answering(body)
      const answer = await ask('gpt-4o-transcribe', wavOfSeconds(60))
      expect(answer.text).toBe(body)
      expect(answer.headers).not.toHaveProperty('x-gateway-usage')
      expect(await logged(answer)).toMatchObject({ estimated: false, units: { total_tokens: expect.any(Number) } })
    })
  })

  describe('a class S answer', () => {
    it('without usage gets none; the length of the audio is logged', async () => {
      answering('{"text":"Hi"}')
      const answer = await ask('whisper-1', wavOfSeconds(6))
      expect(answer.text).toBe('{"text":"Hi"}')
      expect(await logged(answer)).toEqual({ units: { audio_seconds: 6 }, estimated: false })
    })
  })
})

describe('transcription p4', () => {
  const MODEL = 'whisper-large-v3'

  let lab: P1Gateway
  shareLab(async () => (lab = await startP4Gateway({ simulator: { strictLength: true } })))

  const SRT = `1
00:00:00,000 --> 00:00:01,860
The audio has checksum ${checksum}.

2
00:00:01,860 --> 00:00:03,000
It lasts 3.00 seconds.


`
  const VTT = `WEBVTT

00:00:00.000 --> 00:00:01.860
The audio has checksum ${checksum}.

00:00:01.860 --> 00:00:03.000
It lasts 3.00 seconds.

`

  const ask = (fields: FormFields, path = TRANSCRIPTIONS): Promise<RawAnswer> =>
    sendRaw(lab.gateway.url, upload(form({ model: MODEL, ...fields }, recording), path))

  describe('a transcription by P4', () => {
    it.each([
      ['srt', SRT],
      ['vtt', VTT],
    ])('as %s is rendered here from the segments of verbose_json', async (format, expected) => {
      const answer = await ask({ response_format: format, language: 'en' })
      expect(answer.status).toBe(200)
      expect(answer.headers['content-type']).toBe(TEXT)
      expect(answer.text).toBe(expected)
      expect(receivedBy(lab)).toEqual([
        ['file', sha1(recording)],
        ['model', MODEL],
        ['response_format', 'verbose_json'],
        ['language', 'en'],
      ])
      expect(lab.simulator.violations).toEqual([])
    })

    it('as subtitles asks for segments, whatever granularities the caller named', async () => {
      const fields = [
        fieldPart('timestamp_granularities[]', 'word'),
        fieldPart('response_format', 'srt'),
        fieldPart('timestamp_granularities[]', 'word'),
      ]
      const answer = await sendRaw(lab.gateway.url, upload([...form({ model: MODEL }, recording), ...fields]))
      expect(answer.text).toBe(SRT)
      expect(receivedBy(lab).map(([name]) => name)).toEqual(['file', 'model', 'response_format'])
    })

    it('as text is plain text, and as json the words of the upstream', async () => {
      const text = await ask({ response_format: 'text' })
      expect([text.headers['content-type'], text.text]).toEqual([
        TEXT,
        ` The audio has checksum ${checksum}. It lasts 3.00 seconds.\n`,
      ])
      const json = await ask({})
      expect(json.headers['content-type']).toBe('application/json')
      expect(JSON.parse(json.text)).toEqual({
        text: ` The audio has checksum ${checksum}. It lasts 3.00 seconds.`,
        x_groq: { id: expect.stringMatching(/^req_/) },
      })
    })

    it('as verbose_json keeps the words that were asked for', async () => {
      const answer = await ask({ response_format: 'verbose_json', 'timestamp_granularities[]': 'word' })
      expect(JSON.parse(answer.text)).toMatchObject({ language: 'English', words: expect.any(Array) })
      expect(answer.text).not.toContain('"segments"')
    })

    it('is sent with a length to a prefixed path', async () => {
      expect((await ask({})).status).toBe(200)
      const { path, headers, receivedBytes } = lastRequest(lab.simulator)
      expect(path).toBe(`/openai${TRANSCRIPTIONS}`)
      expect(headers['content-length']).toBe(String(receivedBytes))
      expect(headers).not.toHaveProperty('transfer-encoding')
    })

    it('logs the seconds of audio it was given', async () => {
      for (const format of ['json', 'text', 'srt']) {
        const answer = await ask({ response_format: format })
        const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
        expect(line).toMatchObject({ channel: 'first', usage: { units: { audio_seconds: 3 }, estimated: false } })
      }
    })
  })

  describe('a translation by P4', () => {
    it.each(['json', 'text', 'verbose_json', 'srt', 'vtt'])('as %s is English', async (format) => {
      const answer = await ask({ response_format: format }, TRANSLATIONS)
      expect(answer.status).toBe(200)
      expect(answer.text).toContain(`The translated audio has checksum ${checksum}.`)
      expect(lab.simulator.lastRequest?.path).toBe(`/openai${TRANSLATIONS}`)
    })
  })

  describe('a failure of P4', () => {
    it.each([
      ['srt', '400', 400],
      ['srt', '401', 500],
      ['vtt', '500', 500],
      ['srt', 'html', 500],
      ['vtt', 'malformed', 500],
      ['srt', 'empty', 500],
      ['vtt', 'cut', 500],
      ['srt', 'cleancut', 500],
      ['text', 'html', 500],
      ['json', 'malformed', 500],
      ['text', 'cut', 500],
    ] as const)('before an answer as %s with %s is an error in JSON', async (format, fault, status) => {
      lab.simulator.queueFault(fault)
      const answer = await ask({ response_format: format })
      expect(answer.status).toBe(status)
      expect(answer.headers['content-type']).toBe('application/json')
      expect(errorOf(answer)).toMatchObject({ message: expect.any(String), type: expect.any(String) })
      expect(answer.text).not.toContain('-->')
    })

    it('that appears as a response without segments is reported as one', async () => {
      const body = '{"task":"transcribe","text":"Hello"}'
      lab.simulator.queueFault({ kind: 'status', status: 200, headers: { 'content-type': 'application/json' }, body })
      const answer = await ask({ response_format: 'srt' })
      expect([answer.status, errorOf(answer).code]).toEqual([500, 'upstream_failed'])
    })
  })

  it('a class G model is refused before P4 is asked', async () => {
    const parts = form({ model: 'gpt-4o-transcribe' }, recording)
    await expectRefused(lab, upload(parts), { status: 400, code: 'model_not_found', param: 'model' })
  })

  describe.each(OPENAI_CLIENTS)('%s', (_name, makeClient) => {
    it.each([
      ['srt', SRT],
      ['vtt', VTT],
    ] as const)('gets %s as a string from a host that knows none', async (response_format, expected) => {
      const file = await toFile(recording, 'speech.wav')
      const text: unknown = await makeClient(lab.gateway).audio.transcriptions.create({
        model: MODEL,
        file,
        response_format,
      })
      expect(text).toBe(expected)
    })
  })

  it('a whisper host with subtitles of its own is treated alike', async () => {
    await withLab(startP4Gateway({ simulator: { mode: 'openai' } }), async (own) => {
      const request = upload(form({ model: 'whisper-1', response_format: 'srt' }, recording))
      expect((await sendRaw(own.gateway.url, request)).text).toBe(SRT)
    })
  })
})

describe('transcription refusals', () => {
  const limits = { audioFileBytes: FILE_BYTES, audioBodyBytes: BODY_BYTES }

  let lab: P1Gateway
  shareLab(async () => (lab = await startP1Gateway({ keys, sections: { limits } })))
  afterEach(() => eventually(() => spoolsLeft().length === 0))

  const model = fieldPart('model', 'whisper-1')
  /** A good form and one field more. */
  const withField = (name: string, value: string): RawPart[] => [model, filePart(recording), fieldPart(name, value)]
  const refused = (request: RawRequest, refusal: Refusal): Promise<void> => expectRefused(lab, request, refusal)

  describe.each([TRANSCRIPTIONS, TRANSLATIONS])('a form sent to %s', (path) => {
    it('is refused without a file, with a file that is text, and with a file without a name', async () => {
      await refused(upload([model], path), bad('missing_required_parameter', 'file'))
      await refused(upload([model, fieldPart('file', 'words')], path), bad(null, 'file'))
      await refused(upload([model, filePart(recording, '')], path), bad(null, 'file'))
    })

    it.each([
      ['empty', Buffer.alloc(0), 'a.wav', 'empty_file'],
      ['text', Buffer.from('These are words, not sounds. '.repeat(50)), 'a.mp3', 'invalid_audio_format'],
      ['a page', Buffer.from('<!doctype html><title>x</title>'), 'a.wav', 'invalid_audio_format'],
      ['a picture', Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1'), 'a.png', 'invalid_audio_format'],
      ['ADTS', sample('tone.aac'), 'a.aac', 'invalid_audio_format'],
      ['an AVI', sample('video.avi'), 'a.wav', 'invalid_audio_format'],
      ['a film without sound', sample('video-only.mp4'), 'a.mp4', 'audio_undecodable'],
      ['a WebM without sound', sample('video-only.webm'), 'a.webm', 'audio_undecodable'],
      ['an Ogg without sound', sample('video-only.ogg'), 'a.ogg', 'audio_undecodable'],
      ['a WAV header alone', wavOf(44), 'a.wav', 'audio_undecodable'],
      ['the first bytes of a WAV', wavOf(1000).subarray(0, 30), 'a.wav', 'audio_undecodable'],
      ['a tag without sound', Buffer.from('ID3\x03\0\0\0\0\0\0', 'latin1'), 'a.mp3', 'audio_undecodable'],
      ['the head of a FLAC', sample('tone.flac').subarray(0, 42), 'a.flac', 'audio_undecodable'],
      ['random bytes behind a name', Buffer.from([0xde, 0xad, 0xbe, 0xef]), 'a.m4a', 'invalid_audio_format'],
    ])('is refused when its file is %s', async (_name, content, filename, code) => {
      await refused(upload([filePart(content, filename), model], path), bad(code, 'file'))
    })

    it('is refused with 400 when the file is over its limit, and accepted at the limit', async () => {
      const parts = (bytes: number) => [model, filePart(wavOf(bytes))]
      await refused(upload(parts(FILE_BYTES + 1), path), bad('file_too_large', 'file'))
      await refused(upload(parts(FILE_BYTES + 50_000), path), bad('file_too_large', 'file'))
      expect((await sendRaw(lab.gateway.url, upload(parts(FILE_BYTES), path))).status).toBe(200)
    })

    it.each([
      ['announced by its length', {}],
      ['that only shows itself while it arrives', { 'transfer-encoding': 'chunked' }],
    ])('is refused with 413 when its body is over the limit, %s', async (_name, headers) => {
      const fields = Array.from({ length: 10 }, (_, index) => fieldPart(`field${index}`, 'x'.repeat(60_000)))
      await refused(upload([...fields, model], path, headers), { status: 413, code: 'payload_too_large' })
    })

    it('is refused when the key may not use the model', async () => {
      const request = upload([filePart(recording), model], path, { authorization: 'Bearer limited-gateway-key' })
      await refused(request, { status: 403, type: 'permission_error', code: 'model_not_allowed', param: 'model' })
    })

    it('is refused without a key before its body is read', async () => {
      const headers = { ...MULTIPART, authorization: undefined }
      const unauthorized = { status: 401, type: 'authentication_error', code: 'invalid_api_key' }
      await refused({ path, headers, body: 'not multipart' }, unauthorized)
      await refused({ path, headers, body: Buffer.alloc(BODY_BYTES * 4) }, unauthorized)
    })

    it.each([
      ['application/json'],
      ['application/x-www-form-urlencoded'],
      ['multipart/mixed; boundary=x'],
      ['audio/wav'],
      ['multipart/form-data-x; boundary=x'],
      [undefined],
    ])('is refused as %s', async (contentType) => {
      const request = { path, headers: { 'content-type': contentType }, body: '{"model":"whisper-1"}' }
      await refused(request, { status: 415, code: 'unsupported_media_type' })
    })

    it('is refused when it is compressed', async () => {
      const request = upload([filePart(recording), model], path, { 'content-encoding': 'gzip' })
      await refused(request, { status: 415, code: 'unsupported_media_type' })
    })

    it.each(['-0.1', '1.1', '1.0000001', '1e9'])('is refused with temperature %s out of range', async (value) => {
      const code = value.startsWith('-') ? 'decimal_below_min_value' : 'decimal_above_max_value'
      await refused(upload(withField('temperature', value), path), bad(code, 'temperature'))
    })

    it.each(['', ' ', 'hot', 'NaN', 'Infinity', '0x1', '0,5', '1.2.3', '٠', 'true'])(
      'is refused with temperature %j, which is no decimal',
      async (value) => {
        await refused(upload(withField('temperature', value), path), bad('invalid_type', 'temperature'))
      },
    )

    it.each(['mp3', 'JSON', 'verbose-json', '', 'diarized_json', '__proto__'])(
      'is refused with response_format %j',
      async (format) => {
        await refused(upload(withField('response_format', format), path), bad('unsupported_value', 'response_format'))
      },
    )

    it.each([
      ['no-such-model', 'model_not_found'],
      ['gpt-4o', 'model_not_found'],
      ['tts-1', 'model_not_found'],
      ['<script>', 'model_not_found'],
    ])('is refused with the model %s', async (name, code) => {
      await refused(upload([filePart(recording), fieldPart('model', name)], path), bad(code, 'model'))
    })

    it('is refused with a model of white space', async () => {
      const request = upload([filePart(recording), fieldPart('model', ' ')], path)
      const answer = await sendRaw(lab.gateway.url, request)
      expect([answer.status, JSON.parse(answer.text)]).toMatchObject([400, { error: { param: 'model' } }])
      expect(lab.simulator.requests).toEqual([])
    })
  })

  describe('a transcription', () => {
    it('is refused without a model', async () => {
      await refused(upload([filePart(recording)]), bad('missing_required_parameter', 'model'))
    })

    it.each(['xx-bad', 'english', 'zz', '', 'en-US', 'e', '日本', 'en\n'])(
      'is refused in the language %j',
      async (code) => {
        await refused(upload(withField('language', code)), bad('invalid_language_format', 'language'))
      },
    )

    it.each(['en', 'EN', 'eng', 'de', 'zho'])('is not refused for the language %s', async (code) => {
      await sendRaw(lab.gateway.url, upload(withField('language', code)))
      expect(lab.simulator.requests).toHaveLength(1)
    })

    it.each(['0', '1', '0.5', '1.0', '.5', '1e-3'])('is not refused for the temperature %s', async (value) => {
      await sendRaw(lab.gateway.url, upload(withField('temperature', value)))
      expect(lab.simulator.requests).toHaveLength(1)
    })

    it.each(['yes', '1', '', 'TRUE'])('is refused with stream %j', async (value) => {
      await refused(upload(withField('stream', value)), bad('invalid_type', 'stream'))
    })

    it.each(
      [
        'gpt-4o-transcribe',
        'gpt-4o-mini-transcribe',
        'gpt-4o-mini-transcribe-2025-12-15',
        'gpt-4o-transcribe-diarize',
      ].flatMap((name) => ['verbose_json', 'srt', 'vtt'].map((format) => [name, format] as const)),
    )('by %s as %s is refused as unsupported_value', async (name, format) => {
      const parts = form({ model: name, response_format: format })
      await refused(upload(parts), bad('unsupported_value', 'response_format'))
    })

    it('as diarized_json is refused but for the model that can tell speakers apart', async () => {
      for (const name of ['whisper-1', 'gpt-4o-transcribe']) {
        const parts = form({ model: name, response_format: 'diarized_json' })
        await refused(upload(parts), bad('unsupported_value', 'response_format'))
      }
    })
  })

  describe('a translation', () => {
    it.each(['gpt-4o-transcribe', 'gpt-4o-transcribe-diarize'])('by %s is refused', async (name) => {
      await refused(upload(form({ model: name }), TRANSLATIONS), bad('model_not_found', 'model'))
    })
  })

  const good = multipartBytes([model, filePart(recording)])
  const raw = (body: string | Buffer, headers: RawRequest['headers'] = {}): RawRequest => ({
    path: TRANSCRIPTIONS,
    headers: { ...MULTIPART, ...headers },
    body,
  })
  const replaced = (from: string, to: string): Buffer =>
    Buffer.from(good.toString('latin1').replace(from, to), 'latin1')

  describe('a multipart body', () => {
    it.each<[string, RawRequest]>([
      ['is empty', raw('')],
      ['is not multipart at all', raw('{"model":"whisper-1"}')],
      ['uses another boundary than it says', raw(good, { 'content-type': 'multipart/form-data; boundary=other' })],
      ['names no boundary', raw(good, { 'content-type': 'multipart/form-data' })],
      ['names an empty boundary', raw(good, { 'content-type': 'multipart/form-data; boundary=' })],
      [
        'names a boundary that is too long',
        raw(good, { 'content-type': `multipart/form-data; boundary=${'b'.repeat(71)}` }),
      ],
      ['ends without its closing boundary', raw(good.subarray(0, good.length - BOUNDARY.length - 8))],
      ['ends in the middle of the file', raw(good.subarray(0, good.length - 5000))],
      ['ends in the middle of its closing boundary', raw(good.subarray(0, good.length - 6))],
      ['ends in the headers of a part', raw(good.subarray(0, BOUNDARY.length + 30))],
      ['holds a closing boundary alone', raw(`--${BOUNDARY}--\r\n`)],
      ['has a part without headers', raw(replaced('Content-Disposition: form-data; name="model"\r\n', ''))],
      ['has a part without a name', raw(replaced('; name="model"', ''))],
      ['has a part that is no form data', raw(replaced('form-data; name="model"', 'attachment; name="model"'))],
      [
        'has a part with too many headers',
        raw(replaced('Content-Type: audio/wav', 'X-A: 1\r\n'.repeat(3000) + 'X-B: 2')),
      ],
      ['has line ends of one character', raw(good.toString('latin1').replaceAll('\r\n', '\n'))],
    ])('is refused when it %s', async (_name, request) => {
      const answer = await sendRaw(lab.gateway.url, request)
      expect(answer.status).toBe(400)
      expect(answer.complete).toBe(true)
      expect(JSON.parse(answer.text)).toMatchObject({
        error: { type: 'invalid_request_error', message: expect.stringMatching(/.{15}/) },
      })
      expect(answer.headers['x-should-retry']).toBe('false')
      expect(lab.simulator.requests).toEqual([])
    })

    it.each([
      ['a second file', [filePart(recording), model, filePart(recording)], 'file'],
      ['a file under another name', [filePart(recording, 'a.wav', 'audio'), model], 'audio'],
      ['two models', [filePart(recording), model, fieldPart('model', 'gpt-4o-transcribe')], 'model'],
      [
        'two languages',
        [filePart(recording), model, fieldPart('language', 'en'), fieldPart('language', 'de')],
        'language',
      ],
      ['a list of models', [filePart(recording), model, fieldPart('model[]', 'x')], 'model[]'],
      ['a key that reaches a prototype', [filePart(recording), model, fieldPart('__proto__', 'x')], '__proto__'],
      ['such a key in brackets', [filePart(recording), model, fieldPart('a[constructor]', 'x')], 'a[constructor]'],
      ['a field of more than 64 KiB', [model, fieldPart('prompt', 'x'.repeat(65_537)), filePart(recording)], 'prompt'],
    ])('is refused with %s', async (_name, parts, param) => {
      const answer = await sendRaw(lab.gateway.url, upload(parts))
      expect(answer.status).toBe(400)
      expect(JSON.parse(answer.text)).toMatchObject({ error: { type: 'invalid_request_error', param } })
      expect(lab.simulator.requests).toEqual([])
    })

    it('is refused with more than 64 fields', async () => {
      const fields = Array.from({ length: 65 }, (_, index) => fieldPart(`field${index}`, 'x'))
      const answer = await sendRaw(lab.gateway.url, upload([filePart(recording), ...fields]))
      expect(answer.status).toBe(400)
      expect(lab.simulator.requests).toEqual([])
    })

    it('may have a preamble, an epilogue and a boundary in quotes', async () => {
      const body = Buffer.concat([Buffer.from('preamble\r\n'), good, Buffer.from('epilogue')])
      const headers = { 'content-type': `multipart/form-data; charset=utf-8; boundary="${BOUNDARY}"` }
      expect((await sendRaw(lab.gateway.url, raw(body, headers))).status).toBe(200)
    })
  })

  it('nothing of an upload is ever logged', () => {
    expect(lab.gateway.logText()).toContain('invalid_audio_format')
    expect(lab.gateway.logText()).not.toMatch(/These are words|xx-bad|test-gateway-key|limited-gateway-key/)
  })
})
