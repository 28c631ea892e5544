import { readFileSync } from 'node:fs'
import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import OpenAI from 'openai'
import { FACTS, HELLO, REDACTED, SEALS, THOUGHT } from '../../../../test/support/chat-translation.js'
import { GatewayError } from '../../../core/errors.js'
import { JsonBody } from '../../../core/json-body.js'
import { JsonTexts } from '../../../core/json-text.js'
import type { ChatFields } from '../../openai-wire.js'
import type { EventTranslation, Translation } from '../../translator.js'
import { Verdicts } from '../../verdicts.js'
import { ThoughtMemory } from '../thought-memory.js'
import { chatOverMessages } from './chat-over-messages.js'

const USAGE = { input_tokens: 5, cache_read_input_tokens: 3, cache_creation_input_tokens: 2, output_tokens: 7 }
const CHAT_USAGE = {
  prompt_tokens: 10,
  completion_tokens: 7,
  total_tokens: 17,
  prompt_tokens_details: { cached_tokens: 3, cache_write_tokens: 2, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: 0,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
}
const CUSTOM = { tools: [{ type: 'custom', custom: { name: 'c' } }] }
const LEGACY = { functions: [{ name: 'f' }] }

type Fields = Record<string, unknown>

interface Translated {
  readonly translation: Translation<object>
  readonly sent: Fields
  readonly memory: ReturnType<ThoughtMemory['of']>
  readonly heldBytes: () => number
}

function translated(fields: object = {}, memory = new ThoughtMemory().of('owner', SEALS)): Translated {
  const text = JSON.stringify({ model: 'mine', max_tokens: 4000, messages: HELLO, ...fields })
  const body = JsonBody.parse(Buffer.from(text)) as unknown as JsonBody<ChatFields>
  const verdicts = new Verdicts({ client: 'chat', upstream: 'messages' }, false)
  let held = 0
  const lease = { add: (bytes: number) => void (held += bytes) }
  const target = {
    upstreamModel: 'theirs',
    facts: FACTS,
    requestId: 'r',
    seals: SEALS,
    thoughts: memory,
    memory: lease,
  }
  const translation = chatOverMessages(body, target, verdicts)
  const sent = JSON.parse(translation.request.bytes.toString()) as Fields
  return { translation, sent, memory, heldBytes: () => held }
}

const answerText = (content: string, more: object = {}): string =>
  `{"id":"msg_1","type":"message","role":"assistant","model":"theirs","content":${content},` +
  JSON.stringify({ stop_reason: 'end_turn', stop_sequence: null, usage: USAGE, ...more }).slice(1)

function whole({ translation }: Translated, text: string): Fields {
  const bytes = Buffer.from(text)
  return JSON.parse(translation.response(JSON.parse(text) as Fields, new JsonTexts(bytes))) as Fields
}

const choiceOf = (completion: Fields): Fields => (completion['choices'] as Fields[])[0] ?? {}
const answered = (content: object[], more: object = {}, fields: object = {}): Fields =>
  choiceOf(whole(translated(fields), answerText(JSON.stringify(content), more)))

const text = (words: string): object => ({ type: 'text', text: words, citations: null })
const use = (id: string, name: string, input: unknown): object => ({
  type: 'tool_use',
  id,
  name,
  input,
  caller: { type: 'direct' },
})
const messageOf = (more: object): object => ({ role: 'assistant', content: null, refusal: null, ...more })

describe('a whole answer of an upstream that speaks messages', () => {
  it('has every member of a chat completion', () => {
    const before = Math.floor(Date.now() / 1000)
    const completion = whole(translated(), answerText(JSON.stringify([text('Hel'), text('lo')])))
    expect(completion).toEqual({
      id: 'msg_1',
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'mine',
      choices: [{ index: 0, message: messageOf({ content: 'Hello' }), logprobs: null, finish_reason: 'stop' }],
      usage: CHAT_USAGE,
    })
    expect(completion['created']).toBeGreaterThanOrEqual(before)
  })

  it.each([
    ['nothing', [], 'end_turn', messageOf({ content: '' })],
    [
      'thinking',
      [THOUGHT, REDACTED, text('a')],
      'end_turn',
      messageOf({ content: 'a', reasoning_content: 'Hm.', thinking_blocks: [THOUGHT, REDACTED] }),
    ],
    [
      'thinking that is not shown',
      [{ ...THOUGHT, thinking: '' }, text('a')],
      'end_turn',
      messageOf({ content: 'a', thinking_blocks: [{ ...THOUGHT, thinking: '' }] }),
    ],
    [
      'thinking without a signature',
      [{ type: 'thinking', thinking: 'Hm.', signature: '' }, text('a')],
      'end_turn',
      messageOf({ content: 'a', reasoning_content: 'Hm.' }),
    ],
    [
      'calls',
      [use('a', 'f', { x: 1 }), use('b', 'g', {})],
      'tool_use',
      messageOf({
        tool_calls: [
          ['a', 'f', '{"x":1}'],
          ['b', 'g', '{}'],
        ].map(([id, name, args]) => ({ id, type: 'function', function: { name, arguments: args } })),
      }),
    ],
    [
      'blocks of other types',
      [{ type: 'server_tool_use', id: 's', name: 'x', input: {} }, text('a')],
      'end_turn',
      messageOf({ content: 'a' }),
    ],
  ])('of %s is a chat message', (_name, content, stop_reason, message) => {
    expect(answered(content, { stop_reason })['message']).toEqual(message)
  })

  it.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['tool_use', 'tool_calls'],
    ['refusal', 'content_filter'],
    ['a_new_word', 'stop'],
  ])('that ended with %s has the finish reason %s', (stop_reason, finish_reason) => {
    const calls = stop_reason === 'tool_use' ? [use('x', 'f', {})] : []
    expect(answered([text('a'), ...calls], { stop_reason })['finish_reason']).toBe(finish_reason)
  })

  it('that is a refusal says so, and hands on no call of a tool', () => {
    const stop_details = { type: 'refusal', category: null, explanation: 'No.' }
    const { message } = answered([text('a'), use('a', 'f', {})], { stop_reason: 'refusal', stop_details })
    expect(message).toEqual(messageOf({ content: 'a', refusal: 'No.' }))
    const silent = answered([use('a', 'f', {})], { stop_reason: 'refusal', stop_details: null })
    expect(silent['message']).toEqual(messageOf({ refusal: 'The model refused to answer.' }))
  })

  it('has the inputs of calls as they were spelled', () => {
    const input = '{"z":1.0,"a":[1e400,12345678901234567890],"2":-0}'
    const content = `[{"type":"tool_use","id":"a","name":"f","input":${input}}]`
    const choice = choiceOf(whole(translated(), answerText(content, { stop_reason: 'tool_use' })))
    expect(choice).toMatchObject({ message: { tool_calls: [{ function: { arguments: input } }] } })
  })

  it('calls custom tools with their text, or with what the model has made of it', () => {
    const content = [use('a', 'c', { input: 'text' }), use('b', 'c', { other: 1 })]
    expect(answered(content, { stop_reason: 'tool_use' }, CUSTOM)['message']).toMatchObject({
      tool_calls: [
        { id: 'a', type: 'custom', custom: { name: 'c', input: 'text' } },
        { id: 'b', type: 'custom', custom: { name: 'c', input: '{"other":1}' } },
      ],
    })
  })

  it('is of the old form where the request is', () => {
    const choice = answered([use('a', 'f', { x: 1 })], { stop_reason: 'tool_use' }, LEGACY)
    expect(choice['message']).toEqual(messageOf({ function_call: { name: 'f', arguments: '{"x":1}' } }))
    expect(choice['finish_reason']).toBe('function_call')
    expect(() => answered([use('a', 'f', {}), use('b', 'f', {})], { stop_reason: 'tool_use' }, LEGACY)).toThrow(
      GatewayError,
    )
  })

  it('keeps figures that are missing missing', () => {
    expect(whole(translated(), answerText('[]', { usage: undefined }))['usage']).toBeUndefined()
  })

  it.each([
    ['pause_turn', answerText('[]', { stop_reason: 'pause_turn' })],
    ['no end', answerText('[]', { stop_reason: null })],
    ['no content', answerText('null')],
    ['no id', '{"content":[],"stop_reason":"end_turn"}'],
    ['a call without its name', answerText('[{"type":"tool_use","id":"a","input":{}}]')],
  ])('with %s is the upstream’s failure', (_name, answer) => {
    expect(() => whole(translated(), answer)).toThrow(expect.objectContaining({ kind: 'upstream_failed' }))
  })

  it('leaves what was thought before each call with the gateway', () => {
    const asked = translated()
    const content = [THOUGHT, REDACTED, text('a'), use('a', 'f', {}), use('b', 'f', {}), THOUGHT, use('c', 'f', {})]
    whole(asked, answerText(JSON.stringify(content), { stop_reason: 'tool_use' }))
    expect(['a', 'b', 'c'].map((id) => asked.memory.recall(id))).toEqual([
      JSON.stringify([THOUGHT, REDACTED]),
      undefined,
      JSON.stringify([{ ...THOUGHT, textBefore: 1 }]),
    ])
  })
})

/** Events of a message as an upstream streams it. */
function eventsOf(
  content: readonly object[],
  { stop_reason = 'end_turn', ...more }: { stop_reason?: string } & Fields = {},
): Fields[] {
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'theirs',
    content: [],
    stop_reason: null,
    usage: { ...USAGE, output_tokens: 1 },
  }
  return [
    { type: 'message_start', message },
    ...content.flatMap((block, index) => blockEvents(block as Fields, index)),
    {
      type: 'message_delta',
      delta: { stop_reason, stop_sequence: null, ...more },
      usage: { output_tokens: 7, input_tokens: null },
    },
    { type: 'message_stop' },
  ]
}

function blockEvents(block: Fields, index: number): Fields[] {
  const empty: Fields = { text: { text: '' }, thinking: { thinking: '', signature: '' }, tool_use: { input: {} } }
  const start = {
    type: 'content_block_start',
    index,
    content_block: { ...block, ...(empty[String(block['type'])] as Fields) },
  }
  const deltas = deltasOf(block).map((delta) => ({ type: 'content_block_delta', index, delta }))
  return [start, ...deltas, { type: 'content_block_stop', index }]
}

function deltasOf({ type, text: words, thinking, signature, input }: Fields): Fields[] {
  if (type === 'text') return halves(String(words)).map((half) => ({ type: 'text_delta', text: half }))
  if (type === 'thinking') {
    return [
      ...halves(String(thinking)).map((half) => ({ type: 'thinking_delta', thinking: half })),
      { type: 'signature_delta', signature },
    ]
  }
  if (type !== 'tool_use') return []
  return ['', ...halves(JSON.stringify(input))].map((partial_json) => ({ type: 'input_json_delta', partial_json }))
}

const halves = (words: string): string[] => [words.slice(0, words.length / 2), words.slice(words.length / 2)]

const streamed = (events: readonly Fields[], translation: EventTranslation): string =>
  events.map((event) => translation.event(event)).join('') + translation.end()

const dataIn = (frames: string): unknown[] =>
  frames
    .split('\n\n')
    .filter((frame) => frame !== '')
    .map((frame): unknown => {
      expect(frame).toMatch(/^(?:data|:) ?[^\n]+$/)
      return frame.startsWith('data: {') ? JSON.parse(frame.slice(6)) : frame
    })

const deltasIn = (frames: string): unknown[] =>
  dataIn(frames).flatMap((chunk) => ((chunk as { choices?: Fields[] }).choices ?? []).map(({ delta }) => delta))

/** The final message that the client's SDK makes of the frames. */
async function finalOf(frames: string): Promise<unknown> {
  const response = new Response(frames, { headers: { 'content-type': 'text/event-stream' } })
  const client = new OpenAI({ apiKey: 'k', maxRetries: 0, fetch: () => Promise.resolve(response) })
  const { id, model, choices, usage } = await client.chat.completions
    .stream({ model: 'mine', messages: [], stream_options: { include_usage: true } })
    .finalChatCompletion()
  return { id, model, usage, choices }
}

const WITH_USAGE = { stream: true, stream_options: { include_usage: true } }

describe('a streamed answer of an upstream that speaks messages', () => {
  it('is a stream of chunks with every member', () => {
    const chunks = dataIn(streamed(eventsOf([text('Hi')]), translated({ stream: true }).translation.events()))
    const chunk = (delta: object, finish_reason: string | null = null): object => ({
      id: 'msg_1',
      object: 'chat.completion.chunk',
      created: expect.any(Number),
      model: 'mine',
      choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    })
    expect(chunks).toEqual([
      chunk({ role: 'assistant', content: '' }),
      chunk({ content: 'H' }),
      chunk({ content: 'i' }),
      chunk({}, 'stop'),
      'data: [DONE]',
    ])
  })

  it('ends with totals where the caller asked for them', () => {
    const chunks = dataIn(streamed(eventsOf([text('Hi')]), translated(WITH_USAGE).translation.events()))
    expect(chunks.slice(0, -2).every((chunk) => (chunk as Fields)['usage'] === null)).toBe(true)
    expect(chunks.at(-2)).toMatchObject({ choices: [], usage: CHAT_USAGE })
    expect(chunks.at(-1)).toBe('data: [DONE]')
  })

  it('ends without totals where the upstream reports none', () => {
    const events = eventsOf([text('Hi')]).map(({ usage: _usage, message, ...event }) =>
      message === undefined ? event : { ...event, message: { id: 'msg_1' } },
    )
    const chunks = dataIn(streamed(events, translated(WITH_USAGE).translation.events()))
    expect(chunks.at(-2)).toMatchObject({ choices: [{ finish_reason: 'stop' }] })
  })

  it('tells calls by their number, not by their place among the blocks', () => {
    const content = [text('a'), use('x', 'f', { a: 1 }), use('y', 'g', {})]
    const deltas = deltasIn(streamed(eventsOf(content, { stop_reason: 'tool_use' }), translated().translation.events()))
    expect(deltas.filter((delta) => JSON.stringify(delta).includes('tool_calls'))).toEqual([
      { tool_calls: [{ index: 0, id: 'x', type: 'function', function: { name: 'f', arguments: '' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{"a' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '":1}' } }] },
      { tool_calls: [{ index: 1, id: 'y', type: 'function', function: { name: 'g', arguments: '' } }] },
      { tool_calls: [{ index: 1, function: { arguments: '{' } }] },
      { tool_calls: [{ index: 1, function: { arguments: '}' } }] },
    ])
  })

  it.each([
    ['no piece', {}, '{}'],
    ['its input at once', { a: 1 }, '{"a":1}'],
  ])('gives a call with %s its arguments', (_name, input, expected) => {
    const { translation } = translated()
    const events = translation.events()
    events.event(eventsOf([])[0] ?? {})
    events.event({ type: 'content_block_start', index: 0, content_block: use('x', 'f', input) })
    expect(deltasIn(events.event({ type: 'content_block_stop', index: 0 }))).toEqual([
      { tool_calls: [{ index: 0, function: { arguments: expected } }] },
    ])
  })

  it('shows thinking as it comes, and its block once at its end', () => {
    const asked = translated()
    const content = [THOUGHT, REDACTED, { ...THOUGHT, thinking: '' }, use('x', 'f', {})]
    const deltas = deltasIn(streamed(eventsOf(content, { stop_reason: 'tool_use' }), asked.translation.events()))
    expect(deltas.slice(1, 6)).toEqual([
      { reasoning_content: 'H' },
      { reasoning_content: 'm.' },
      { thinking_blocks: [THOUGHT] },
      { thinking_blocks: [REDACTED] },
      { thinking_blocks: [{ ...THOUGHT, thinking: '' }] },
    ])
    expect(asked.memory.recall('x')).toBe(JSON.stringify(content.slice(0, 3)))
    // What only the upstream reads is kept as well, until a call comes.
    expect(asked.heldBytes()).toBe('Hm.sig'.length + 'xx'.length + 'sig'.length)
  })

  it('counts the input of a custom tool that is held', () => {
    const asked = translated(CUSTOM)
    streamed(eventsOf([use('x', 'c', { input: 'é' })], { stop_reason: 'tool_use' }), asked.translation.events())
    expect(asked.heldBytes()).toBe(14)
  })

  it('tells a custom call at its end, with its text', () => {
    const content = [use('x', 'c', { input: 'te\nxt' }), use('y', 'c', [1]), use('z', 'f', {})]
    const deltas = deltasIn(
      streamed(eventsOf(content, { stop_reason: 'tool_use' }), translated(CUSTOM).translation.events()),
    )
    expect(deltas.slice(1, 4)).toEqual([
      { tool_calls: [{ index: 0, id: 'x', type: 'custom', custom: { name: 'c', input: 'te\nxt' } }] },
      { tool_calls: [{ index: 1, id: 'y', type: 'custom', custom: { name: 'c', input: '[1]' } }] },
      { tool_calls: [{ index: 2, id: 'z', type: 'function', function: { name: 'f', arguments: '' } }] },
    ])
  })

  it('is of the old form where the request is', () => {
    const events = eventsOf([use('x', 'f', { a: 1 })], { stop_reason: 'tool_use' })
    const frames = streamed(events, translated(LEGACY).translation.events())
    expect(deltasIn(frames)).toEqual([
      { role: 'assistant', content: '' },
      { function_call: { name: 'f', arguments: '' } },
      { function_call: { arguments: '{"a' } },
      { function_call: { arguments: '":1}' } },
      {},
    ])
    expect(frames).toContain('"finish_reason":"function_call"')
    const two = eventsOf([use('x', 'f', {}), use('y', 'f', {})])
    expect(() => streamed(two, translated(LEGACY).translation.events())).toThrow(GatewayError)
  })

  it('ends a refusal with its explanation', () => {
    const events = eventsOf([text('ab')], {
      stop_reason: 'refusal',
      stop_details: { type: 'refusal', explanation: 'No.' },
    })
    const frames = streamed(events, translated().translation.events())
    expect(deltasIn(frames).slice(-2)).toEqual([{ refusal: 'No.' }, {}])
    expect(frames).toContain('"finish_reason":"content_filter"')
  })

  it('passes signs of life and leaves out what it does not know', () => {
    const events = translated().translation.events()
    events.event(eventsOf([])[0] ?? {})
    expect(events.event({ type: 'ping' })).toBe(': ping\n\n')
    events.event({ type: 'content_block_start', index: 0, content_block: { type: 'new' } })
    expect(
      [
        { type: 'new' },
        { type: 'constructor' },
        { type: 'content_block_delta', index: 0, delta: { type: 'new_delta' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'citations_delta', citation: {} } },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta' },
        { type: 'message_stop' },
      ].map((event) => events.event(event)),
    ).toEqual(['', '', '', '', '', '', ''])
  })

  it('begins a text or thinking with what its start holds already', () => {
    const events = translated().translation.events()
    events.event(eventsOf([])[0] ?? {})
    expect(deltasIn(events.event({ type: 'content_block_start', index: 0, content_block: text('Hi') }))).toEqual([
      { content: 'Hi' },
    ])
    events.event({ type: 'content_block_start', index: 1, content_block: THOUGHT })
    expect(deltasIn(events.event({ type: 'content_block_stop', index: 1 }))).toEqual([{ thinking_blocks: [THOUGHT] }])
  })

  const CUT = eventsOf([THOUGHT, text('Hi'), use('x', 'f', { a: 1 })], { stop_reason: 'tool_use' })

  it.each(CUT.slice(0, -2).map((_event, index) => index))('that is cut after event %d never ends', (index) => {
    const events = translated(WITH_USAGE).translation.events()
    const frames = CUT.slice(0, index + 1)
      .map((event) => events.event(event))
      .join('')
    expect(frames).not.toMatch(/\[DONE\]|"finish_reason":"|"prompt_tokens"/)
    expect(() => events.end()).toThrow(expect.objectContaining({ kind: 'upstream_failed' }))
  })

  const started = CUT[0] ?? {}

  it.each([
    ['a message that is none', [{ type: 'message_start' }]],
    ['two messages', [started, started]],
    ['a block before its message', [{ type: 'content_block_start', index: 0, content_block: text('') }]],
    ['a block that is none', [started, { type: 'content_block_start', index: 0 }]],
    [
      'a call without its name',
      [started, { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 'x' } }],
    ],
    [
      'a piece of no block',
      [started, { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'x' } }],
    ],
    [
      'a piece in a block of another kind',
      [
        started,
        { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'x' } },
        ...eventsOf([]).slice(1),
      ],
    ],
    [
      'a piece that is none',
      [
        started,
        { type: 'content_block_start', index: 0, content_block: text('') },
        { type: 'content_block_delta', index: 0 },
      ],
    ],
    [
      'a piece of a block behind which another one has begun',
      [
        started,
        { type: 'content_block_start', index: 0, content_block: text('') },
        { type: 'content_block_start', index: 1, content_block: text('') },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'x' } },
      ],
    ],
    ['a message without an id', [{ type: 'message_start', message: {} }]],
    ['the end of no block', [started, { type: 'content_block_stop', index: 0 }]],
    ['an end within a call', [...CUT.slice(0, -3), ...CUT.slice(-2)]],
    [
      'a block that begins within a call',
      [
        started,
        ...blockEvents(use('x', 'f', { a: 1 }) as Fields, 0).slice(0, -1),
        ...eventsOf([text('a'), use('y', 'f', {})], { stop_reason: 'tool_use' }).slice(5),
      ],
    ],
    ['an end before the message', CUT.slice(-2)],
    ['a turn that is only paused', eventsOf([], { stop_reason: 'pause_turn' })],
  ])('with %s is the upstream’s failure', (_name, events) => {
    expect(() => streamed(events, translated().translation.events())).toThrow(
      expect.objectContaining({ kind: 'upstream_failed' }),
    )
  })

  it.each([
    ['max_tokens', 'length'],
    ['refusal', 'content_filter'],
  ])('may end with %s within a call, which is then not taken for a whole one', (stop_reason, finish) => {
    const within = [started, ...blockEvents(use('x', 'f', { a: 1 }) as Fields, 0).slice(0, -2)]
    const frames = streamed([...within, ...eventsOf([], { stop_reason }).slice(1)], translated().translation.events())
    expect(deltasIn(frames)).toContainEqual({ tool_calls: [{ index: 0, function: { arguments: '{"a' } }] })
    expect(frames).toContain(`"finish_reason":"${finish}"`)
  })

  it('holds no more than is reasonable', () => {
    const fed = (block: object, delta: object, times: number) => (): void => {
      const events = translated(CUSTOM).translation.events()
      events.event(started)
      events.event({ type: 'content_block_start', index: 0, content_block: block })
      for (let time = 0; time < times; time++) events.event({ type: 'content_block_delta', index: 0, delta })
    }
    const piece = 'x'.repeat(64 * 1024)
    const input = { type: 'input_json_delta', partial_json: piece }
    expect(fed(use('x', 'c', {}), input, 4)).not.toThrow()
    expect(fed(use('x', 'c', {}), input, 5)).toThrow(GatewayError)
    expect(fed(use('x', 'f', {}), input, 200)).not.toThrow()
    const thinking = { type: 'thinking_delta', thinking: piece }
    expect(fed({ ...THOUGHT, thinking: '' }, thinking, 128)).not.toThrow()
    expect(fed({ ...THOUGHT, thinking: '' }, thinking, 129)).toThrow(GatewayError)
    const hidden = (block: object, times: number) => (): void => {
      const events = translated().translation.events()
      events.event(started)
      for (let time = 0; time < times; time++) for (const event of blockEvents(block as Fields, 0)) events.event(event)
    }
    const redacted = { type: 'redacted_thinking', data: piece }
    expect(hidden(redacted, 128)).not.toThrow()
    expect(hidden(redacted, 129)).toThrow(expect.objectContaining({ kind: 'upstream_failed' }))
    const signed = { type: 'thinking', thinking: '', signature: piece }
    expect(hidden(signed, 128)).not.toThrow()
    expect(hidden(signed, 129)).toThrow(expect.objectContaining({ kind: 'upstream_failed' }))
  })

  it.each([
    ['a text', [THOUGHT, text('Hello')], 'end_turn', {}],
    ['calls', [text('a'), use('x', 'f', { a: [1, 'é'] }), use('y', 'g', {})], 'tool_use', {}],
    ['a call of the old form', [use('x', 'f', { a: 1 })], 'tool_use', LEGACY],
    ['a truncated text', [text('Hel')], 'max_tokens', {}],
    ['a refusal', [text('Hel')], 'refusal', {}],
  ])('makes for the client’s SDK the same of %s as a whole answer', async (_name, content, stop_reason, fields) => {
    const asked = translated({ ...WITH_USAGE, ...fields })
    const final = await finalOf(streamed(eventsOf(content, { stop_reason }), asked.translation.events()))
    const { id, model, choices, usage } = whole(asked, answerText(JSON.stringify(content), { stop_reason }))
    // Its helper keeps only the last of the members that it does not know.
    const parsed: Fields = { ...(choiceOf({ choices })['message'] as Fields), parsed: null }
    delete parsed['reasoning_content']
    expect(final).toMatchObject({
      id,
      model,
      usage,
      choices: [{ ...choiceOf({ choices }), message: expect.objectContaining(parsed) }],
    })
  })
})

describe('a turn of a conversation', () => {
  const words = fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }).filter((value) => value.trim() !== '')
  const ids = fc.uniqueArray(fc.stringMatching(/^[\w-]{1,64}$/), { minLength: 0, maxLength: 4 })
  const thinking = fc.oneof(
    fc.record({
      type: fc.constant('thinking'),
      thinking: fc.string({ unit: 'binary' }),
      signature: fc.string({ minLength: 1 }),
    }),
    fc.record({ type: fc.constant('redacted_thinking'), data: fc.string({ minLength: 1 }) }),
  )
  const turn = fc.tuple(
    fc.array(thinking, { maxLength: 3 }),
    fc.option(words, { nil: undefined }),
    ids.chain((callIds) =>
      fc.tuple(
        ...callIds.map((id) =>
          fc.record({
            type: fc.constant('tool_use'),
            id: fc.constant(id),
            name: fc.constant('f'),
            input: fc.dictionary(
              fc.string().filter((key) => key !== '__proto__'),
              fc.jsonValue({ maxDepth: 2 }),
            ),
          }),
        ),
      ),
    ),
  )

  it('comes back to the upstream as it came from it, whole or in a stream, kept by the client or remembered', () => {
    fc.assert(
      fc.property(turn, fc.boolean(), fc.boolean(), ([thoughts, said, calls], isStreamed, isKept) => {
        const content = [
          ...thoughts,
          ...(said === undefined ? [] : [{ type: 'text', text: said }]),
          ...calls,
        ] as Fields[]
        if (said === undefined && calls.length === 0) return
        const stop_reason = calls.length > 0 ? 'tool_use' : 'end_turn'
        const asked = translated()
        const message = isStreamed
          ? accumulated(streamed(eventsOf(content, { stop_reason }), asked.translation.events()))
          : (choiceOf(whole(asked, answerText(JSON.stringify(content), { stop_reason })))['message'] as Fields)
        const { thinking_blocks: blocks, ...others } = message
        const isRemembered = !isKept && calls.length > 0
        const pushed = isRemembered
          ? others
          : { ...others, ...(blocks === undefined ? {} : { thinking_blocks: blocks }) }
        const results = calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'done' }))
        const messages = [...HELLO, pushed, ...results, ...HELLO]
        const { sent } = translated({ messages }, isRemembered ? asked.memory : undefined)
        const back = (sent['messages'] as Fields[])[1]?.['content']
        expect(typeof back === 'string' ? [{ type: 'text', text: back }] : back).toEqual(
          JSON.parse(JSON.stringify(content)),
        )
      }),
      { numRuns: 300 },
    )
  })

  it.each([true, false])('comes back from between two texts, in a stream: %s', (isStreamed) => {
    const asked = translated()
    const content = [THOUGHT, text('Let me see.\n'), REDACTED, text('So:'), use('a', 'f', {})] as Fields[]
    const message = isStreamed
      ? accumulated(streamed(eventsOf(content, { stop_reason: 'tool_use' }), asked.translation.events()))
      : choiceOf(whole(asked, answerText(JSON.stringify(content), { stop_reason: 'tool_use' })))['message']
    const messages = [...HELLO, message, { role: 'tool', tool_call_id: 'a', content: 'done' }]
    const { sent } = translated({ messages }, asked.memory)
    expect((sent['messages'] as Fields[])[1]?.['content']).toMatchObject([
      THOUGHT,
      { type: 'text', text: 'Let me see.\n' },
      REDACTED,
      { type: 'text', text: 'So:' },
      { type: 'tool_use', id: 'a' },
    ])
  })

  /** As a client puts chunks together that knows every member. */
  function accumulated(frames: string): Fields {
    const message: Fields = { role: 'assistant', content: '' }
    const blocks: unknown[] = []
    const calls: { id: unknown; type: string; function: { name: unknown; arguments: string } }[] = []
    for (const delta of deltasIn(frames) as Fields[]) {
      message['content'] = String(message['content']) + (typeof delta['content'] === 'string' ? delta['content'] : '')
      blocks.push(...((delta['thinking_blocks'] ?? []) as unknown[]))
      for (const { index, id, function: piece } of (delta['tool_calls'] ?? []) as Fields[]) {
        const { name, arguments: more } = piece as Fields
        const call = (calls[Number(index)] ??= { id, type: 'function', function: { name, arguments: '' } })
        call.function.arguments += String(more)
      }
    }
    return {
      ...message,
      ...(blocks.length > 0 ? { thinking_blocks: blocks } : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    }
  }
})

describe('the types of the upstream’s SDK', () => {
  const types = readFileSync('node_modules/@anthropic-ai/sdk/resources/messages/messages.d.ts', 'utf8')
  const unionOf = (name: string): string[] =>
    (new RegExp(`^export type ${name} = ([^;]+);`, 'm').exec(types)?.[1] ?? '').split(' | ')
  const typeOf = (name: string): string =>
    new RegExp(`^export interface ${name} \\{.*?^ {4}type: '(\\w+)'`, 'ms').exec(types)?.[1] ?? ''

  it('have no stop reason beyond those with a verdict', () => {
    const known = [
      'end_turn',
      'max_tokens',
      'stop_sequence',
      'tool_use',
      'pause_turn',
      'refusal',
      'model_context_window_exceeded',
    ]
    expect(
      unionOf('StopReason')
        .map((word) => word.slice(1, -1))
        .sort(),
    ).toEqual([...known].sort())
  })

  it('have no block beyond those that are translated, and those of tools that requests cannot ask for', () => {
    const known = ['text', 'thinking', 'redacted_thinking', 'tool_use']
    const asked = unionOf('ContentBlock')
      .map(typeOf)
      .filter((type) => !/^server_tool_use$|_tool_result$|^container_upload$/.test(type))
    expect(asked.sort()).toEqual([...known].sort())
  })

  it('have no delta and no event beyond those with a verdict', () => {
    expect(unionOf('RawContentBlockDelta').map(typeOf).sort()).toEqual([
      'citations_delta',
      'input_json_delta',
      'signature_delta',
      'text_delta',
      'thinking_delta',
    ])
    expect(unionOf('RawMessageStreamEvent').map(typeOf).sort()).toEqual([
      'content_block_delta',
      'content_block_start',
      'content_block_stop',
      'message_delta',
      'message_start',
      'message_stop',
    ])
  })
})
