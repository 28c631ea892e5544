import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { checksum, clip, file, text, TranscriptionSimulatorLab, wav } from '../../test/chat-simulator-labs.js'

const lab = new TranscriptionSimulatorLab()
const { post } = lab

beforeAll(() => lab.start())
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

describe('what transcription refuses', () => {
  const cases: readonly [string, Record<string, string | File>, string | null, string | null, RegExp][] = [
    ['no model', { model: '' }, null, null, /^you must provide a model parameter$/],
    [
      'bad language',
      { language: 'xx-bad' },
      'language',
      'invalid_language_format',
      /^Invalid language 'xx-bad'\. Language parameter/,
    ],
    [
      'format of another model',
      { model: 'gpt-4o-transcribe', response_format: 'verbose_json' },
      'response_format',
      'unsupported_value',
      /^response_format 'verbose_json' is not compatible with model 'gpt-4o-transcribe'\. Use 'json' or 'text' instead\.$/,
    ],
    [
      'wrong extension',
      { file: new File([clip], 'a.txt') },
      null,
      null,
      /^Invalid file format\. Supported formats: \['flac', 'm4a',/,
    ],
    ['undecodable', { file: new File(['nonsense'], 'a.wav') }, null, null, /^The audio file could not be decoded/],
    [
      'undecodable, 4o',
      { file: new File(['nonsense'], 'a.wav'), model: 'gpt-4o-transcribe' },
      'file',
      'invalid_value',
      /^Audio file might be corrupted or unsupported$/,
    ],
    [
      'header only',
      { file: new File([wav(0)], 'a.wav') },
      'file',
      'audio_too_short',
      /^Audio file is too short\. Minimum audio/,
    ],
    [
      'header only, 4o',
      { file: new File([wav(0)], 'a.wav'), model: 'gpt-4o-transcribe' },
      null,
      'invalid_value',
      /^audio duration 0\.0 seconds is shorter than 0\.1 seconds which is the minimum for this model$/,
    ],
    ['file as text', { file: 'text' }, null, null, /Expected UploadFile, received: <class 'str'>/],
    ['unknown part', { metadata: '{}' }, 'metadata', 'unknown_parameter', /^Unknown parameter: 'metadata'\.$/],
    [
      'temperature',
      { temperature: '1.5' },
      'temperature',
      'decimal_above_max_value',
      /Expected a value <= 1, but got 1\.5/,
    ],
    [
      'granularity without verbose',
      { 'timestamp_granularities[]': 'word' },
      'timestamp_granularities[]',
      'invalid_value',
      /verbose_json/,
    ],
    [
      'logprobs of whisper',
      { 'include[]': 'logprobs' },
      'include',
      'unsupported_value',
      /not supported with this model/,
    ],
  ]

  it.each(cases)('%s', async (_name, change, param, code, message) => {
    const response = await post({ model: 'whisper-1', file: new File([clip], 'a.wav'), ...change })
    expect(response.status).toBe(400)
    const raw = await response.text()
    expect(raw).not.toContain('\n')
    const { error } = JSON.parse(raw) as { error: Record<string, unknown> }
    expect(error).toMatchObject({ type: 'invalid_request_error', param, code })
    expect(error['message']).toMatch(message)
  })

  it('a missing file, a body that is no form and a broken form', async () => {
    expect(await (await post({ model: 'whisper-1' })).text()).toContain('body -> file\\n  field required')
    const send = (body: string, type: string): Promise<Response> =>
      fetch(`${lab.simulator.url}/v1/audio/transcriptions`, {
        method: 'POST',
        headers: { authorization: 'Bearer sk-test-key', 'content-type': type },
        body,
      })
    expect((await send('{}', 'application/json')).status).toBe(415)
    expect((await send('--B\r\nnonsense', 'multipart/form-data; boundary=B')).status).toBe(400)
  })

  it('language errors carry usage beside the error', async () => {
    const response = await post({ model: 'whisper-1', file: await file(), language: 'xx-bad' })
    expect(await response.json()).toMatchObject({ usage: { type: 'duration', seconds: 0 } })
  })

  it('faults can be asked for in the prompt', async () => {
    const response = await post({ model: 'whisper-1', file: await file(), prompt: '#quota' })
    expect(response.status).toBe(429)
    expect(await response.json()).toMatchObject({ error: { code: 'insufficient_quota' } })
  })
})

describe('the official SDK against the P1 transcription simulator', () => {
  it('gets json with the duration rounded up', async () => {
    const answer = await lab.client.audio.transcriptions.create({ model: 'whisper-1', file: await file() })
    expect(answer).toEqual({ text, usage: { type: 'duration', seconds: 2 } })
    expect(lab.simulator.lastRequest?.parts?.map((part) => part.name)).toEqual(['model', 'file'])
    expect(lab.simulator.lastRequest?.parts?.[1]).toMatchObject({ filename: 'a.wav', size: clip.length })
  })

  it('gets text, srt and vtt as strings', async () => {
    const upload = await file()
    const get = (response_format: 'text' | 'srt' | 'vtt'): Promise<unknown> =>
      lab.client.audio.transcriptions.create({ model: 'whisper-1', file: upload, response_format })
    expect(await get('text')).toBe(`${text}\n`)
    expect(await get('srt')).toMatch(
      /^1\n00:00:00,000 --> 00:00:0[\d,]+\nThe audio .*\n\n2\n[^\n]+\nIt lasts .*\n\n\n$/,
    )
    expect(await get('vtt')).toMatch(/^WEBVTT\n\n00:00:00\.000 --> [\d:.]+\nThe audio .*\n\n[^\n]+\nIt lasts .*\n\n$/)
  })

  it.each([
    [undefined, true, false],
    [['word' as const], false, true],
    [['word' as const, 'segment' as const], true, true],
  ])('gives verbose_json with granularities %j', async (granularities, segments, words) => {
    const answer = await lab.client.audio.transcriptions.create({
      model: 'whisper-1',
      file: await file(),
      response_format: 'verbose_json',
      language: 'de',
      ...(granularities === undefined ? {} : { timestamp_granularities: granularities }),
    })
    expect(answer).toMatchObject({ task: 'transcribe', language: 'german', text, duration: Math.fround(1.7) })
    expect('segments' in answer).toBe(segments)
    expect('words' in answer).toBe(words)
    if (words) expect(answer.words?.[0]?.word).toBe('The')
    if (segments) expect(answer.segments?.[0]?.text).toMatch(/^ The audio/)
  })

  it('streams class G and ignores the wish on whisper', async () => {
    const stream = await lab.client.audio.transcriptions.create({
      model: 'gpt-4o-transcribe',
      file: await file(),
      stream: true,
    })
    const events: { type: string }[] = []
    for await (const event of stream) events.push(event)
    expect(events.at(-1)).toMatchObject({ type: 'transcript.text.done', text, usage: { type: 'tokens' } })
    const whisper = await post({ model: 'whisper-1', stream: 'true', file: await file() })
    expect(await whisper.json()).toMatchObject({ text })
  })

  it('frames streams with CRLF and sends [DONE]', async () => {
    const response = await post({ model: 'gpt-4o-mini-transcribe', stream: 'true', file: await file() })
    expect(response.headers.get('cache-control')).toBe('no-store')
    const raw = await response.text()
    expect(raw.endsWith('data: [DONE]\r\n\r\n')).toBe(true)
    expect(raw.replaceAll('\r\n', '')).not.toContain('\n')
  })

  it('gives token usage and log probabilities where asked', async () => {
    const answer = await lab.client.audio.transcriptions.create({
      model: 'gpt-4o-transcribe',
      file: await file(),
      include: ['logprobs'],
    })
    expect(answer.logprobs?.[0]).toMatchObject({ token: 'The', bytes: [84, 104, 101] })
    expect(answer.usage).toMatchObject({ type: 'tokens', input_token_details: { text_tokens: 0, audio_tokens: 17 } })
  })

  it('tells speakers apart, also in a stream without deltas', async () => {
    const upload = await file(wav(31))
    const options = { model: 'gpt-4o-transcribe-diarize', file: upload, response_format: 'diarized_json' as const }
    await expect(lab.client.audio.transcriptions.create(options)).rejects.toMatchObject({
      param: 'chunking_strategy',
      error: { message: 'chunking_strategy is required for diarization models' },
    })
    const strategy = { type: 'server_vad' as const, threshold: 0.5 }
    const answer = await lab.client.audio.transcriptions.create({ ...options, chunking_strategy: strategy })
    expect(answer).toMatchObject({ segments: [{ speaker: 'A', start: 0, id: 'seg_0' }, { speaker: 'B' }] })
    const events: string[] = []
    const stream = await lab.client.audio.transcriptions.create({
      ...options,
      chunking_strategy: 'auto',
      stream: true,
    })
    for await (const event of stream) events.push(event.type)
    expect(events).toEqual(['transcript.text.segment', 'transcript.text.segment', 'transcript.text.done'])
  })

  it('adds languages for gpt-transcribe', async () => {
    const response = await post({ model: 'gpt-transcribe', file: await file(), 'languages[]': 'fr' })
    expect(await response.json()).toMatchObject({ text, languages: [{ code: 'fr' }], usage: { type: 'tokens' } })
  })

  it('translates into English', async () => {
    const answer = await lab.client.audio.translations.create({ model: 'whisper-1', file: await file() })
    expect(answer.text).toContain(`translated audio has checksum ${checksum}`)
    const verbose = await post(
      { model: 'whisper-1', file: await file(), response_format: 'verbose_json' },
      'translations',
    )
    expect(await verbose.json()).toMatchObject({ task: 'translate', language: 'english' })
  })

  it('answers 413 after reading a body over the limit', async () => {
    const failing = lab.client.audio.transcriptions.create({
      model: 'whisper-1',
      file: await file(Buffer.concat([clip, Buffer.alloc(26_214_400)])),
    })
    await expect(failing).rejects.toMatchObject({
      status: 413,
      error: {
        type: 'server_error',
        message: expect.stringMatching(/^Maximum content size limit \(26214400\) exceeded/) as unknown,
      },
    })
  })
})
