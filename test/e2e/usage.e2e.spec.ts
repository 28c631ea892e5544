import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { Metrics } from '../../src/common/observability/metrics.js'
import { form, TRANSLATIONS, upload } from '../support/audio-uploads.js'
import { CHAT_PATH, chatText, SPEECH_PATH, speechText } from '../support/chat-bodies.js'
import { askForImage, imagePath } from '../support/imggen-gateway.js'
import { TEST_KEY } from '../support/gateway.js'
import { openRaw, type RawRequest } from '../support/raw-http.js'
import { RealtimeProbe } from '../support/realtime-probe.js'
import { STORE_START_MS } from '../support/stores.js'
import { recordsOf, recordWhere, type ShownRecord, startUsageLab, type UsageLab } from '../support/usage-lab.js'
import { VideoCaller } from '../support/video-caller.js'

let lab: UsageLab

beforeAll(async () => {
  lab = await startUsageLab()
}, STORE_START_MS)
afterAll(() => lab.close())

const chatCall = (text: string, more: object = {}): RawRequest => ({ path: CHAT_PATH, body: chatText(text, more) })
const speech = (input: string, model: string, more: object = {}): RawRequest => ({
  path: SPEECH_PATH,
  body: speechText(input, { model, ...more }),
})
const message = (content: string, more: object = {}): RawRequest => ({
  path: '/v1/messages',
  body: JSON.stringify({ model: 'claude-sonnet-4-5', max_tokens: 50, messages: [{ role: 'user', content }], ...more }),
})
const usageIn = (text: string): Record<string, unknown> =>
  (JSON.parse(text) as { usage: Record<string, unknown> }).usage
const counts = ({ units }: ShownRecord): readonly string[] =>
  Object.keys(units).filter((name) => (units[name] ?? 0) > 0)

describe('A request that was served', () => {
  it.each<[string, RawRequest, string, string]>([
    ['chat', chatCall('Hello there'), 'gpt-4o-mini', 'p1-main'],
    [
      'chat with audio',
      chatCall('Hello', {
        model: 'gpt-audio',
        modalities: ['text', 'audio'],
        audio: { voice: 'alloy', format: 'wav' },
      }),
      'gpt-audio',
      'p1-main',
    ],
  ])('is recorded with the figures of its upstream: %s', async (_kind, request, model, channel) => {
    const { record, text } = await lab.recorded(request)
    const usage = usageIn(text)
    expect(record).toMatchObject({
      kind: 'request',
      route: CHAT_PATH,
      model,
      channel,
      outcome: 'ok',
      units: { prompt_tokens: usage['prompt_tokens'], completion_tokens: usage['completion_tokens'] },
      reported: usage,
      estimated: null,
      pricing: 'priced',
    })
    expect(record.duration_ms).toBeGreaterThanOrEqual(0)
    expect(Number(record.cost)).toBeGreaterThan(0)
  })

  it('is recorded with the figures that end its stream, asked for or not', async () => {
    const { record, text } = await lab.recorded(chatCall('#chunks=5', { stream: true }))
    expect(text).not.toContain('prompt_tokens')
    expect(record).toMatchObject({ outcome: 'ok', units: { completion_tokens: 5 }, estimated: null, pricing: 'priced' })
  })

  it('of messages counts what is cached within the prompt', async () => {
    const content = [{ type: 'text', text: 'Remember this. '.repeat(40), cache_control: { type: 'ephemeral' } }]
    const { record, text } = await lab.recorded(message('', { messages: [{ role: 'user', content }] }))
    const usage = usageIn(text) as Record<string, number>
    const { input_tokens: input = 0, cache_creation_input_tokens: written = 0, output_tokens: output } = usage
    expect(written).toBeGreaterThan(10)
    expect(record).toMatchObject({
      channel: 'm1-main',
      units: { prompt_tokens: input + written, cache_write_tokens: written, completion_tokens: output },
      pricing: 'priced',
    })
  })

  it('of counting tokens is free', async () => {
    const { path, body } = message('Hello')
    const { record } = await lab.recorded({
      path: `${path}/count_tokens`,
      body: (body as string).replace('"max_tokens":50,', ''),
    })
    expect(record).toMatchObject({ outcome: 'ok', units: {}, pricing: 'free', cost: '0' })
  })

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

describe('A request that came to nothing', () => {
  it('because it was refused is recorded as that, and is free', async () => {
    const { record } = await lab.recorded({ path: CHAT_PATH, body: '{"model":"gpt-4o-mini"}' })
    expect(record).toMatchObject({ outcome: 'refused', units: {}, reported: null, pricing: 'free', cost: '0' })
    const unknown = await lab.recorded(chatCall('Hello', { model: 'no-such-model' }))
    expect(unknown.record).toMatchObject({ outcome: 'refused', model: 'no-such-model', channel: null, pricing: 'free' })
    const nul = await lab.recorded(chatCall('Hello', { model: 'a\0b' }))
    expect(nul.record).toMatchObject({ outcome: 'refused', model: 'ab' })
  })

  it('because its upstream failed is recorded as that', async () => {
    lab.p1.queueFault('500')
    const { record } = await lab.recorded(chatCall('Hello'))
    expect(record).toMatchObject({ outcome: 'upstream_failed', channel: 'p1-main', pricing: 'free' })
  })

  it('because nobody knows who asked is not recorded', async () => {
    const before = (await recordsOf(lab.gateway)).length
    const response = await openRaw(lab.gateway.url, {
      ...chatCall('Hello'),
      headers: { authorization: 'Bearer wrong' },
    })
    response.resume()
    await once(response, 'close')
    expect(response.statusCode).toBe(401)
    await lab.recorded(chatCall('Hello'))
    expect(await recordsOf(lab.gateway)).toHaveLength(before + 1)
  })
})

describe('A stream whose caller has left', () => {
  it('is recorded with what had passed, which is marked as an estimate and has its price', async () => {
    const request = chatCall('#chunks=200 #pace=20', { stream: true })
    const response = await openRaw(lab.gateway.url, { ...request, headers: { 'x-request-id': 'left-1' } })
    await once(response, 'data')
    response.destroy()
    const record = await recordWhere(lab.gateway, ({ request_id: id }) => id === 'left-1')
    expect(record).toMatchObject({ outcome: 'caller_left', channel: 'p1-main', reported: null, pricing: 'priced' })
    expect(record.estimated).not.toBeNull()
    expect(record.units['prompt_tokens']).toBeGreaterThan(0)
    expect(record.units['completion_tokens']).toBeLessThan(200)
  })
})

describe('A realtime session', () => {
  it('is recorded once for each answer, and once by itself without units', async () => {
    const requestId = 'session-1'
    const probe = await RealtimeProbe.open({
      url: lab.gateway.url.replace('http', 'ws'),
      key: TEST_KEY,
      model: 'gpt-realtime',
      headers: { 'x-request-id': requestId },
    })
    await probe.next('session.created')
    const answers: Record<string, unknown>[] = []
    for (let turn = 0; turn < 2; turn++) {
      probe.send({
        type: 'conversation.item.create',
        item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello' }] },
      })
      probe.send({ type: 'response.create' })
      const { response } = (await probe.next('response.done')) as { response: { usage: Record<string, unknown> } }
      answers.push(response.usage)
    }
    probe.socket.close()
    await probe.closed
    await recordWhere(lab.gateway, ({ request_id: id, kind }) => id === requestId && kind === 'request')
    const records = (await recordsOf(lab.gateway)).filter(({ request_id: id }) => id === requestId)
    const responses = records.filter(({ kind }) => kind === 'response')
    expect(responses.map(({ reported }) => reported)).toEqual([...answers].reverse())
    for (const record of responses) {
      expect(record).toMatchObject({
        route: '/v1/realtime',
        model: 'gpt-realtime',
        channel: 'p1-main',
        pricing: 'priced',
      })
      expect(record.units['prompt_tokens']).toBe(record.reported?.['input_tokens'])
    }
    expect(records.filter(({ kind }) => kind === 'request')).toMatchObject([
      { units: {}, pricing: 'free', outcome: 'ok' },
    ])
    expect(records).toHaveLength(3)
  })
})

describe('A task', () => {
  it('is paid once it has succeeded, once, whoever asks for it afterwards', async () => {
    const caller = new VideoCaller(lab.gateway)
    const id = await caller.created()
    const create = await recordWhere(lab.gateway, ({ route, kind }) => route === caller.path && kind === 'request')
    expect(create).toMatchObject({ outcome: 'ok', units: {}, pricing: 'free', channel: 'vidgen-main' })
    lab.vidgen.settle(id, 'succeed')
    const isEnd = ({ kind, route }: ShownRecord): boolean => kind === 'task' && route === caller.path
    expect(await recordWhere(lab.gateway, isEnd)).toMatchObject({
      request_id: null,
      model: 'vidgen-v1',
      channel: 'vidgen-main',
      outcome: 'ok',
      units: { videos: 1 },
      reported: { videos: 1, final_unit_deduction: 2 },
      cost: '0.35',
    })
    for (let time = 0; time < 3; time++) await caller.read(id)
    expect((await recordsOf(lab.gateway)).filter(isEnd)).toHaveLength(1)
  })

  it('that has failed is recorded and free', async () => {
    const caller = new VideoCaller(lab.gateway, TEST_KEY, 'multi-image2video')
    lab.vidgen.settle(await caller.created(), 'failed')
    const record = await recordWhere(lab.gateway, ({ kind, route }) => kind === 'task' && route === caller.path)
    expect(record).toMatchObject({ outcome: 'upstream_failed', units: { videos: 0 }, pricing: 'free', cost: '0' })
  })

  it('of images is counted when it is first seen to have ended, and not again', async () => {
    const id = '1750000000000777'
    lab.imggen.submit('a red kite', { id })
    await askForImage(lab.gateway, imagePath(id))
    lab.imggen.finish(id)
    for (let time = 0; time < 3; time++) await askForImage(lab.gateway, imagePath(id))
    const isImage = ({ model }: ShownRecord): boolean => model === 'images'
    expect(await recordWhere(lab.gateway, isImage)).toMatchObject({ units: { images: 1 }, cost: '0.05', outcome: 'ok' })
    expect((await recordsOf(lab.gateway)).filter(isImage)).toHaveLength(1)
  })
})

describe('All of it', () => {
  it('has a price in the example’s table', async () => {
    const records = await recordsOf(lab.gateway)
    expect(records.length).toBeGreaterThan(20)
    expect(records.filter(({ pricing }) => pricing === 'unpriced')).toEqual([])
    const text = await lab.gateway.application.get(Metrics).registry.metrics()
    expect(text).not.toMatch(/^gateway_usage_unpriced_total\{/m)
    expect(text).toMatch(/^gateway_usage_units_total\{unit="characters",class="tts",channel="p1-main"\} 13$/m)
  })

  it('holds no secret', async () => {
    const text = JSON.stringify(await recordsOf(lab.gateway))
    expect(text).not.toMatch(new RegExp(`canary|${TEST_KEY}`))
  })
})
