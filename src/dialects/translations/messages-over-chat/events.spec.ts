import { describe, expect, it } from '@jest/globals'
import { MessageStream } from '@anthropic-ai/sdk/lib/MessageStream.js'
import { thrownBy, TranslationRun } from '../../../../test/support/translation.js'
import { estimateInputTokens, type MessagesFields } from '../../anthropic-messages.js'
import type { ChatFields } from '../../openai-wire.js'
import { messagesOverChat } from './messages-over-chat.js'

type Members = Record<string, unknown>

const FIELDS = { model: 'claude-here', max_tokens: 9, stream: true, messages: [{ role: 'user', content: 'Hello' }] }

const run = (memory?: { add: (bytes: number) => void }): TranslationRun<MessagesFields, ChatFields> =>
  new TranslationRun<MessagesFields, ChatFields>({ client: 'messages', upstream: 'chat' }, messagesOverChat, FIELDS, {
    isStrict: true,
    requestId: 'req1',
    memory,
  })

const chunkOf = (choices: Members[], more: Members = {}): Members => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'some-model-2026',
  choices,
  ...more,
})
const delta = (members: Members, finishReason: string | null = null): Members =>
  chunkOf([{ index: 0, delta: members, logprobs: null, finish_reason: finishReason }])
const piece = (index: number, input: string, head: { id?: string; name?: string } = {}): Members => ({
  index,
  ...(head.id === undefined ? {} : { id: head.id, type: 'function' }),
  function: { ...(head.name === undefined ? {} : { name: head.name }), arguments: input },
})
const calls = (...pieces: Members[]): Members => delta({ tool_calls: pieces })
const head = (index: number): { id: string; name: string } => ({ id: `c${index}`, name: `tool${index}` })
/** What is counted of a call with such a head. */
const CALL_BYTES = 256 + 'c0tool0'.length
const FINISH = delta({}, 'stop')
const USAGE = {
  prompt_tokens: 100,
  completion_tokens: 30,
  total_tokens: 130,
  prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 15 },
  completion_tokens_details: { reasoning_tokens: 20 },
}
const USAGE_CHUNK = chunkOf([], { usage: USAGE })
const ROLE = delta({ role: 'assistant', content: '', refusal: null })

/** The client's events; each frame is checked for its form. */
function eventsIn(frames: string): Members[] {
  return frames
    .split('\n\n')
    .slice(0, -1)
    .map((frame) => {
      const [, name, data = ''] = /^event: (\w+)\ndata: (.*)$/.exec(frame) ?? []
      const event = JSON.parse(data) as Members
      expect(event['type']).toBe(name)
      return event
    })
}

const play = (...chunks: Members[]): Members[] => eventsIn(run().frames(chunks))

/** As short as possible: `0+text`, `0:Hello`, `0-`. */
const outline = (events: readonly Members[]): string[] =>
  events.flatMap(({ type, index, content_block: block, delta: change }) => {
    if (type === 'content_block_start') return [`${String(index)}+${(block as { type: string }).type}`]
    if (type === 'content_block_stop') return [`${String(index)}-`]
    if (type !== 'content_block_delta') return []
    const { signature, text, thinking, partial_json: json } = change as Record<string, string>
    return [signature === undefined ? `${String(index)}:${text ?? thinking ?? json ?? ''}` : `${String(index)}!`]
  })

/** What the vendor's own client makes of the events. */
async function finalMessage(events: readonly Members[]): Promise<unknown> {
  const lines = new TextEncoder().encode(events.map((event) => `${JSON.stringify(event)}\n`).join(''))
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(lines)
      controller.close()
    },
  })
  // The client adds it to every answer.
  return { ...(await MessageStream.fromReadableStream(stream).finalMessage()), parsed_output: undefined }
}

/** The whole answer for what the chunks say. */
function wholeMessage(message: Members, finishReason: string, usage: unknown = USAGE): unknown {
  const answer = { id: 'chatcmpl-1', choices: [{ index: 0, message, finish_reason: finishReason }], usage }
  return JSON.parse(run().answerText(answer))
}

describe('A stream of chat chunks', () => {
  it('becomes the events of a message with every member of their types', () => {
    expect(play(ROLE, delta({ content: 'Hel' }), delta({ content: 'lo' }), FINISH, USAGE_CHUNK)).toEqual([
      {
        type: 'message_start',
        message: {
          id: 'chatcmpl-1',
          type: 'message',
          role: 'assistant',
          model: 'claude-here',
          content: [],
          stop_reason: null,
          stop_sequence: null,
          stop_details: null,
          container: null,
          diagnostics: null,
          usage: {
            input_tokens: estimateInputTokens(FIELDS, false),
            cache_creation_input_tokens: 0,
            cache_read_input_tokens: 0,
            cache_creation: null,
            output_tokens: 0,
            output_tokens_details: null,
            inference_geo: null,
            server_tool_use: null,
            service_tier: null,
            speed: null,
          },
        },
      },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '', citations: null } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hel' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'lo' } },
      { type: 'content_block_stop', index: 0 },
      {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn', stop_sequence: null, stop_details: null, container: null },
        usage: {
          input_tokens: 25,
          cache_creation_input_tokens: 15,
          cache_read_input_tokens: 60,
          output_tokens: 30,
          output_tokens_details: { thinking_tokens: 20 },
          server_tool_use: null,
        },
      },
      { type: 'message_stop' },
    ])
  })

  it.each([
    ['text', delta({ content: 'Hi' })],
    ['a call', calls(piece(0, '', head(0)))],
    ['thoughts', delta({ reasoning: 'Hm' })],
    ['a finish reason', FINISH],
    ['nothing known', { id: 'chatcmpl-1', obfuscation: 'x' }],
    ['usage', USAGE_CHUNK],
  ])('is opened by a first chunk of any kind: %s', (_name, first) => {
    expect(eventsIn(run().translation.events().event(first))[0]).toMatchObject({
      type: 'message_start',
      message: { id: 'chatcmpl-1' },
    })
  })

  it('has one block open at a time, with contiguous indices', () => {
    const events = play(
      ROLE,
      delta({ reasoning_content: 'H' }),
      delta({ reasoning_content: 'm' }),
      delta({ reasoning_content: '', content: 'Hel' }),
      delta({ content: 'lo' }),
      calls(piece(0, '', head(0))),
      calls(piece(0, '{"a"')),
      calls(piece(0, ':1}')),
      calls(piece(1, '{}', head(1))),
      delta({ content: 'Bye' }),
      delta({}, 'tool_calls'),
    )
    expect(outline(events)).toEqual([
      '0+thinking',
      '0:H',
      '0:m',
      '0!',
      '0-',
      '1+text',
      '1:Hel',
      '1:lo',
      '1-',
      '2+tool_use',
      '2:{"a"',
      '2::1}',
      '2-',
      '3+tool_use',
      '3:{}',
      '3-',
      '4+text',
      '4:Bye',
      '4-',
    ])
  })

  it('takes thoughts, text, calls and the finish reason from one chunk', () => {
    const all = delta(
      { reasoning: 'Hm', content: 'Hi', tool_calls: [piece(0, '{}', head(0)), piece(1, '{}', head(1))] },
      'tool_calls',
    )
    expect(outline(play(all))).toEqual([
      '0+thinking',
      '0:Hm',
      '0!',
      '0-',
      '1+text',
      '1:Hi',
      '1-',
      '2+tool_use',
      '2:{}',
      '2-',
      '3+tool_use',
      '3:{}',
      '3-',
    ])
  })

  it('holds pieces of calls whose turn has not come, and has them in the order of the calls', () => {
    const events = play(
      calls(piece(0, '', head(0)), piece(2, '', head(2)), piece(1, '', head(1))),
      calls(piece(2, '{"c":'), piece(0, '{"a":"}'), piece(1, '{"b":')),
      calls(piece(1, '[2]}'), piece(0, '\\"{"}')),
      calls(piece(2, '3}')),
      delta({}, 'tool_calls'),
    )
    expect(outline(events)).toEqual([
      '0+tool_use',
      '0:{"a":"}',
      '0:\\"{"}',
      '0-',
      '1+tool_use',
      '1:{"b":[2]}',
      '1-',
      '2+tool_use',
      '2:{"c":',
      '2:3}',
      '2-',
    ])
    expect(
      events.flatMap(({ content_block: block }) => (block === undefined ? [] : [(block as Members)['id']])),
    ).toEqual(['c0', 'c1', 'c2'])
  })

  it('waits for the id and the name of a call', () => {
    const events = run().translation.events()
    expect(outline(eventsIn(events.event(calls(piece(0, '{"a":', { id: 'c0' })))))).toEqual([])
    expect(outline(eventsIn(events.event(calls(piece(0, '1', { name: 'tool0' })))))).toEqual(['0+tool_use', '0:{"a":1'])
    expect(outline(eventsIn(events.event(calls(piece(0, '}')))))).toEqual(['0:}'])
  })

  it('keeps a call open while its input is not over, whatever comes between', () => {
    const events = play(
      calls(piece(0, '{"a":', head(0))),
      delta({ content: 'text' }),
      calls(piece(0, '1}')),
      delta({ content: ' more' }),
      delta({}, 'tool_calls'),
    )
    expect(outline(events)).toEqual(['0+tool_use', '0:{"a":', '0:1}', '0-', '1+text', '1:text', '1: more', '1-'])
  })

  it('has calls whose input never was over, each in its block', () => {
    const events = play(calls(piece(0, '', head(0)), piece(1, '{"b":', head(1))), delta({}, 'length'))
    expect(outline(events)).toEqual(['0+tool_use', '0-', '1+tool_use', '1:{"b":', '1-'])
    expect(events.at(-2)).toMatchObject({ delta: { stop_reason: 'max_tokens' } })
  })

  it('has each of several whole calls that the upstream gives the same index', () => {
    const { function: called } = piece(0, '{"a":1}', head(1))
    const events = play(
      calls(piece(0, '{}', head(0)), { id: 'c1', function: called }),
      calls(piece(0, '{}', head(2))),
      delta({}, 'tool_calls'),
    )
    expect(outline(events)).toEqual([
      '0+tool_use',
      '0:{}',
      '0-',
      '1+tool_use',
      '1:{"a":1}',
      '1-',
      '2+tool_use',
      '2:{}',
      '2-',
    ])
  })

  it('has each of several whole calls that the upstream gives the same index, or none, and no id', () => {
    for (const place of [{ index: 0, id: '' }, {}]) {
      const events = play(
        calls({ ...place, function: { name: 'f', arguments: '{"a":1}' } }),
        calls({ ...place, function: { name: 'g', arguments: '{"b":2}' } }),
        delta({}, 'tool_calls'),
      )
      expect(outline(events)).toEqual(['0+tool_use', '0:{"a":1}', '0-', '1+tool_use', '1:{"b":2}', '1-'])
      expect(events.flatMap(({ content_block: block }) => block ?? [])).toMatchObject([
        { id: expect.stringMatching(/^call_[0-9a-f]{52}$/), name: 'f' },
        { id: expect.stringMatching(/^call_[0-9a-f]{52}$/), name: 'g' },
      ])
    }
  })

  it('has each of several calls that the upstream gives the same index, also where the arguments are lists', () => {
    const called = (id: string, input: string): Members => ({ index: 0, id, function: { name: 'f', arguments: input } })
    const events = play(calls(called('c0', '[1]')), calls(called('c1', '[2]')), delta({}, 'tool_calls'))
    expect(events.flatMap(({ content_block: block }) => block ?? [])).toMatchObject([{ id: 'c0' }, { id: 'c1' }])
  })

  it.each([
    ['at one index', { index: 0 }],
    ['without an index', {}],
  ])('has each of several calls that the upstream gives the same id, %s', (_name, place) => {
    const search = (input: string): Members => ({
      ...place,
      id: 'search',
      function: { name: 'search', arguments: input },
    })
    const [first, second] = [search('{"a":1}'), search('{"a":2}')]
    for (const chunks of [[calls(first), calls(second)], [calls(first, second)]]) {
      expect(outline(play(...chunks, delta({}, 'tool_calls')))).toEqual([
        '0+tool_use',
        '0:{"a":1}',
        '0-',
        '1+tool_use',
        '1:{"a":2}',
        '1-',
      ])
    }
  })

  it('has each of several calls that the upstream gives the same index, also where one takes no arguments', () => {
    const empty = { index: 0, id: 'c0', function: { name: 'tool0', arguments: '' } }
    const events = play(
      calls(empty),
      calls(piece(0, '{"b":', head(1))),
      calls(piece(0, '2}')),
      delta({ content: 'Bye' }),
      delta({}, 'tool_calls'),
    )
    expect(outline(events)).toEqual([
      '0+tool_use',
      '0-',
      '1+tool_use',
      '1:{"b":',
      '1:2}',
      '1-',
      '2+text',
      '2:Bye',
      '2-',
    ])
    expect(events.flatMap(({ content_block: block }) => block ?? [])).toMatchObject([
      { id: 'c0', name: 'tool0' },
      { id: 'c1', name: 'tool1' },
      { type: 'text' },
    ])
  })

  it('joins pieces by their index where the upstream makes up an id for each', () => {
    const events = play(
      calls(piece(0, '{"a":', head(0))),
      calls(piece(0, '1}', { id: 'other', name: 'tool0' })),
      FINISH,
    )
    expect(outline(events)).toEqual(['0+tool_use', '0:{"a":', '0:1}', '0-'])
  })

  it('has ids for calls without, inputs that come as objects, and texts in parts', () => {
    const events = play(
      delta({ content: [{ type: 'text', text: 'Hi' }] }),
      calls({ index: 0, function: { name: 'look', arguments: { x: 1 } } }),
      calls({ index: 1, function: { name: 'look', arguments: '{}' } }),
      FINISH,
    )
    expect(outline(events)).toEqual([
      '0+text',
      '0:Hi',
      '0-',
      '1+tool_use',
      '1:{"x":1}',
      '1-',
      '2+tool_use',
      '2:{}',
      '2-',
    ])
    const ids = events.flatMap(({ content_block: block }) => (block as { id?: string } | undefined)?.id ?? [])
    expect(ids).toEqual([
      expect.stringMatching(/^call_[0-9a-f]{48}0001$/),
      expect.stringMatching(/^call_[0-9a-f]{48}0002$/),
    ])
  })

  it.each([
    ['null', ['nu', 'll'], '{"arguments":"null"}'],
    ['a list', [' ', '[', ']'], '{"arguments":" []"}'],
    ['a text', ['"a', '{"'], '{"arguments":"\\"a{\\""}'],
    ['white space', [' ', '\n'], undefined],
    ['an object behind white space', [' ', ' {', '}'], '  {}'],
  ])('has an input that is %s as a whole answer has it', (_what, pieces, expected) => {
    const [first = '', ...rest] = pieces
    const events = play(calls(piece(0, first, head(0))), ...rest.map((json) => calls(piece(0, json))), FINISH)
    const json = events.flatMap(
      ({ delta: change }) => (change as { partial_json?: string } | undefined)?.partial_json ?? [],
    )
    expect(json.join('')).toBe(expected ?? '')
    const message = { tool_calls: [{ ...head(0), function: { name: 'tool0', arguments: pieces.join('') } }] }
    const [use] = (wholeMessage(message, 'stop') as { content: { input: unknown }[] }).content
    expect(JSON.parse(expected ?? '{}')).toEqual(use?.input)
  })

  it('holds 256 KiB at most of an input that is no object, and counts them', () => {
    let held = 0
    const events = run({ add: (bytes) => void (held += bytes) }).translation.events()
    const half = 'x'.repeat(128 * 1024)
    // Each has its own limit, and a call may have a longer input that is an object.
    events.event(calls(piece(0, `{"a":"${half}`, head(0))))
    events.event(calls(piece(0, `${half}${half}"}`)))
    expect(held).toBe(CALL_BYTES)
    events.event(calls(piece(1, '[', head(1))))
    const before = held
    events.event(calls(piece(1, half)))
    expect(held - before).toBe(half.length)
    expect(thrownBy(() => events.event(calls(piece(1, half)))).kind).toBe('upstream_failed')
  })

  it('goes on where the finish reason is empty', () => {
    expect(outline(play(delta({ content: 'a' }, ''), delta({ content: 'b' }, ''), FINISH))).toEqual([
      '0+text',
      '0:a',
      '0:b',
      '0-',
    ])
  })

  it('has a call once that the upstream writes in both forms', () => {
    const both = { tool_calls: [piece(0, '{}', head(0))], function_call: { name: 'tool0', arguments: '{}' } }
    expect(outline(play(delta(both), delta({}, 'tool_calls')))).toEqual(['0+tool_use', '0:{}', '0-'])
  })

  it('has the one call of the older form of chunks', () => {
    const events = play(
      delta({ function_call: { name: 'look', arguments: '' } }),
      delta({ function_call: { arguments: '{}' } }),
      delta({}, 'function_call'),
    )
    expect(outline(events)).toEqual(['0+tool_use', '0:{}', '0-'])
    expect(events.at(-2)).toMatchObject({ delta: { stop_reason: 'tool_use' } })
    // It does not wait for an id, which never comes.
    const first = run()
      .translation.events()
      .event(delta({ function_call: { name: 'look', arguments: '{' } }))
    expect(outline(eventsIn(first))).toEqual(['0+tool_use', '0:{'])
  })

  it('passes blanks over that come behind the input of a call', () => {
    const events = play(
      calls(piece(0, '{}', head(0))),
      calls(piece(1, '{}', head(1))),
      calls(piece(0, ' \n')),
      delta({}, 'tool_calls'),
    )
    expect(outline(events)).toEqual(['0+tool_use', '0:{}', '0-', '1+tool_use', '1:{}', '1-'])
  })

  it.each([
    ['stop', [delta({ content: 'Hi' })], 'end_turn'],
    ['length', [delta({ content: 'Hi' })], 'max_tokens'],
    ['tool_calls', [calls(piece(0, '{}', head(0)))], 'tool_use'],
    ['stop', [calls(piece(0, '{}', head(0)))], 'tool_use'],
    ['function_call', [delta({ function_call: { name: 'look' } })], 'tool_use'],
    ['function_call', [], 'end_turn'],
    ['tool_calls', [delta({ content: 'Hm.', tool_calls: '', function_call: null })], 'end_turn'],
    ['content_filter', [delta({ content: 'Hi' })], 'refusal'],
    ['a_new_word', [], 'end_turn'],
  ])('that finished with %s stops for its reason', (finishReason, chunks, expected) => {
    const events = play(...chunks, delta({}, finishReason))
    expect(events.at(-2)).toMatchObject({ type: 'message_delta', delta: { stop_reason: expected } })
  })

  it('holds 256 KiB at most of a refusal, and counts them', () => {
    let held = 0
    const events = run({ add: (bytes) => void (held += bytes) }).translation.events()
    events.event(delta({ refusal: 'x'.repeat(256 * 1024) }))
    expect(held).toBe(256 * 1024)
    expect(thrownBy(() => events.event(delta({ refusal: 'x' }))).kind).toBe('upstream_failed')
  })

  it('that is a refusal explains it at its end and hands no further calls on', () => {
    const events = play(
      delta({ content: 'Well' }),
      delta({ refusal: 'I will' }),
      delta({ refusal: ' not.' }),
      calls(piece(0, '{}', head(0))),
      FINISH,
    )
    expect(outline(events)).toEqual(['0+text', '0:Well', '0-'])
    expect(events.at(-2)).toMatchObject({
      delta: { stop_reason: 'refusal', stop_details: { type: 'refusal', category: null, explanation: 'I will not.' } },
    })
  })

  it.each([
    ['a filter', delta({}, 'content_filter')],
    ['a refusal', delta({ refusal: 'No.' }, 'stop')],
  ])('hands no held calls on after %s', (_name, last) => {
    const events = play(calls(piece(0, '{"a":', head(0)), piece(1, '{}', head(1))), last)
    expect(outline(events)).toEqual(['0+tool_use', '0:{"a":', '0-'])
  })

  it.each([
    ['before the finish reason', [USAGE_CHUNK, FINISH]],
    ['with the finish reason', [{ ...FINISH, usage: USAGE }]],
    ['more than once', [chunkOf([], { usage: { prompt_tokens: 1, completion_tokens: 1 } }), FINISH, USAGE_CHUNK]],
  ])('takes the last usage, also %s', (_name, chunks) => {
    expect(play(delta({ content: 'Hi' }), ...chunks).at(-2)).toMatchObject({
      usage: { input_tokens: 25, output_tokens: 30 },
    })
  })

  it('without usage leaves the estimate of the input, and estimates the output', () => {
    const events = play(delta({ content: 'x'.repeat(40) }), calls(piece(0, '{"x":1} ', head(0))), FINISH)
    expect(events.at(-2)?.['usage']).toEqual({
      input_tokens: null,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      output_tokens: 12,
      output_tokens_details: null,
      server_tool_use: null,
    })
  })

  it('passes over other choices and chunks without any', () => {
    const other = chunkOf([{ index: 1, delta: { content: 'other' }, finish_reason: 'stop' }])
    expect(outline(play(ROLE, { id: 'x', usage: null }, other, delta({ content: 'Hi' }), FINISH))).toEqual([
      '0+text',
      '0:Hi',
      '0-',
    ])
  })

  it('that says nothing is an empty message', () => {
    const EMPTY = ['message_start', 'message_delta', 'message_stop']
    expect(play(ROLE, FINISH).map(({ type }) => type)).toEqual(EMPTY)
    for (const nothing of [{}, null, '', []]) {
      const last = chunkOf([{ index: 0, delta: nothing, finish_reason: 'stop' }])
      expect(play(last).map(({ type }) => type)).toEqual(EMPTY)
    }
  })

  it('without a finish reason never ends', () => {
    const events = run().translation.events()
    events.event(delta({ content: 'Hi' }))
    expect(thrownBy(() => events.end()).kind).toBe('upstream_failed')
  })

  it('tells nothing of an end before the upstream has ended, wherever it is cut', () => {
    const events = run().translation.events()
    const chunks = [
      ROLE,
      delta({ reasoning: 'Hm' }),
      delta({ content: 'Hi' }),
      calls(piece(0, '{}', head(0))),
      delta({}, 'tool_calls'),
      USAGE_CHUNK,
    ]
    for (const chunk of chunks) expect(events.event(chunk)).not.toMatch(/message_delta|message_stop/)
    expect(eventsIn(events.end()).map(({ type }) => type)).toEqual([
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
  })

  it.each([
    ['choices that are no list', chunkOf([], { choices: 'x' })],
    ['a choice that is no object', chunkOf([], { choices: [1] })],
    ['a delta that is no object', { choices: [{ index: 0, delta: 'Hi', finish_reason: null }] }],
    ['a delta that is a list', { choices: [{ index: 0, delta: [{ content: 'Hi' }], finish_reason: 'stop' }] }],
    ['content that is no text', delta({ content: 1 })],
    ['a refusal that is no text', delta({ refusal: ['No.'] })],
    ['calls that are no list', delta({ tool_calls: { 0: piece(0, '{}', head(0)) } })],
    ['calls that are a text', delta({ tool_calls: 'look()' })],
    ['an older call that is no object', delta({ function_call: 'look' })],
    ['a call that is no object', delta({ tool_calls: ['x'] })],
    ['a piece of an input that is no text', calls({ index: 0, function: { arguments: [] } })],
  ])("with %s is the upstream's failure", (_name, chunk) => {
    expect(thrownBy(() => run().translation.events().event(chunk)).kind).toBe('upstream_failed')
  })

  it.each([
    ['a call without a name', [calls(piece(0, '{}', { id: 'c' })), FINISH]],
    [
      'more input for a call that was over',
      [calls(piece(0, '{}', head(0)), piece(1, '{}', head(1))), calls(piece(0, '{}'))],
    ],
  ])("with %s is the upstream's failure", (_name, chunks) => {
    expect(thrownBy(() => play(...chunks)).kind).toBe('upstream_failed')
  })

  it('counts 256 KiB at most of what it holds', () => {
    const held: number[] = []
    const events = run({ add: (bytes) => held.push(bytes) }).translation.events()
    events.event(calls(piece(0, '{', head(0))))
    events.event(calls(piece(1, 'x'.repeat(200 * 1024 - 3 * CALL_BYTES), head(1))))
    events.event(calls(piece(2, 'é'.repeat(28 * 1024), head(2))))
    expect(held.reduce((sum, bytes) => sum + bytes, 0)).toBe(256 * 1024)
    expect(thrownBy(() => events.event(calls(piece(1, 'x')))).kind).toBe('upstream_failed')
  })

  it('counts the ids and names of calls, written or not, within the same bound', () => {
    const quarter = 64 * 1024
    for (const function_ of [{}, { name: 'tool', arguments: '{}' }]) {
      let held = 0
      const events = run({ add: (bytes) => void (held += bytes) }).translation.events()
      const begin = (index: number): string =>
        events.event(calls({ index, id: `c${index}`.padEnd(quarter, 'x'), function: function_ }))
      for (const index of [0, 1, 2]) begin(index)
      expect(held).toBeGreaterThanOrEqual(3 * quarter)
      expect(thrownBy(() => begin(3)).kind).toBe('upstream_failed')
    }
  })

  it("takes more than a thousand calls for the upstream's failure", () => {
    const events = run().translation.events()
    for (let index = 0; index < 500; index++) events.event(calls(piece(index, '{}', head(index))))
    const go = (): void => {
      for (let index = 500; index < 1024; index++) events.event(calls(piece(index, '{}', head(index))))
    }
    expect(thrownBy(go).kind).toBe('upstream_failed')
  })

  it('lets a call of any length through behind calls without arguments, which get none from then on', () => {
    const input = JSON.stringify({ text: 'x'.repeat(300 * 1024) })
    const chunks = [
      calls(piece(0, '', head(0))),
      calls(piece(1, ' ', head(1))),
      ...(input.match(/.{1,50000}/g) ?? []).map((part) => calls(piece(2, part, head(2)))),
    ]
    const whole = play(...chunks, delta({}, 'tool_calls'))
    expect(outline(whole).filter((each) => !/^[12]:/.test(each))).toEqual([
      '0+tool_use',
      '0-',
      '1+tool_use',
      '1-',
      '2+tool_use',
      '2-',
    ])
    const inputs = outline(whole).filter((each) => each.startsWith('2:'))
    expect(inputs.map((each) => each.slice(2)).join('')).toBe(input)
    expect(thrownBy(() => play(...chunks, calls(piece(0, '{}')))).kind).toBe('upstream_failed')
  })

  it('lets a call of any length through whose turn it is', () => {
    const input = JSON.stringify({ text: 'x'.repeat(1024 * 1024) })
    expect(outline(play(calls(piece(0, '{}', head(0))), calls(piece(1, input, head(1))), FINISH))[4]).toBe(`1:${input}`)
  })
})

/** Numbers from 0 to below `count`, the same in every run. */
function seeded(seed: number): (count: number) => number {
  let state = seed
  return (count) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * count)
  }
}

/** A text cut into pieces, also within characters. */
function pieces(text: string, random: (count: number) => number): string[] {
  const cut: string[] = []
  for (let start = 0; start < text.length;) {
    const end = start + 1 + random(6)
    cut.push(text.slice(start, end))
    start = end
  }
  return cut
}

describe("The vendor's client", () => {
  const INPUTS = ['{}', '{"a":"}{\\"]"}', '{"text":"Grüße 👋","list":[1,{"b":[]}]}', '{"n":1.5,"o":{"p":null}}', '']

  it.each(Array.from({ length: 100 }, (_, seed) => seed))(
    'makes of any stream what the whole answer is: %d',
    async (seed) => {
      const random = seeded(seed)
      const thoughts = random(2) === 0 ? '' : 'Let me think 🤔 about it.'
      const content = random(3) === 0 ? null : 'Grüße aus Köln 👋🏽!'
      const inputs = Array.from({ length: random(5) }, () => INPUTS[random(INPUTS.length)] ?? '')
      const toolCalls = inputs.map((input, index) => ({
        type: 'function',
        id: `c${index}`,
        function: { name: `tool${index}`, arguments: input },
      }))
      const finishReason = inputs.length > 0 ? 'tool_calls' : 'stop'
      const queues = inputs.map((input, index) => [
        piece(index, '', head(index)),
        ...pieces(input, random).map((part) => piece(index, part)),
      ])
      const isMixed = random(2) === 0
      const chunks = [
        ...pieces(thoughts, random).map((part) => delta({ reasoning_content: part })),
        ...pieces(content ?? '', random).map((part) => delta({ content: part })),
      ]
      // Calls begin in their order; how they go on is any.
      let begun = 0
      while (queues.some((queue) => queue.length > 0)) {
        const open = queues.slice(0, begun).filter((queue) => queue.length > 0)
        const isBeginning = begun < queues.length && (open.length === 0 || (isMixed && random(3) === 0))
        const next = (isBeginning ? queues[begun++] : open[random(open.length)])?.shift()
        if (next !== undefined) chunks.push(calls(next))
      }
      const events = play(...chunks, delta({}, finishReason), USAGE_CHUNK)
      const message = { content, reasoning_content: thoughts, ...(inputs.length > 0 ? { tool_calls: toolCalls } : {}) }
      const { usage, ...whole } = wholeMessage(message, finishReason) as Members
      expect(await finalMessage(events)).toEqual({ ...whole, usage })
    },
  )

  it('makes of a refusal what the whole answer is', async () => {
    const events = play(delta({ content: 'Well' }), delta({ refusal: 'No.' }), FINISH, USAGE_CHUNK)
    expect(await finalMessage(events)).toEqual(wholeMessage({ content: 'Well', refusal: 'No.' }, 'stop'))
  })
})
