import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { form, sha1, upload, wavOfSeconds } from '../support/audio-uploads.js'
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
