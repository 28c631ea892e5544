import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { openRaw, type RawRequest } from '../support/raw-http.js'
import { STORE_START_MS } from '../support/stores.js'
import { describeAllRecords } from '../support/usage-all.js'
import { recordsOf, recordWhere, startUsageLab, type UsageLab } from '../support/usage-lab.js'

let lab: UsageLab

beforeAll(async () => {
  lab = await startUsageLab()
}, STORE_START_MS)
afterAll(() => lab.close())

const chatCall = (text: string, more: object = {}): RawRequest => ({ path: CHAT_PATH, body: chatText(text, more) })
const message = (content: string, more: object = {}): RawRequest => ({
  path: '/v1/messages',
  body: JSON.stringify({ model: 'claude-sonnet-4-5', max_tokens: 50, messages: [{ role: 'user', content }], ...more }),
})
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

describeAllRecords(() => lab, 11)
