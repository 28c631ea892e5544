import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import type { ResponseStreamEvent } from 'openai/resources/responses/responses'
import {
  accumulated,
  comparable,
  eventsIn,
  lastResponse,
  ResponsesTranslation,
} from '../../../../test/support/responses-translation.js'
import { sealed, thrownBy, type TranslationSetting } from '../../../../test/support/translation.js'
import { GatewayError } from '../../../core/errors.js'
import type { ChatFields } from '../../openai-wire.js'
import { responsesOverChat } from './responses-over-chat.js'

const translate = (request: object = {}, setting?: TranslationSetting): ResponsesTranslation<ChatFields> =>
  new ResponsesTranslation('chat', responsesOverChat, { input: 'Hi', stream: true, ...request }, setting)

const chunk = (delta: object, reason: string | null = null, more: object = {}): object => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'resolved-model',
  choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }],
  ...more,
})

const USAGE = { prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 }
const FIRST = chunk({ role: 'assistant', content: '', refusal: null })
const end = (reason = 'stop'): object => chunk({}, reason)
const FIGURES = { id: 'chatcmpl-1', choices: [], usage: USAGE }

const piece = (index: number, text: string, head: object = {}): object => ({
  index,
  ...head,
  function: { ...('name' in head ? { name: head.name } : {}), arguments: text },
})
const begun = (index: number, text = '', name = 'weather'): object =>
  piece(index, text, { id: `call_${index}`, type: 'function', name })
const calls = (...pieces: object[]): object => chunk({ tool_calls: pieces })

const typesOf = (events: readonly ResponseStreamEvent[]): readonly string[] =>
  events.map(({ type }) => type.replace('response.', ''))

const argumentsOf = (events: readonly ResponseStreamEvent[]): readonly unknown[] =>
  lastResponse(events).output.map((item) => (item.type === 'function_call' ? [item.name, item.arguments] : item.type))

const BEGINNING = ['created', 'in_progress']
const CALL_END = ['function_call_arguments.done', 'output_item.done']

describe('The events of a chat upstream as those of a response', () => {
  it('tell at their end what was used, and in which class', () => {
    const events = translate().events([FIRST, chunk({ content: 'a' }), end(), { ...FIGURES, service_tier: 'priority' }])
    expect(lastResponse(events)).toMatchObject({
      status: 'completed',
      service_tier: 'priority',
      usage: { total_tokens: 30 },
    })
  })

  it('begin with the first chunk of any kind', () => {
    for (const first of [FIRST, FIGURES, {}, { choices: null }, calls(begun(0))]) {
      const frames = translate()
        .translation.events()
        .event(first as Record<string, unknown>)
      expect(typesOf(eventsIn(frames)).slice(0, 2)).toEqual(BEGINNING)
    }
  })

  it('tell of thoughts as summaries where these are asked for', async () => {
    const chunks = [
      FIRST,
      chunk({ reasoning_content: 'h', content: null }),
      chunk({ reasoning: 'm' }),
      chunk({ content: 'a' }),
      end(),
    ]
    const events = translate({ reasoning: { summary: 'auto' }, include: ['reasoning.encrypted_content'] }).events(
      chunks,
    )
    const [item] = lastResponse(events).output
    expect(item).toEqual({
      id: expect.stringMatching(/^rs_/),
      type: 'reasoning',
      summary: [{ type: 'summary_text', text: 'hm' }],
      encrypted_content: sealed('{"reasoning":"hm"}'),
    })
    expect(comparable(await accumulated(events))).toEqual(comparable(lastResponse(events)))
    const again = translate({ include: ['reasoning.encrypted_content'] }).events([
      chunk({ reasoning: 'one' }),
      chunk({ content: 'a' }),
      chunk({ reasoning: 'two' }),
      end(),
    ])
    expect(lastResponse(again).output).toMatchObject([
      { encrypted_content: sealed('{"reasoning":"one"}') },
      {},
      { encrypted_content: sealed('{"reasoning":"two"}') },
    ])
    const silent = translate().events(chunks)
    expect(typesOf(silent).slice(2, 5)).toEqual(['output_item.added', 'output_item.done', 'output_item.added'])
    expect(lastResponse(silent).output[0]).toMatchObject({ type: 'reasoning', summary: [] })
  })

  it('tell of a call piece by piece', async () => {
    const events = translate().events([
      calls(begun(0)),
      calls(piece(0, '{"a":')),
      calls(piece(0, '1.0}')),
      end('tool_calls'),
    ])
    const delta = 'function_call_arguments.delta'
    expect(typesOf(events)).toEqual([...BEGINNING, 'output_item.added', delta, delta, ...CALL_END, 'completed'])
    expect(events[2]).toMatchObject({
      item: { type: 'function_call', status: 'in_progress', call_id: 'call_0', name: 'weather', arguments: '' },
    })
    expect(events[5]).toMatchObject({ arguments: '{"a":1.0}', name: 'weather' })
    expect(comparable(await accumulated(events))).toEqual(comparable(lastResponse(events)))
  })

  it('tell of calls one after the other, each as soon as the one before is complete', () => {
    const events = translate().translation.events()
    const typesFor = (...pieces: object[]): readonly string[] =>
      events.event(calls(...pieces) as Record<string, unknown>).match(/(?<=^event: response\.)\S+/gm) ?? []
    typesFor(begun(0, '{"a":"}'))
    expect(typesFor(begun(1, '{"b"'))).toEqual([])
    expect(typesFor(piece(0, '\\"{"}'))).toEqual([
      'function_call_arguments.delta',
      ...CALL_END,
      'output_item.added',
      'function_call_arguments.delta',
    ])
    expect(typesFor(piece(1, ':1}'))).toEqual(['function_call_arguments.delta'])
    // White space behind a call that is complete.
    expect(typesFor(piece(0, ' \n'))).toEqual([])
    expect(thrownBy(() => typesFor(piece(0, '{}'))).kind).toBe('upstream_failed')
  })

  it.each<[string, object[], unknown[]]>([
    [
      'in turn',
      [begun(0), piece(0, '{}'), begun(1), piece(1, '[]')],
      [
        ['weather', '{}'],
        ['weather', '[]'],
      ],
    ],
    [
      'mixed',
      [begun(0), begun(1), piece(1, '{"b":'), piece(0, '{"a":'), piece(1, '2}'), piece(0, '1}')],
      [
        ['weather', '{"a":1}'],
        ['weather', '{"b":2}'],
      ],
    ],
    [
      'the later first',
      [begun(0, '{'), begun(2, '{"c":3}'), begun(1, '{"b":2}'), piece(0, '}')],
      [
        ['weather', '{}'],
        ['weather', '{"b":2}'],
        ['weather', '{"c":3}'],
      ],
    ],
    [
      'a late name',
      [piece(0, '{"a"'), piece(0, ':1', { id: 'call_0' }), piece(0, '}', { name: 'late' })],
      [['late', '{"a":1}']],
    ],
    ['a late id', [piece(0, '{"a"', { name: 'late' }), piece(0, ':1}', { id: 'call_0' })], [['late', '{"a":1}']]],
    ['no id at all', [piece(0, '{}', { name: 'f' })], [['f', '{}']]],
    [
      'with one index for all',
      [begun(0, '{"a":1}'), piece(0, '{"b":', { id: 'other', name: 'f' }), piece(0, '2}')],
      [
        ['weather', '{"a":1}'],
        ['f', '{"b":2}'],
      ],
    ],
    ['another id for a further piece', [begun(0, '{"a":'), piece(0, '1}', { id: 'other' })], [['weather', '{"a":1}']]],
    ['a head that is said again', [begun(0, '{"a":'), begun(0, '1}', 'other')], [['weather', '{"a":1}']]],
    [
      'no arguments',
      [begun(0), begun(1)],
      [
        ['weather', '{}'],
        ['weather', '{}'],
      ],
    ],
    [
      'no index',
      [
        { id: 'a', function: { name: 'f', arguments: '{}' } },
        { id: 'b', function: { name: 'g', arguments: '{' } },
        { function: { arguments: '}' } },
      ],
      [
        ['f', '{}'],
        ['g', '{}'],
      ],
    ],
    [
      'with one index for all, and no ids',
      [piece(0, '{"a":1}', { name: 'f' }), piece(0, '{"b":2}', { name: 'g' }), piece(0, '{"b":3}', { name: 'g' })],
      [
        ['f', '{"a":1}'],
        ['g', '{"b":2}'],
        ['g', '{"b":3}'],
      ],
    ],
    [
      'with neither index nor id',
      [{ function: { name: 'f', arguments: { a: 1 } } }, { function: { name: 'g', arguments: { b: 2 } } }],
      [
        ['f', '{"a":1}'],
        ['g', '{"b":2}'],
      ],
    ],
    [
      'with one index for all, ids for some, and arguments for some',
      [begun(0, '{"a":1}'), piece(0, '{"b":2}', { name: 'g' }), piece(0, '', { name: 'f' })],
      [
        ['weather', '{"a":1}'],
        ['g', '{"b":2}'],
        ['f', '{}'],
      ],
    ],
    [
      'with one index and one id for all',
      [begun(0, '{"a":1}'), begun(0, '{"a":2}'), begun(0, '{"b":', 'forecast'), piece(0, '3}')],
      [
        ['weather', '{"a":1}'],
        ['weather', '{"a":2}'],
        ['forecast', '{"b":3}'],
      ],
    ],
    [
      'with one id for all, and no index',
      [
        { id: 'f', function: { name: 'f', arguments: '{"a":1}' } },
        { id: 'g', function: { name: 'g', arguments: '{"b":1}' } },
        { id: 'f', function: { name: 'f', arguments: '{"a":' } },
        { function: { arguments: '2}' } },
      ],
      [
        ['f', '{"a":1}'],
        ['g', '{"b":1}'],
        ['f', '{"a":2}'],
      ],
    ],
    [
      'each with the name',
      [
        piece(0, '{"a":', { name: 'f' }),
        piece(0, '1}', { name: 'f' }),
        piece(0, ' ', { name: 'f' }),
        piece(0, '', { name: 'f', id: 'late' }),
      ],
      [['f', '{"a":1} ']],
    ],
  ])('hold whole calls whose pieces come %s', async (_name, pieces, expected) => {
    for (const chunks of [pieces.map((each) => calls(each)), [calls(...pieces)]]) {
      const events = translate().events([...chunks, end('tool_calls')])
      expect(argumentsOf(events)).toEqual(expected)
      expect(comparable(await accumulated(events))).toEqual(comparable(lastResponse(events)))
    }
  })

  it('have ids of their own for calls without, in the order of the calls', () => {
    const nameless = (index: number, name: string): object => piece(index, '{}', { name })
    const events = translate().events([
      calls(nameless(0, 'a'), nameless(0, 'b'), nameless(2, 'd'), nameless(1, 'c')),
      end('tool_calls'),
    ])
    const called = lastResponse(events).output.map((item) => (item.type === 'function_call' ? item : undefined))
    expect(called.map((item) => item?.name)).toEqual(['a', 'b', 'c', 'd'])
    expect(called.map((item) => item?.call_id.slice(-4))).toEqual(['0001', '0002', '0003', '0004'])
  })

  it('tell of the one call of the older form of chunks', async () => {
    const events = translate().events([
      chunk({ function_call: { name: 'f', arguments: '' } }),
      chunk({ function_call: { arguments: '{"a":' } }),
      chunk({ function_call: { arguments: '1}' } }),
      end('function_call'),
    ])
    expect(argumentsOf(events)).toEqual([['f', '{"a":1}']])
    expect(lastResponse(events).output).toMatchObject([{ call_id: expect.stringMatching(/^call_[0-9a-f]{52}$/) }])
    expect(comparable(await accumulated(events))).toEqual(comparable(lastResponse(events)))
  })

  it('tell of the input of a custom tool as it is, though it would be cut if it were JSON', async () => {
    const custom = (input: string, head: object = {}): object => ({ index: 0, ...head, custom: { ...head, input } })
    const events = translate().events([
      calls(custom('say "hi', { id: 'call_0', name: 'patch' })),
      calls(custom(' {')),
      end('tool_calls'),
    ])
    expect(lastResponse(events)).toMatchObject({
      status: 'completed',
      output: [{ type: 'custom_tool_call', status: 'completed', input: 'say "hi {' }],
    })
    expect(comparable(await accumulated(events))).toEqual(comparable(lastResponse(events)))
  })

  it('tell of inputs of custom tools, and what comes between their pieces afterwards', async () => {
    const custom = (index: number, input: string, head: object = {}): object => ({
      index,
      ...head,
      custom: { ...head, input },
    })
    const events = translate().events([
      calls(custom(0, '{"a"', { id: 'call_0', name: 'patch' })),
      calls(begun(1, '{}')),
      chunk({ content: 'between' }),
      calls(custom(0, ':1} and more')),
      end('tool_calls'),
    ])
    expect(lastResponse(events).output).toMatchObject([
      { type: 'custom_tool_call', status: 'completed', call_id: 'call_0', name: 'patch', input: '{"a":1} and more' },
      { type: 'function_call', arguments: '{}' },
      { type: 'message' },
    ])
    expect(typesOf(events)).toContain('custom_tool_call_input.done')
    expect(comparable(await accumulated(events))).toEqual(comparable(lastResponse(events)))
  })

  it('tell of each of several calls of one custom tool that the upstream gives the same index', () => {
    const custom = (id: string, input: string): object => ({ index: 0, id, custom: { name: 'patch', input } })
    const more = { index: 0, custom: { input: 'z' } }
    const events = translate().events([calls(custom('a', 'x'), custom('b', 'y')), calls(more), end('tool_calls')])
    expect(lastResponse(events).output).toMatchObject([
      { type: 'custom_tool_call', call_id: 'a', input: 'x' },
      { type: 'custom_tool_call', call_id: 'b', input: 'yz' },
    ])
  })

  it('let what is said before and behind calls stand where it was said', () => {
    const events = translate().events([
      chunk({ content: 'before' }),
      calls(begun(0, '{')),
      chunk({ content: 'with' }),
      calls(piece(0, '}')),
      chunk({ content: 'in' }),
      end('tool_calls'),
    ])
    expect(lastResponse(events).output).toMatchObject([
      { content: [{ text: 'before' }] },
      { arguments: '{}' },
      { content: [{ text: 'within' }] },
    ])
  })

  it('tell of a refusal, and hand on no calls of the refused turn', async () => {
    const chunks = [
      chunk({ content: 'I' }),
      calls(begun(0, '{}'), begun(1)),
      chunk({ refusal: 'N' }),
      chunk({ refusal: 'o.' }),
    ]
    const events = translate().events([...chunks, end('tool_calls')])
    expect(typesOf(events).filter((type) => type.startsWith('refusal'))).toEqual(['refusal.delta', 'refusal.done'])
    expect(events.at(-1)?.type).toBe('response.incomplete')
    expect(lastResponse(events)).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'content_filter' },
      output: [
        { type: 'message', status: 'completed' },
        { type: 'message', status: 'incomplete', content: [{ refusal: 'No.' }] },
      ],
    })
    expect(comparable(await accumulated(events))).toEqual(comparable(lastResponse(events)))
    const filtered = translate().events([calls(begun(0, '{')), calls(begun(1, '{}')), end('content_filter')])
    expect(lastResponse(filtered).output).toEqual([])
    expect(typesOf(filtered).filter((type) => type === 'output_item.added')).toHaveLength(1)
  })

  it('hand on no call behind a refusal, nor one that waited for it, and end in the message as a whole answer does', async () => {
    const said = [chunk({ content: 'I' }), chunk({ refusal: 'No.' })]
    const events = translate().events([...said, calls(begun(0, '{}')), end('tool_calls'), FIGURES])
    expect(typesOf(events)).not.toContain('function_call_arguments.delta')
    const called = { id: 'call_0', type: 'function', function: { name: 'weather', arguments: '{}' } }
    const message = { content: 'I', refusal: 'No.', tool_calls: [called] }
    const whole = translate().answer({ choices: [{ index: 0, message, finish_reason: 'tool_calls' }], usage: USAGE })
    const withoutIds = (value: unknown): unknown => JSON.parse(JSON.stringify(value).replaceAll(/"id":"[^"]*",/g, ''))
    expect(withoutIds(lastResponse(events).output)).toEqual(withoutIds(whole.output))
    expect(whole.output).toMatchObject([{ type: 'message', status: 'incomplete' }])
    expect(comparable(await accumulated(events))).toEqual(comparable(lastResponse(events)))
    const waiting = translate().events([calls(begun(0, '{')), calls(begun(1, '{}')), ...said, end('stop')])
    expect(typesOf(waiting).filter((type) => type === 'function_call_arguments.delta')).toHaveLength(1)
  })

  it('put text and refusal of one message into its parts', async () => {
    const events = translate().events([chunk({ content: 'a' }), chunk({ refusal: 'b' }), end()])
    expect(lastResponse(events).output).toMatchObject([
      {
        content: [
          { type: 'output_text', text: 'a' },
          { type: 'refusal', refusal: 'b' },
        ],
      },
    ])
    expect(comparable(await accumulated(events))).toEqual(comparable(lastResponse(events)))
  })

  it.each<[string, string, string | undefined]>([
    ['stop', 'completed', undefined],
    ['length', 'incomplete', 'max_output_tokens'],
    ['content_filter', 'incomplete', 'content_filter'],
    ['eos', 'completed', undefined],
  ])('end with %s as %s', (reason, status, incompleteReason) => {
    const events = translate().events([chunk({ content: 'a' }), end(reason)])
    expect(events.at(-1)?.type).toBe(`response.${status}`)
    const response = lastResponse(events)
    expect([response.status, response.incomplete_details?.reason]).toEqual([status, incompleteReason])
    expect(response.output).toMatchObject([{ status }])
  })

  it('count what the upstream counted, whenever it did so, and nothing else', () => {
    const usageIn = (...chunks: object[]): unknown => lastResponse(translate().events(chunks)).usage
    expect(usageIn(chunk({ content: 'a' }, null, { usage: USAGE }), end())).toMatchObject({ input_tokens: 20 })
    expect(usageIn(FIGURES, chunk({ content: 'a' }, 'stop', { usage: null }))).toMatchObject({ output_tokens: 10 })
    expect(usageIn(chunk({ content: 'a' }, 'stop'))).toBeNull()
  })

  it('ignore other choices and members that are not known', () => {
    const other = {
      choices: [
        { index: 0, delta: { content: 'a', audio: {}, unknown: 1 } },
        { index: 1, delta: { content: 'b' } },
      ],
    }
    const events = translate().events([other, { choices: [{ index: 0 }] }, end()])
    expect(lastResponse(events).output).toMatchObject([{ content: [{ text: 'a' }] }])
  })

  it('have no last event where the upstream was cut, wherever that is', () => {
    const chunks = [FIRST, chunk({ content: 'a' }), calls(begun(0, '{')), calls(piece(0, '}')), FIGURES]
    for (let length = 0; length <= chunks.length; length++) {
      const events = translate().translation.events()
      const frames = chunks
        .slice(0, length)
        .map((each) => events.event(each as Record<string, unknown>))
        .join('')
      expect(frames).not.toMatch(/response\.(?:completed|incomplete|failed)/)
      expect(thrownBy(() => events.end()).kind).toBe('upstream_failed')
      const error = new GatewayError('upstream_failed', 'It was cut.')
      const failed = translate().failedEvents(chunks.slice(0, length), error)
      expect(typesOf(failed).slice(0, 2)).toEqual(BEGINNING)
      const response = lastResponse(failed)
      expect([response.status, response.error]).toEqual(['failed', { code: 'server_error', message: 'It was cut.' }])
      // A call that is not whole is not handed on.
      expect(response.output.map(({ type }) => type)).toEqual(length < 2 ? [] : ['message'])
    }
  })

  it('tell of a failure with what there was', async () => {
    const request = { reasoning: { summary: 'auto' } }
    const error = new GatewayError('rate_limited', 'Too many.')
    const events = translate(request).failedEvents(
      [chunk({ reasoning: 'hm' }), chunk({ content: 'a' }), FIGURES],
      error,
    )
    expect(lastResponse(events)).toMatchObject({
      status: 'failed',
      error: { code: 'rate_limit_exceeded' },
      usage: { total_tokens: 30 },
      output: [{ type: 'reasoning' }, { type: 'message', status: 'incomplete', content: [{ text: 'a' }] }],
    })
    expect(comparable(await accumulated(events))).toEqual(comparable(lastResponse(events)))
    expect(lastResponse(translate(request).failedEvents([chunk({ reasoning: 'hm' })], error)).output).toMatchObject([
      { type: 'reasoning', summary: [{ text: 'hm' }] },
    ])
  })

  it.each([
    ['a call in no known form', calls(1 as unknown as object)],
    ['calls that are no list', chunk({ tool_calls: { 0: begun(0, '{}') } })],
    ['calls that are a text', chunk({ tool_calls: 'weather()' })],
    ['an older call that is no object', chunk({ function_call: 'weather' })],
    ['a delta that is no object', { choices: [{ index: 0, delta: 'Hi', finish_reason: null }] }],
    ['a delta that is a list', { choices: [{ index: 0, delta: [{ content: 'Hi' }], finish_reason: 'stop' }] }],
    ['a refusal that is no text', chunk({ refusal: ['No.'] })],
    ['arguments that are no text', calls({ index: 0, function: { name: 'f', arguments: 42 } })],
    ['pieces that wait too long', calls(begun(0, '{'), begun(1, 'a'.repeat(256 * 1024 + 1)))],
    ['more than can be kept', chunk({ content: 'ä'.repeat(4 * 1024 * 1024 + 1) })],
  ])('fail with %s', (_name, bad) => {
    const events = translate().translation.events()
    expect(thrownBy(() => events.event(bad as Record<string, unknown>)).kind).toBe('upstream_failed')
  })

  it('hold nothing of what has been written', () => {
    const long = `"${'a'.repeat(200 * 1024)}"}`
    const chunks = [0, 2].map((index) =>
      calls(begun(index, '{"a":'), begun(index + 1, `{"b":${long}`), piece(index, long)),
    )
    const events = translate().events([...chunks, chunk({ content: 'a' }), end('tool_calls')])
    expect(lastResponse(events).output).toHaveLength(5)
  })

  it('fail where a call never gets a name', () => {
    expect(thrownBy(() => translate().events([calls(piece(0, '{}', { id: 'a' })), end('tool_calls')])).kind).toBe(
      'upstream_failed',
    )
  })

  it('count what they keep', () => {
    let bytes = 0
    const memory = { add: (more: number): void => void (bytes += more) }
    translate({}, { memory }).events([
      chunk({ reasoning: 'ä' }),
      chunk({ content: 'a' }),
      calls(begun(0, '{}')),
      chunk({ refusal: 'b' }),
      end(),
    ])
    // Four items, and what was said in them.
    expect(bytes).toBe(4 * 256 + 6 + 'call_0weather'.length)
  })
})

/** What an answer holds, in the order of a message. */
const answers = fc.record({
  thoughts: fc.string({ unit: 'grapheme' }),
  content: fc.string({ unit: 'grapheme' }),
  refusal: fc.option(fc.string(), { nil: '', freq: 4 }),
  calls: fc.array(fc.record({ name: fc.stringMatching(/^[a-z]{1,9}$/), input: fc.json() }), { maxLength: 4 }),
  reason: fc.constantFrom('stop', 'length', 'content_filter', 'tool_calls'),
  isSummaryWanted: fc.boolean(),
})

const split = (text: string, size: number): readonly string[] => text.match(new RegExp(`.{1,${size}}`, 'gsu')) ?? []

describe('Events and a whole answer', () => {
  it('end in the same response, however the pieces of calls are mixed', async () => {
    await fc.assert(
      fc.asyncProperty(
        answers,
        fc.integer({ min: 1, max: 9 }),
        fc.infiniteStream(fc.nat()),
        async (answer, size, choices) => {
          const isCut = answer.reason === 'length'
          const inputs = answer.calls.map(({ input }) => JSON.stringify({ input }))
          const queues = inputs.map((input, index) =>
            split(input, size).map((text, place) =>
              place === 0 ? begun(index, text, answer.calls[index]?.name) : piece(index, text),
            ),
          )
          const lengths = queues.map((queue) => queue.length)
          const mixed: object[] = []
          // Calls begin in their order, which is the order of items; a cut answer ends within its last one.
          while (queues.some((queue) => queue.length > 0)) {
            const started = 1 + queues.filter((queue, at) => queue.length < (lengths[at] ?? 0)).length
            const open = queues.slice(0, started).filter((queue) => queue.length > 0)
            const queue = isCut ? open[0] : open[Number(choices.next().value) % open.length]
            mixed.push(...(queue?.splice(0, 1) ?? []))
          }
          const chunks = [
            ...split(answer.thoughts, size).map((reasoning_content) => chunk({ reasoning_content })),
            ...split(answer.content, size).map((content) => chunk({ content })),
            ...split(answer.refusal, size).map((refusal) => chunk({ refusal })),
            ...mixed.map((each) => calls(each)),
            end(answer.reason),
            FIGURES,
          ]
          const translation = translate(answer.isSummaryWanted ? { reasoning: { summary: 'auto' } } : {})
          const events = translation.events(chunks)
          const tool_calls = answer.calls.map(({ name }, index) => ({
            id: `call_${index}`,
            type: 'function',
            function: { name, arguments: inputs[index] },
          }))
          const message = {
            role: 'assistant',
            content: answer.content,
            reasoning_content: answer.thoughts,
            refusal: answer.refusal,
            tool_calls,
          }
          const whole = translation.answer({
            choices: [{ index: 0, message, finish_reason: answer.reason }],
            usage: USAGE,
          })
          expect(comparable(lastResponse(events))).toEqual(comparable(whole))
          expect(comparable(await accumulated(events))).toEqual(comparable(whole))
        },
      ),
      { numRuns: 100 },
    )
  })
})
