import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { clip, file, TranscriptionSimulatorLab, wav } from '../../test/transcription-simulator-lab.js'

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
