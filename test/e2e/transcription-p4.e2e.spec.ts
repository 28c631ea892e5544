import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { toFile } from 'openai'
import { form, sha1, TRANSCRIPTIONS, TRANSLATIONS, upload, wavOfSeconds } from '../support/audio-uploads.js'
import { expectRefused } from '../support/bad-requests.js'
import { lastRequest } from '../support/last-request.js'
import { OPENAI_CLIENTS } from '../support/openai-clients.js'
import type { P1Gateway } from '../support/p1-gateway.js'
import { startP4Gateway } from '../support/p4-gateway.js'
import { errorOf, sendRaw, type RawAnswer } from '../support/raw-http.js'

const MODEL = 'whisper-large-v3'
const TEXT = 'text/plain; charset=utf-8'

let lab: P1Gateway

beforeAll(async () => {
  lab = await startP4Gateway({ simulator: { strictLength: true } })
})
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

const recording = wavOfSeconds(3)
const checksum = sha1(recording).slice(0, 12)
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

const ask = (fields: readonly (readonly [string, string])[], path = TRANSCRIPTIONS): Promise<RawAnswer> =>
  sendRaw(lab.gateway.url, upload(form([['model', MODEL], ...fields], recording), path))

const received = (): (readonly [string, string | undefined])[] =>
  (lab.simulator.lastRequest?.parts ?? []).map(({ name, value, sha1: digest }) => [name, value ?? digest])

describe('a transcription by P4', () => {
  it.each([
    ['srt', SRT],
    ['vtt', VTT],
  ])('as %s is rendered here from the segments of verbose_json', async (format, expected) => {
    const answer = await ask([
      ['response_format', format],
      ['language', 'en'],
    ])
    expect(answer.status).toBe(200)
    expect(answer.headers['content-type']).toBe(TEXT)
    expect(answer.text).toBe(expected)
    expect(received()).toEqual([
      ['file', sha1(recording)],
      ['model', MODEL],
      ['response_format', 'verbose_json'],
      ['language', 'en'],
    ])
    expect(lab.simulator.violations).toEqual([])
  })

  it('as subtitles asks for segments, whatever granularities the caller named', async () => {
    const answer = await ask([
      ['timestamp_granularities[]', 'word'],
      ['response_format', 'srt'],
      ['timestamp_granularities[]', 'word'],
    ])
    expect(answer.text).toBe(SRT)
    expect(received().map(([name]) => name)).toEqual(['file', 'model', 'response_format'])
  })

  it('as text is plain text, and as json the words of the upstream', async () => {
    const text = await ask([['response_format', 'text']])
    expect([text.headers['content-type'], text.text]).toEqual([
      TEXT,
      ` The audio has checksum ${checksum}. It lasts 3.00 seconds.\n`,
    ])
    const json = await ask([])
    expect(json.headers['content-type']).toBe('application/json')
    expect(JSON.parse(json.text)).toEqual({
      text: ` The audio has checksum ${checksum}. It lasts 3.00 seconds.`,
      x_groq: { id: expect.stringMatching(/^req_/) },
    })
  })

  it('as verbose_json keeps the words that were asked for', async () => {
    const answer = await ask([
      ['response_format', 'verbose_json'],
      ['timestamp_granularities[]', 'word'],
    ])
    expect(JSON.parse(answer.text)).toMatchObject({ language: 'English', words: expect.any(Array) })
    expect(answer.text).not.toContain('"segments"')
  })

  it('is sent with a length to a prefixed path', async () => {
    expect((await ask([])).status).toBe(200)
    const { path, headers, receivedBytes } = lastRequest(lab.simulator)
    expect(path).toBe(`/openai${TRANSCRIPTIONS}`)
    expect(headers['content-length']).toBe(String(receivedBytes))
    expect(headers).not.toHaveProperty('transfer-encoding')
  })

  it('logs the seconds of audio it was given', async () => {
    for (const format of ['json', 'text', 'srt']) {
      const answer = await ask([['response_format', format]])
      const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
      expect(line).toMatchObject({ channel: 'first', usage: { units: { audio_seconds: 3 }, estimated: false } })
    }
  })
})

describe('a translation by P4', () => {
  it.each(['json', 'text', 'verbose_json', 'srt', 'vtt'])('as %s is English', async (format) => {
    const answer = await ask([['response_format', format]], TRANSLATIONS)
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
    const answer = await ask([['response_format', format]])
    expect(answer.status).toBe(status)
    expect(answer.headers['content-type']).toBe('application/json')
    expect(errorOf(answer)).toMatchObject({ message: expect.any(String), type: expect.any(String) })
    expect(answer.text).not.toContain('-->')
  })

  it('that shows itself as an answer without segments is told as one', async () => {
    const body = '{"task":"transcribe","text":"Hello"}'
    lab.simulator.queueFault({ kind: 'status', status: 200, headers: { 'content-type': 'application/json' }, body })
    const answer = await ask([['response_format', 'srt']])
    expect([answer.status, errorOf(answer).code]).toEqual([500, 'upstream_failed'])
  })
})

it('a class G model is refused before P4 is asked', async () => {
  const parts = form([['model', 'gpt-4o-transcribe']], recording)
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
  const own = await startP4Gateway({ simulator: { mode: 'openai' } })
  try {
    const parts = form(
      [
        ['model', 'whisper-1'],
        ['response_format', 'srt'],
      ],
      recording,
    )
    const answer = await sendRaw(own.gateway.url, upload(parts))
    expect(answer.text).toBe(SRT)
  } finally {
    await own.close()
  }
})
