import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { Metrics } from '../../src/observability/metrics.js'
import { form, TRANSLATIONS, upload } from '../support/audio-uploads.js'
import { SPEECH_PATH, speechText } from '../support/chat-bodies.js'
import type { RawRequest } from '../support/raw-http.js'
import { STORE_START_MS } from '../support/stores.js'
import { describeAllRecords } from '../support/usage-all.js'
import { type ShownRecord, startUsageLab, type UsageLab } from '../support/usage-lab.js'

let lab: UsageLab

beforeAll(async () => {
  lab = await startUsageLab()
}, STORE_START_MS)
afterAll(() => lab.close())

const speech = (input: string, model: string, more: object = {}): RawRequest => ({
  path: SPEECH_PATH,
  body: speechText(input, { model, ...more }),
})
const counts = ({ units }: ShownRecord): readonly string[] =>
  Object.keys(units).filter((name) => (units[name] ?? 0) > 0)

describe('A request that was served', () => {
  it.each<[string, RawRequest, string, object]>([
    ['by characters', speech('Hello, world.', 'tts-1'), 'p1-main', { units: { characters: 13 }, reported: null }],
    [
      'by tokens',
      speech('Hello.', 'gpt-4o-mini-tts', { stream_format: 'sse' }),
      'p1-main',
      { reported: { output_tokens: expect.any(Number) } },
    ],
    ['by characters of a socket', speech('Hello, world.', 'p2-tts'), 'p2-main', { units: { characters: 13 } }],
    // A Han character counts as two there.
    [
      'by the provider’s own count',
      speech('你好。', 'speech-02-hd'),
      'p3-main',
      { units: { characters: 5 }, reported: { input_characters: 5 }, estimated: { input_characters: 5 } },
    ],
  ])('of speech is counted %s', async (_how, request, channel, expected) => {
    const { record } = await lab.recorded(request)
    expect(record).toMatchObject({ route: SPEECH_PATH, channel, outcome: 'ok', pricing: 'priced', ...expected })
    expect(counts(record).length).toBeGreaterThan(0)
  })

  it.each<[string, RawRequest, object]>([
    ['the seconds the upstream bills', upload(form([['model', 'whisper-1']])), { units: { audio_seconds: 1 } }],
    [
      'the seconds of the file',
      upload(
        form([
          ['model', 'whisper-1'],
          ['response_format', 'srt'],
        ]),
      ),
      { units: { audio_seconds: 1 } },
    ],
    [
      'the seconds on another provider',
      upload(form([['model', 'whisper-large-v3']])),
      { channel: 'p4-main', units: { audio_seconds: 1 } },
    ],
    [
      'the tokens the upstream bills',
      upload(form([['model', 'gpt-4o-transcribe']])),
      { units: { audio_input_tokens: 10 }, estimated: { audio_seconds: 1 } },
    ],
    [
      'the seconds of a translation',
      upload(form([['model', 'whisper-1']]), TRANSLATIONS),
      { route: TRANSLATIONS, units: { audio_seconds: 1 } },
    ],
  ])('of transcription is counted by %s', async (_what, request, expected) => {
    const { record } = await lab.recorded(request)
    expect(record).toMatchObject({ outcome: 'ok', pricing: 'priced', ...expected })
  })

  it('of a document is counted by document and page', async () => {
    const { record } = await lab.recorded({
      path: '/v1/document/parse',
      headers: { 'content-type': 'text/html' },
      body: '<title>Kettles</title><p>A kettle is a vessel.',
    })
    expect(record).toMatchObject({
      model: 'documents',
      channel: null,
      units: { documents: 1, pages: 1 },
      cost: '0.002',
    })
  })
})

describe('The metrics', () => {
  it('hold the units by class and channel', async () => {
    const text = await lab.gateway.application.get(Metrics).registry.metrics()
    expect(text).toMatch(/^gateway_usage_units_total\{unit="characters",class="tts",channel="p1-main"\} 13$/m)
  })
})

describeAllRecords(() => lab, 10)
