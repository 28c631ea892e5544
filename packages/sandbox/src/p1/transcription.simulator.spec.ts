import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { checksum, clip, file, text, TranscriptionSimulatorLab, wav } from '../../test/transcription-simulator-lab.js'

const lab = new TranscriptionSimulatorLab()
const { post } = lab

beforeAll(() => lab.start())
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

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
    const stream = await lab.client.audio.transcriptions.create({ ...options, chunking_strategy: 'auto', stream: true })
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
