import { afterEach, describe, expect, it } from '@jest/globals'
import {
  audioOf,
  ConversationLab,
  nameIn,
  type RealtimeEvent,
  responseOf,
  shapeOf,
  textIn,
  typesOf,
} from '../../../../test/support/realtime-probe.js'

const lab = new ConversationLab()
const { refusal, say, start } = lab

afterEach(async () => {
  await lab.close()
  expect(lab.simulator.violations).toEqual([])
})

describe.each(['ga', 'beta'] as const)('items in the %s dialect', (dialect) => {
  it('take the place they ask for', async () => {
    await start(dialect)
    say('first', { id: 'item_a' })
    expect(await lab.probe.next(nameIn(dialect))).toMatchObject({ previous_item_id: null, item: { id: 'item_a' } })
    say('second', { id: 'item_b' })
    expect(await lab.probe.next(nameIn(dialect))).toMatchObject({ previous_item_id: 'item_a' })
    const item = { type: 'message', role: 'system', content: [{ type: 'input_text', text: 'x' }] }
    lab.probe.send({ type: 'conversation.item.create', previous_item_id: 'root', item })
    expect(await lab.probe.next(nameIn(dialect))).toMatchObject({ previous_item_id: null })
    lab.probe.send({ type: 'conversation.item.create', previous_item_id: 'item_a', item })
    expect(await lab.probe.next(nameIn(dialect))).toMatchObject({ previous_item_id: 'item_a' })
    expect(await refusal({ type: 'conversation.item.create', previous_item_id: 'nobody', item })).toMatchObject({
      code: 'item_create_invalid_previous_item_id',
      param: 'previous_item_id',
      event_id: 'ev_1',
    })
  })

  it('are retrieved, truncated and deleted', async () => {
    await start(dialect)
    say('speak')
    lab.probe.send({ type: 'response.create' })
    const events = await lab.probe.until('response.done')
    const itemId = (responseOf(events.at(-1))['output'] as RealtimeEvent[])[0]?.['id']
    const place = { item_id: itemId, content_index: 0 }
    const spokenMs = audioOf(events).length / 48
    expect(await refusal({ type: 'conversation.item.truncate', ...place, audio_end_ms: spokenMs + 1 })).toMatchObject({
      message: `Audio content of ${spokenMs}ms is already shorter than ${spokenMs + 1}ms`,
    })
    lab.probe.send({ type: 'conversation.item.truncate', ...place, audio_end_ms: 100 })
    expect(await lab.probe.next('conversation.item.truncated')).toMatchObject({ ...place, audio_end_ms: 100 })
    lab.probe.send({ type: 'conversation.item.retrieve', item_id: itemId })
    const part = { type: dialect === 'ga' ? 'output_audio' : 'audio', transcript: null }
    expect(await lab.probe.next('conversation.item.retrieved')).toMatchObject({
      item: { id: itemId, content: [part] },
    })
    lab.probe.send({ type: 'conversation.item.delete', item_id: itemId })
    expect(await lab.probe.next('conversation.item.deleted')).toMatchObject({ item_id: itemId })
    for (const action of ['retrieve', 'delete'] as const) {
      expect(await refusal({ type: `conversation.item.${action}`, item_id: itemId })).toMatchObject({
        code: `item_${action}_invalid_item_id`,
      })
    }
    expect(await refusal({ type: 'conversation.item.truncate', ...place, audio_end_ms: 1 })).toMatchObject({
      code: 'item_truncate_invalid_item_id',
    })
  })

  it.each([
    [
      'another dialect',
      { role: 'assistant', content: [{ type: dialect === 'ga' ? 'text' : 'output_text', text: 'x' }] },
      'invalid_value',
      'item.content[0].type',
    ],
    [
      'a text of another type',
      { role: 'user', content: [{ type: 'input_text', text: 5 }] },
      'invalid_type',
      'item.content[0].text',
    ],
    [
      'bad audio',
      { role: 'user', content: [{ type: 'input_audio', audio: '!' }] },
      'invalid_value',
      'item.content[0].audio',
    ],
    ['no role', { content: [] }, 'missing_required_parameter', 'item.role'],
    ['a long id', { id: 'x'.repeat(33), role: 'user', content: [] }, 'string_above_max_length', 'item.id'],
  ])('are refused with %s', async (_name, item, code, param) => {
    await start(dialect)
    const event = { type: 'conversation.item.create', item: { type: 'message', ...item } }
    expect(await refusal(event)).toMatchObject({ code, param, event_id: 'ev_1' })
  })

  it('may contain audio, which is heard', async () => {
    await start(dialect)
    const audio = Buffer.alloc(9600, 1).toString('base64')
    say('', { content: [{ type: 'input_audio', audio }] })
    const created = await lab.probe.next(nameIn(dialect))
    expect(created['item']).toMatchObject({ content: [{ type: 'input_audio', transcript: null }] })
    expect(JSON.stringify(created)).not.toContain(audio)
    lab.probe.send({ type: 'response.create', response: textIn(dialect) })
    expect(JSON.stringify(await lab.probe.next('response.done'))).toContain('I heard 200 ms of pcm16 audio')
  })
})

describe('responses', () => {
  it('come one at a time', async () => {
    await start('ga', { paceMs: 2 })
    say('#words=200')
    lab.probe.send({ type: 'response.create', response: textIn('ga') })
    const { id } = responseOf(await lab.probe.next('response.created'))
    expect(await refusal({ type: 'response.create' })).toMatchObject({
      code: 'conversation_already_has_active_response',
      message: `Conversation already has an active response in progress: ${String(id)}. Wait until the response is finished before creating a new one.`,
      event_id: 'ev_1',
    })
  })

  it('are cancelled, and another may follow at once', async () => {
    await start('beta', { paceMs: 2 })
    say('#words=200')
    lab.probe.send({ type: 'response.create', response: textIn('beta') })
    await lab.probe.next('response.text.delta')
    lab.probe.send({ type: 'response.cancel' })
    lab.probe.send({ type: 'response.create', response: { ...textIn('beta'), instructions: '#words=2' } })
    const events = await lab.probe.until('response.done')
    expect(responseOf(events.at(-1))).toMatchObject({
      status: 'cancelled',
      status_details: { type: 'cancelled', reason: 'client_cancelled' },
      output: [{ status: 'incomplete' }],
    })
    expect(shapeOf(events).slice(-4)).toEqual([
      'response.text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.done',
    ])
    expect(responseOf(await lab.probe.next('response.done'))).toMatchObject({ status: 'completed' })
  })

  it('cannot be cancelled when there is none', async () => {
    await start('ga')
    expect(await refusal({ type: 'response.cancel' })).toMatchObject({
      code: 'response_cancel_not_active',
      message: 'Cancellation failed: no active response found',
    })
    expect(await refusal({ type: 'response.cancel', response_id: 'resp_x' })).toMatchObject({
      code: 'response_cancel_not_active',
    })
  })

  it('beside the conversation leave no trace in it', async () => {
    await start('ga')
    say('remember', { id: 'item_a' })
    await lab.probe.next('conversation.item.done')
    const input = [
      { type: 'item_reference', id: 'item_a' },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'this' }] },
    ]
    lab.probe.send({
      type: 'response.create',
      response: { ...textIn('ga'), conversation: 'none', input, metadata: { a: 'b' } },
    })
    const events = await lab.probe.until('response.done')
    expect(typesOf(events)).not.toContain('conversation.item.added')
    expect(responseOf(events.at(-1))).toMatchObject({
      conversation_id: null,
      metadata: { a: 'b' },
      output: [{ content: [{ text: 'You said: remember You said: this' }] }],
    })
    const missing = { input: [{ type: 'item_reference', id: 'item_x' }] }
    expect(await refusal({ type: 'response.create', response: missing })).toMatchObject({
      param: 'response.input[0].id',
    })
  })

  it.each([
    ['ga', { modalities: ['text'] }, 'unknown_parameter', 'response.modalities'],
    ['ga', { temperature: 0.8 }, 'unknown_parameter', 'response.temperature'],
    ['ga', { output_modalities: ['audio', 'text'] }, 'invalid_value', 'response.output_modalities'],
    ['beta', { output_modalities: ['text'] }, 'unknown_parameter', 'response.output_modalities'],
    ['beta', { modalities: ['audio'] }, 'invalid_value', 'response.modalities'],
    ['beta', { temperature: 2 }, 'decimal_above_max_value', 'response.temperature'],
  ] as const)('of the %s dialect refuse %j', async (dialect, response, code, param) => {
    await start(dialect)
    expect(await refusal({ type: 'response.create', response })).toMatchObject({ code, param, event_id: 'ev_1' })
  })
})

const TOOL = {
  type: 'function',
  name: 'get_weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}

describe.each(['ga', 'beta'] as const)('a function call in the %s dialect', (dialect) => {
  const session = dialect === 'ga' ? { type: 'realtime', tools: [TOOL] } : { tools: [TOOL] }

  it('is made, answered and used', async () => {
    await start(dialect)
    lab.probe.send({ type: 'session.update', session })
    await lab.probe.next('session.updated')
    say('What is the weather?')
    lab.probe.send({ type: 'response.create' })
    const events = await lab.probe.until('response.done')
    const call = events.find(({ type }) => type === 'response.output_item.added')?.['item'] as RealtimeEvent
    expect(call).toMatchObject({ type: 'function_call', status: 'in_progress', name: 'get_weather', arguments: '' })
    const deltas = events.filter(({ type }) => type === 'response.function_call_arguments.delta')
    expect(deltas.length).toBeGreaterThan(1)
    expect(deltas.map(({ delta }) => delta).join('')).toBe('{"city":"example city"}')
    const done = events.find(({ type }) => type === 'response.function_call_arguments.done')
    expect(done).toMatchObject({ call_id: call['call_id'], arguments: '{"city":"example city"}' })
    expect(done?.['name']).toBe(dialect === 'ga' ? 'get_weather' : undefined)
    expect(responseOf(events.at(-1))).toMatchObject({ output: [{ type: 'function_call', status: 'completed' }] })

    const output = { type: 'function_call_output', call_id: call['call_id'], output: '{"temp_c":21}' }
    lab.probe.send({ type: 'conversation.item.create', item: output })
    lab.probe.send({ type: 'response.create', response: textIn(dialect) })
    expect(responseOf(await lab.probe.next('response.done'))).toMatchObject({
      output: [{ content: [{ text: 'The tool answered: {"temp_c":21}' }] }],
    })
  })

  it('may interleave with a message', async () => {
    await start(dialect)
    lab.probe.send({ type: 'session.update', session })
    await lab.probe.next('session.updated')
    say('#mixed')
    lab.probe.send({ type: 'response.create', response: textIn(dialect) })
    const events = await lab.probe.until('response.done')
    const indexes = events
      .filter(({ type }) => String(type).endsWith('.delta'))
      .map((event) => event['output_index'])
      .join('')
    expect(indexes).toMatch(/^0+(10){2,}/)
    expect(responseOf(events.at(-1))).toMatchObject({ output: [{ type: 'message' }, { type: 'function_call' }] })
  })
})

describe.each(['ga', 'beta'] as const)('an answer that is being spoken in the %s dialect', (dialect) => {
  const firstAudio = dialect === 'ga' ? 'response.output_audio.delta' : 'response.audio.delta'

  /** The id of the answer's item, and what was sent of its sound, in milliseconds. */
  const heardOf = (events: readonly RealtimeEvent[]): { itemId: unknown; heardMs: number } => ({
    itemId: events.find(({ type }) => type === 'response.output_item.added')?.['item'],
    heardMs: Math.floor(audioOf(events).length / 48),
  })

  it('is truncated at what was heard of it, and keeps that length when its end comes', async () => {
    await start(dialect)
    say('#stall')
    lab.probe.send({ type: 'response.create' })
    const { itemId: item, heardMs } = heardOf(await lab.probe.until(firstAudio))
    const { id } = item as { id: string }
    expect(heardMs).toBeGreaterThan(0)
    const place = { item_id: id, content_index: 0 }
    expect(await refusal({ type: 'conversation.item.truncate', ...place, audio_end_ms: heardMs + 1 })).toMatchObject({
      param: 'audio_end_ms',
    })
    lab.probe.send({ type: 'conversation.item.truncate', ...place, audio_end_ms: heardMs })
    expect(await lab.probe.next('conversation.item.truncated')).toMatchObject({ ...place, audio_end_ms: heardMs })
    lab.probe.send({ type: 'response.cancel' })
    expect(responseOf(await lab.probe.next('response.done'))).toMatchObject({ status: 'cancelled' })
    expect(await refusal({ type: 'conversation.item.truncate', ...place, audio_end_ms: heardMs + 1 })).toMatchObject({
      message: `Audio content of ${heardMs}ms is already shorter than ${heardMs + 1}ms`,
    })
    lab.probe.send({ type: 'conversation.item.retrieve', item_id: id })
    expect(await lab.probe.next('conversation.item.retrieved')).toMatchObject({
      item: { status: 'incomplete', content: [{ transcript: null }] },
    })
  })

  it('is not truncated before its first sound', async () => {
    await start(dialect, { paceMs: 60_000 })
    say('hello')
    lab.probe.send({ type: 'response.create' })
    const { item } = (await lab.probe.next('response.output_item.added')) as { item: { id: string } }
    const event = { type: 'conversation.item.truncate', item_id: item.id, content_index: 0, audio_end_ms: 0 }
    expect(await refusal(event)).toMatchObject({ message: 'Only model output audio messages can be truncated.' })
  })
})

describe('tools', () => {
  it('are called as in chat: the one that is named, else the first, with arguments as given; never when forbidden', async () => {
    await start('ga')
    const other = { type: 'function', name: 'get_time' }
    const ask = async (text: string, choice: unknown): Promise<unknown> => {
      say(text)
      const tools = { tools: [TOOL, other], tool_choice: choice }
      lab.probe.send({ type: 'response.create', response: { ...textIn('ga'), ...tools } })
      return responseOf(await lab.probe.next('response.done'))['output']
    }
    expect(await ask('use get_time now', 'auto')).toMatchObject([{ name: 'get_time', arguments: '{}' }])
    expect(await ask('anything', { type: 'function', name: 'get_time' })).toMatchObject([{ name: 'get_time' }])
    expect(await ask('anything', 'auto')).toMatchObject([{ name: 'get_weather' }])
    expect(await ask('#args={"city":"Oslo"}', 'auto')).toMatchObject([{ arguments: '{"city":"Oslo"}' }])
    expect(await ask('anything', 'none')).toMatchObject([{ type: 'message' }])
  })

  it('cannot be answered without having been called', async () => {
    await start('ga')
    const item = { type: 'function_call_output', call_id: 'call_x', output: '' }
    expect(await refusal({ type: 'conversation.item.create', item })).toMatchObject({ code: 'invalid_tool_call_id' })
  })
})

describe('a turn in text', () => {
  async function textTurn(dialect: 'ga' | 'beta') {
    await start(dialect)
    say('hello there')
    lab.probe.send({ type: 'response.create', response: textIn(dialect) })
    return lab.probe.until('rate_limits.updated')
  }

  it('has the order of the GA dialect', async () => {
    const events = await textTurn('ga')
    expect(shapeOf(events)).toEqual([
      'conversation.item.added',
      'conversation.item.done',
      'response.created',
      'response.output_item.added',
      'conversation.item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'conversation.item.done',
      'response.output_item.done',
      'response.done',
      'rate_limits.updated',
    ])
    expect(responseOf(events.at(-2))).toMatchObject({
      object: 'realtime.response',
      status: 'completed',
      status_details: null,
      output_modalities: ['text'],
      audio: { output: { format: { type: 'audio/pcm', rate: 24_000 }, voice: 'alloy' } },
      output: [{ role: 'assistant', content: [{ type: 'output_text', text: 'You said: hello there' }] }],
      usage: { input_token_details: { image_tokens: 0 }, output_token_details: { text_tokens: 4, audio_tokens: 0 } },
    })
    expect(events.at(-1)?.['rate_limits']).toEqual([expect.objectContaining({ name: 'tokens' })])
  })

  it('has the order of the beta dialect', async () => {
    const events = await textTurn('beta')
    expect(shapeOf(events)).toEqual([
      'conversation.item.created',
      'response.created',
      'response.output_item.added',
      'conversation.item.created',
      'response.content_part.added',
      'response.text.delta',
      'response.text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.done',
      'rate_limits.updated',
    ])
    expect(responseOf(events.at(-2))).toMatchObject({
      modalities: ['text'],
      output: [{ object: 'realtime.item', content: [{ type: 'text', text: 'You said: hello there' }] }],
    })
    expect(events.at(-1)?.['rate_limits']).toHaveLength(2)
  })

  it('is cached the second time', async () => {
    await start('ga')
    say('long '.repeat(100))
    lab.probe.send({ type: 'response.create', response: textIn('ga') })
    await lab.probe.next('rate_limits.updated')
    say('again')
    lab.probe.send({ type: 'response.create', response: textIn('ga') })
    expect(responseOf(await lab.probe.next('response.done'))).toMatchObject({
      usage: {
        input_token_details: { cached_tokens: 128, cached_tokens_details: { text_tokens: 128, audio_tokens: 0 } },
      },
    })
  })

  it('ends incomplete at the token limit', async () => {
    await start('beta')
    say('one two three four')
    lab.probe.send({ type: 'response.create', response: { ...textIn('beta'), max_output_tokens: 3 } })
    expect(responseOf(await lab.probe.next('response.done'))).toMatchObject({
      status: 'incomplete',
      status_details: { type: 'incomplete', reason: 'max_output_tokens' },
      output: [{ status: 'incomplete', content: [{ text: 'You said: one' }] }],
      usage: { output_tokens: 3 },
    })
  })
})
