import { once } from 'node:events'
import { describe, expect, it } from '@jest/globals'
import type { Fault } from '@multi-model-gateway/sandbox/server/faults.js'
import { Metrics } from '../../src/observability/metrics.js'
import { CHAT_PATH, chatText, openRaw, type RawRequest, sendRaw, SPEECH_PATH, speechText } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { COUNT_TOKENS, MESSAGES, messageText } from '../support/m1-gateway.js'
import { OTHER_KEY } from '../support/task-gateways.js'
import { form, TRANSLATIONS, upload, wavOfSeconds } from '../support/upload-server.js'
import {
  completion,
  completionChunks,
  describeAllRecords,
  getUsage,
  messageEvents,
  recordsOf,
  recordWhere,
  type ShownRecord,
  speechEvents,
  startUsageLab,
  transcriptEvents,
  type UsageLab,
  wholeMessage,
  wholeTranscript,
} from '../support/usage-lab.js'

describe('usage', () => {
  let lab: UsageLab
  shareLab(async () => (lab = await startUsageLab()))

  const chatCall = (text: string, more: object = {}): RawRequest => ({ path: CHAT_PATH, body: chatText(text, more) })
  const usageIn = (text: string): Record<string, unknown> =>
    (JSON.parse(text) as { usage: Record<string, unknown> }).usage

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
      expect(record).toMatchObject({ outcome: 'ok', units: { completion_tokens: 5 }, pricing: 'priced' })
      expect(record.reported).toMatchObject({ completion_tokens: 5 })
      // Beside them the pieces that came.
      expect(record.estimated).toEqual({ completion_tokens: 5 })
    })

    it('of messages counts what is cached within the prompt', async () => {
      const content = [{ type: 'text', text: 'Remember this. '.repeat(40), cache_control: { type: 'ephemeral' } }]
      const body = messageText('', { messages: [{ role: 'user', content }] })
      const { record, text } = await lab.recorded({ path: MESSAGES, body })
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
      const body = messageText('Hello', { max_tokens: undefined })
      const { record } = await lab.recorded({ path: COUNT_TOKENS, body })
      expect(record).toMatchObject({ outcome: 'ok', units: {}, pricing: 'free', cost: '0' })
    })
  })

  describe('A request that came to nothing', () => {
    it('because it was refused is recorded as that, and is free', async () => {
      const { record } = await lab.recorded({ path: CHAT_PATH, body: '{"model":"gpt-4o-mini"}' })
      expect(record).toMatchObject({ outcome: 'refused', units: {}, reported: null, pricing: 'free', cost: '0' })
      const unknown = await lab.recorded(chatCall('Hello', { model: 'no-such-model' }))
      expect(unknown.record).toMatchObject({
        outcome: 'refused',
        model: 'no-such-model',
        channel: null,
        pricing: 'free',
      })
      const nul = await lab.recorded(chatCall('Hello', { model: 'a\0b' }))
      expect(nul.record).toMatchObject({ outcome: 'refused', model: 'ab' })
    })

    it('is one record with many others that were refused for the same reason in its minute', async () => {
      const sumOf = async (): Promise<number> => {
        const { body } = await getUsage<{ data: { records: number }[] }>(lab.gateway, '', OTHER_KEY)
        return body.data[0]?.records ?? 0
      }
      const before = await sumOf()
      const request = {
        ...chatCall('Hello', { model: 'no-such-model' }),
        headers: { authorization: `Bearer ${OTHER_KEY}` },
      }
      await Promise.all(Array.from({ length: 150 }, () => sendRaw(lab.gateway.url, request)))
      const records = await recordsOf(lab.gateway, OTHER_KEY)
      expect(records.reduce((sum, { requests }) => sum + requests, 0)).toBe(150)
      // They may have come as a minute ended.
      expect(records.length).toBeLessThanOrEqual(2)
      expect(records[0]).toMatchObject({ outcome: 'refused', reason: 'unknown_model', pricing: 'free', cost: '0' })
      expect((await sumOf()) - before).toBe(150)
    })

    it('because its upstream failed is recorded as that', async () => {
      lab.p1.queueFault('500')
      const { record } = await lab.recorded(chatCall('Hello'))
      expect(record).toMatchObject({ outcome: 'upstream_failed', channel: 'p1-main', pricing: 'free' })
    })

    it('for lack of a known key is not recorded', async () => {
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

  const speech = (input: string, model: string, more: object = {}): RawRequest => ({
    path: SPEECH_PATH,
    body: speechText(input, { model, ...more }),
  })
  const counts = ({ units }: ShownRecord): readonly string[] =>
    Object.keys(units).filter((name) => (units[name] ?? 0) > 0)

  describe('A request of audio or documents that was served', () => {
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
      ['the seconds the upstream bills', upload(form({ model: 'whisper-1' })), { units: { audio_seconds: 1 } }],
      [
        'the seconds of the file',
        upload(form({ model: 'whisper-1', response_format: 'srt' })),
        { units: { audio_seconds: 1 } },
      ],
      [
        'the seconds on another provider',
        upload(form({ model: 'whisper-large-v3' })),
        { channel: 'p4-main', units: { audio_seconds: 1 } },
      ],
      [
        'the tokens the upstream bills',
        upload(form({ model: 'gpt-4o-transcribe' })),
        { units: { audio_input_tokens: 10 }, estimated: { audio_seconds: 1 } },
      ],
      [
        'the seconds of a translation',
        upload(form({ model: 'whisper-1' }), TRANSLATIONS),
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

  describeAllRecords(() => lab, 21)

  const PATHS = { chat: CHAT_PATH, messages: MESSAGES } as const

  /** What is recorded of a question of eight characters, when the upstream answers like this. */
  async function recorded(route: keyof typeof PATHS, stream: boolean, answer: Fault): Promise<ShownRecord> {
    const body = route === 'chat' ? chatText('Hi there', { stream }) : messageText('Hi there', { stream })
    const request: RawRequest = { path: PATHS[route], body }
    const simulator = route === 'chat' ? lab.p1 : lab.m1
    simulator.queueFault(answer)
    const { record } = await lab.recorded(request)
    expect(record.outcome).toBe('ok')
    return record
  }

  /** Four characters to a token, four tokens for the message, three for the answer's head. */
  const PROMPT = 2 + 4 + 3
  /** "Hello there." */
  const WORDS = 3
  const CHAT_FIGURES = { prompt_tokens: 70, completion_tokens: 30, total_tokens: 100 }
  const CHAT_ZEROS = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
  /** Of a stream, whose pieces are counted as they pass; a whole answer is looked at for nothing but its figures. */
  const CHAT_PIECES = { completion_tokens: WORDS }
  const CHAT_ESTIMATE = { prompt_tokens: PROMPT, completion_tokens: WORDS, total_tokens: PROMPT + WORDS }

  describe('Of chat', () => {
    it.each([
      ['as a whole, alone', false, completion(CHAT_FIGURES), null],
      ['as a stream, beside the pieces that came', true, completionChunks(CHAT_FIGURES), CHAT_PIECES],
    ])(
      'the upstream’s figures are recorded, and paid, where it says them: %s',
      async (_how, stream, answer, estimated) => {
        const record = await recorded('chat', stream, answer)
        expect(record).toMatchObject({
          units: { prompt_tokens: 70, completion_tokens: 30 },
          reported: CHAT_FIGURES,
          pricing: 'priced',
        })
        expect(record.estimated).toEqual(estimated)
      },
    )

    it.each([
      ['as a whole', false, completion(CHAT_ZEROS), null],
      ['as a stream', true, completionChunks(CHAT_ZEROS), CHAT_PIECES],
    ])('zeros are figures: %s', async (_how, stream, answer, estimated) => {
      const record = await recorded('chat', stream, answer)
      expect(record).toMatchObject({ reported: CHAT_ZEROS, pricing: 'free', cost: '0' })
      expect(record.estimated).toEqual(estimated)
    })

    it.each([
      ['as a whole', false, completion()],
      ['as a whole with null', false, completion(null)],
      ['as a whole with nothing in it', false, completion({})],
      ['as a stream', true, completionChunks()],
    ])('an estimate alone is recorded, and priced, where it does not: %s', async (_how, stream, answer) => {
      expect(await recorded('chat', stream, answer)).toMatchObject({
        units: { prompt_tokens: PROMPT, completion_tokens: WORDS },
        reported: null,
        estimated: CHAT_ESTIMATE,
        pricing: 'priced',
      })
    })
  })

  describe('Of messages', () => {
    it.each([
      ['as a whole, alone', false, wholeMessage({ input_tokens: 70, output_tokens: 30 }), null],
      [
        'as a stream, beside the pieces that came',
        true,
        messageEvents({ input_tokens: 70, output_tokens: 1 }, { output_tokens: 30 }),
        { output_tokens: WORDS },
      ],
    ])(
      'the upstream’s figures are recorded, and paid, where it says them: %s',
      async (_how, stream, answer, estimated) => {
        const record = await recorded('messages', stream, answer)
        expect(record).toMatchObject({
          units: { prompt_tokens: 70, completion_tokens: 30 },
          reported: { input_tokens: 70, output_tokens: 30 },
          pricing: 'priced',
        })
        expect(record.estimated).toEqual(estimated)
      },
    )

    it('the input is kept as it was said, and the output estimated, where a stream says no more', async () => {
      const answer = messageEvents({ input_tokens: 70, output_tokens: 1 })
      expect(await recorded('messages', true, answer)).toMatchObject({
        units: { prompt_tokens: 70, completion_tokens: WORDS },
        reported: null,
        estimated: { input_tokens: 70, output_tokens: WORDS },
        pricing: 'priced',
      })
    })

    it.each([
      ['as a whole', false, wholeMessage()],
      ['as a stream', true, messageEvents()],
    ])('an estimate alone is recorded, and priced, where it says nothing at all: %s', async (_how, stream, answer) => {
      expect(await recorded('messages', stream, answer)).toMatchObject({
        units: { prompt_tokens: 2 + 4, completion_tokens: WORDS },
        reported: null,
        estimated: { input_tokens: 2 + 4, output_tokens: WORDS },
        pricing: 'priced',
      })
    })
  })

  /** Three seconds at 1,000 tokens a minute. */
  const HEARD = { input_tokens: 50, output_tokens: WORDS, total_tokens: 50 + WORDS }

  describe('Of audio whose upstream says its figures', () => {
    it('the tokens of its text and its sound stand beside those of speech in events', async () => {
      const usage = { input_tokens: 7, output_tokens: 70, total_tokens: 77 }
      lab.p1.queueFault(speechEvents(Buffer.alloc(48_000), usage))
      const more = { model: 'gpt-4o-mini-tts', stream_format: 'sse', response_format: 'pcm' }
      const { record } = await lab.recorded({ path: SPEECH_PATH, body: speechText('Hi there', more) })
      expect(record).toMatchObject({
        outcome: 'ok',
        units: { prompt_tokens: 7, completion_tokens: 70 },
        reported: usage,
        pricing: 'priced',
      })
      expect(record.estimated).toEqual({ input_tokens: 2, output_tokens: 17, total_tokens: 19, spoken_seconds: 1 })
    })

    it('the length of the file and the pieces that came stand beside those of a transcript as a stream', async () => {
      const usage = { type: 'tokens', input_tokens: 70, output_tokens: 30, total_tokens: 100 }
      lab.p1.queueFault(transcriptEvents(usage))
      const fields = { model: 'gpt-4o-transcribe', stream: 'true' }
      const { record } = await lab.recorded(upload(form(fields, wavOfSeconds(3))))
      expect(record).toMatchObject({
        outcome: 'ok',
        units: { prompt_tokens: 70, completion_tokens: 30 },
        reported: { input_tokens: 70, output_tokens: 30, total_tokens: 100 },
        pricing: 'priced',
      })
      const details = { text_tokens: 0, audio_tokens: 50 }
      expect(record.estimated).toEqual({ ...HEARD, input_token_details: details, audio_seconds: 3 })
    })
  })

  describe('Of audio whose upstream says nothing of its use', () => {
    it('an estimate in tokens is recorded for speech in events', async () => {
      lab.p1.queueFault(speechEvents(Buffer.alloc(48_000)))
      const more = { model: 'gpt-4o-mini-tts', stream_format: 'sse', response_format: 'pcm' }
      const { record } = await lab.recorded({ path: SPEECH_PATH, body: speechText('Hi there', more) })
      expect(record).toMatchObject({ outcome: 'ok', reported: null, pricing: 'priced' })
      expect(record.estimated).toMatchObject({ input_tokens: 2, output_tokens: 17 })
    })

    it.each([
      ['as a whole', {}, wholeTranscript()],
      ['as a stream', { stream: 'true' }, transcriptEvents()],
    ])('an estimate in tokens is recorded for a transcript of class G: %s', async (_how, fields, answer) => {
      lab.p1.queueFault(answer)
      const { record } = await lab.recorded(upload(form({ model: 'gpt-4o-transcribe', ...fields }, wavOfSeconds(3))))
      expect(record).toMatchObject({ outcome: 'ok', reported: null, estimated: HEARD, pricing: 'priced' })
    })

    it('the length of the file is recorded for any other transcript, which is measured', async () => {
      lab.p1.queueFault(wholeTranscript())
      const { record } = await lab.recorded(upload(form({ model: 'whisper-1' }, wavOfSeconds(3))))
      const units = { audio_seconds: 3 }
      expect(record).toMatchObject({ outcome: 'ok', units, reported: units, estimated: null, pricing: 'priced' })
    })
  })
})

describe('usage reasoning', () => {
  /** Whole millionths for each token, so that costs are whole numbers of these. */
  const PRICES = [
    { models: ['o4-mini'], promptTokens: 1, completionTokens: 10, reasoningTokens: 40 },
    { models: ['gpt-*', 'claude-*'], promptTokens: 3, completionTokens: 15 },
  ]
  /** What the simulator thinks before each choice with an effort of `low`. */
  const LOW = 128

  let lab: UsageLab
  shareLab(async () => (lab = await startUsageLab({ prices: PRICES })))

  const chat = (model: string, more: object = {}): RawRequest => ({
    path: CHAT_PATH,
    body: chatText('#chunks=5', { model, ...more }),
  })
  const millionths = ({ cost }: ShownRecord): number => Math.round(Number(cost) * 1e6)

  describe('Tokens of thought', () => {
    it.each([
      ['as a whole', {}, 1, null],
      // Pieces are counted: those of a thought that is not shown are none.
      ['as a stream', { stream: true }, 1, { completion_tokens: 5 }],
      ['for each choice', { n: 3 }, 3, null],
    ])('of chat stand in the record, and have their own price: %s', async (_how, more, choices, estimated) => {
      const { record } = await lab.recorded(chat('o4-mini', { reasoning_effort: 'low', ...more }))
      const [words, thoughts] = [5 * choices, LOW * choices]
      const { prompt_tokens: prompt = 0 } = record.units
      expect(record).toMatchObject({
        outcome: 'ok',
        units: { completion_tokens: words + thoughts, reasoning_tokens: thoughts },
        reported: { completion_tokens_details: { reasoning_tokens: thoughts } },
      })
      expect(record.estimated).toEqual(estimated)
      expect(millionths(record)).toBe(prompt + words * 10 + thoughts * 40)
    })

    it('are paid like words where they have no price', async () => {
      const { record } = await lab.recorded(chat('gpt-5', { reasoning_effort: 'low' }))
      expect(record.units['reasoning_tokens']).toBe(LOW)
      expect(millionths(record)).toBe((record.units['prompt_tokens'] ?? 0) * 3 + (5 + LOW) * 15)
    })

    it('are none where the upstream says so', async () => {
      const { record } = await lab.recorded(chat('o4-mini'))
      expect(record.units).toMatchObject({ completion_tokens: 5, reasoning_tokens: 0 })
    })

    it('of messages stand in the record as well', async () => {
      const thinking = { type: 'enabled', budget_tokens: 1024 }
      for (const stream of [false, true]) {
        const body = messageText('#chunks=5', { max_tokens: 2000, thinking, stream })
        const { record } = await lab.recorded({ path: MESSAGES, body })
        const { completion_tokens: completion = 0, reasoning_tokens: thoughts = 0 } = record.units
        expect(thoughts).toBeGreaterThan(0)
        expect(completion).toBe(5 + thoughts)
        expect(record.reported).toMatchObject({ output_tokens_details: { thinking_tokens: thoughts } })
      }
    })

    it('are summed for the caller', async () => {
      // Of a model that no other test here asks.
      const efforts = [{ reasoning_effort: 'low' }, { reasoning_effort: 'low', n: 4 }, {}]
      for (const effort of efforts) await lab.recorded(chat('gpt-5-mini', effort))
      const { body } = await getUsage<{ data: { model: string; units: Record<string, number> }[] }>(
        lab.gateway,
        '?group_by=model',
      )
      const units = body.data.find(({ model }) => model === 'gpt-5-mini')?.units
      expect(units).toMatchObject({ reasoning_tokens: 5 * LOW, completion_tokens: 5 * LOW + 6 * 5 })
    })
  })
})
