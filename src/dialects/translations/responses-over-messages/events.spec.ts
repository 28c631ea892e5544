import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses'
import {
  accumulated,
  comparable,
  lastResponse,
  ResponsesTranslation,
} from '../../../../test/support/responses-translation.js'
import { sealed, thrownBy, type TranslationSetting } from '../../../../test/support/translation.js'
import { GatewayError } from '../../../core/errors.js'
import type { MessagesFields } from '../../anthropic-messages.js'
import { responsesOverMessages } from './responses-over-messages.js'

const PATCH = { type: 'custom', name: 'patch' }

const translate = (request: object = {}, setting?: TranslationSetting): ResponsesTranslation<MessagesFields> =>
  new ResponsesTranslation(
    'messages',
    responsesOverMessages,
    { input: 'Hi', max_output_tokens: 100, stream: true, tools: [PATCH], ...request },
    setting,
  )

const START = {
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [],
    usage: { input_tokens: 9, output_tokens: 1 },
  },
}
const PING = { type: 'ping' }
const STOP = { type: 'message_stop' }
const end = (stop_reason = 'end_turn', usage: object = { output_tokens: 10 }, more: object = {}): object => ({
  type: 'message_delta',
  delta: { stop_reason, stop_sequence: null, ...more },
  usage,
})

const begun = (index: number, content_block: object): object => ({ type: 'content_block_start', index, content_block })
const delta = (index: number, change: object): object => ({ type: 'content_block_delta', index, delta: change })
const stop = (index: number): object => ({ type: 'content_block_stop', index })

const TEXT = { type: 'text', text: '' }
const THINKING = { type: 'thinking', thinking: '', signature: '' }
const use = (id: string, name = 'weather', input: object = {}): object => ({ type: 'tool_use', id, name, input })
const textDelta = (index: number, text: string): object => delta(index, { type: 'text_delta', text })
const thinkingDelta = (index: number, thinking: string): object => delta(index, { type: 'thinking_delta', thinking })
const signatureDelta = (index: number, signature: string): object =>
  delta(index, { type: 'signature_delta', signature })
const json = (index: number, partial_json: string): object => delta(index, { type: 'input_json_delta', partial_json })

const saying = (index: number, ...texts: string[]): object[] => [
  begun(index, TEXT),
  ...texts.map((text) => textDelta(index, text)),
  stop(index),
]
const calling = (index: number, id: string, ...pieces: string[]): object[] => [
  begun(index, use(id)),
  ...pieces.map((piece) => json(index, piece)),
  stop(index),
]

const typesOf = (events: readonly ResponseStreamEvent[]): readonly string[] =>
  events.map(({ type }) => type.replace('response.', ''))

const BEGINNING = ['created', 'in_progress']

/** The response of the last event, once the vendor's client has made the same one of the events before. */
async function responseOf(events: readonly ResponseStreamEvent[]): Promise<Response> {
  expect(comparable(await accumulated(events))).toEqual(comparable(lastResponse(events)))
  return lastResponse(events)
}

describe('The events of a messages upstream as those of a response', () => {
  it('tell at their end what was used, cache included', async () => {
    const figures = { input_tokens: 9, cache_read_input_tokens: 3, output_tokens: 10 }
    const events = translate().events([START, PING, ...saying(0, 'a'), end('end_turn', figures), STOP])
    expect((await responseOf(events)).usage).toMatchObject({ input_tokens: 12, output_tokens: 10, total_tokens: 22 })
  })

  it('say at each ping that the connection is alive', () => {
    expect(translate().translation.events().event(PING)).toBe(': ping\n\n')
  })

  it('tell of thoughts that are not to be shown by their seal alone', async () => {
    const events = translate().events([
      START,
      begun(0, THINKING),
      thinkingDelta(0, 'hm'),
      signatureDelta(0, 's'),
      stop(0),
      begun(1, { type: 'redacted_thinking', data: 'd' }),
      stop(1),
      begun(2, THINKING),
      signatureDelta(2, 'only'),
      stop(2),
      ...saying(3, 'a'),
      begun(4, { type: 'redacted_thinking', data: 'e' }),
      stop(4),
      ...saying(5, 'b'),
      end(),
    ])
    expect(lastResponse(events).output[2]).toMatchObject({
      encrypted_content: sealed(JSON.stringify([{ type: 'redacted_thinking', data: 'e' }])),
    })
    expect(typesOf(events).slice(2, 5)).toEqual(['output_item.added', 'output_item.done', 'output_item.added'])
    const blocks = [
      { type: 'thinking', thinking: 'hm', signature: 's' },
      { type: 'redacted_thinking', data: 'd' },
      { type: 'thinking', thinking: '', signature: 'only' },
    ]
    expect((await responseOf(events)).output[0]).toEqual({
      id: expect.stringMatching(/^rs_/),
      type: 'reasoning',
      summary: [],
      encrypted_content: sealed(JSON.stringify(blocks)),
    })
  })

  it('have the last signature of a thought, as the vendor’s own client does', () => {
    const chunks = [begun(0, THINKING), thinkingDelta(0, 'hm'), signatureDelta(0, 'first'), signatureDelta(0, 'last')]
    const events = translate().events([START, ...chunks, stop(0), ...saying(1, 'a'), end()])
    expect(lastResponse(events).output[0]).toMatchObject({
      encrypted_content: sealed(JSON.stringify([{ type: 'thinking', thinking: 'hm', signature: 'last' }])),
    })
  })

  it('make one message of texts that follow one another, each a part of its own', async () => {
    const events = translate().events([START, ...saying(0, 'a'), ...saying(1), ...saying(2, 'b'), end()])
    expect((await responseOf(events)).output).toMatchObject([{ content: [{ text: 'a' }, { text: 'b' }] }])
  })

  it.each<[string, object[], object]>([
    ['no pieces', calling(0, 'call_1'), { arguments: '{}' }],
    ['an empty piece', calling(0, 'call_1', ''), { arguments: '{}' }],
    ['its input at once', [begun(0, use('call_1', 'weather', { a: 1 })), stop(0)], { arguments: '{"a":1}' }],
    [
      'the text of a custom tool',
      [begun(0, use('call_1', 'patch')), json(0, '{"input":'), json(0, '"*"}'), stop(0)],
      { type: 'custom_tool_call', input: '*', call_id: 'call_1', name: 'patch' },
    ],
    [
      'the text of a custom tool that would be cut if it were JSON',
      [begun(0, use('call_1', 'patch')), json(0, '{"input":"say '), json(0, '\\"hi {"}'), stop(0)],
      { type: 'custom_tool_call', status: 'completed', input: 'say "hi {' },
    ],
    [
      'the input of a custom tool in another form',
      [begun(0, use('call_1', 'patch')), json(0, '{"text":"*"'), json(0, '}'), stop(0)],
      { type: 'custom_tool_call', input: '{"text":"*"}' },
    ],
  ])('tell of a call with %s', async (_name, chunks, expected) => {
    const events = translate().events([START, ...chunks, end('tool_use')])
    expect((await responseOf(events)).output).toMatchObject([expected])
  })

  it.each(['max_tokens', 'model_context_window_exceeded'])('tell of a call that was cut by %s', async (reason) => {
    const events = translate().events([START, begun(0, use('call_1')), json(0, '{"a"'), end(reason)])
    const { status, output } = await responseOf(events)
    expect(status).toBe('incomplete')
    expect(output).toMatchObject([{ status: 'incomplete', arguments: '{"a"' }])
  })

  it('tell of a refusal within a call, and do not hand it on', async () => {
    const events = translate().events([START, begun(0, use('call_1')), json(0, '{"a"'), end('refusal')])
    const { status, output } = await responseOf(events)
    expect(status).toBe('incomplete')
    expect(output).toMatchObject([{ type: 'message', content: [{ type: 'refusal' }] }])
  })

  it.each<[string, string, string | undefined]>([
    ['end_turn', 'completed', undefined],
    ['max_tokens', 'incomplete', 'max_output_tokens'],
    ['refusal', 'incomplete', 'content_filter'],
    ['other', 'completed', undefined],
  ])('end with %s as %s', (reason, status, incompleteReason) => {
    const events = translate().events([START, ...saying(0, 'a'), end(reason), STOP])
    expect(events.at(-1)?.type).toBe(`response.${status}`)
    const response = lastResponse(events)
    expect([response.status, response.incomplete_details?.reason]).toEqual([status, incompleteReason])
    expect(response.output).toMatchObject([{ status }])
  })

  it('tell of a refusal, and hand on no calls of the refused turn', async () => {
    const stop_details = { type: 'refusal', category: null, explanation: 'No.' }
    const events = translate().events([
      START,
      ...saying(0, 'I'),
      ...calling(1, 'call_1', '{}'),
      end('refusal', {}, { stop_details }),
    ])
    expect((await responseOf(events)).output).toMatchObject([
      { type: 'message', status: 'completed' },
      { type: 'message', status: 'incomplete', content: [{ type: 'refusal', refusal: 'No.' }] },
    ])
    const silent = translate().events([START, end('refusal')])
    expect((await responseOf(silent)).output).toMatchObject([
      { content: [{ refusal: 'The model refused to answer.' }] },
    ])
  })

  it('have the figures that the upstream reported last', () => {
    const usageIn = (first: object | undefined, ...ends: object[]): unknown =>
      lastResponse(
        translate().events([
          { type: 'message_start', message: { usage: first } },
          ...ends.map((usage) => end('end_turn', usage)),
        ]),
      ).usage
    expect(
      usageIn({ input_tokens: 9, output_tokens: 1 }, { output_tokens: 5 }, { output_tokens: 7, input_tokens: null }),
    ).toMatchObject({
      input_tokens: 9,
      output_tokens: 7,
    })
    expect(
      usageIn({ input_tokens: 9 }, { input_tokens: 11, cache_creation_input_tokens: 2, output_tokens: 1 }),
    ).toMatchObject({
      input_tokens: 13,
      input_tokens_details: { cache_write_tokens: 2 },
    })
    expect(usageIn(undefined, null as unknown as object)).toBeNull()
  })

  it('ignore events, blocks and deltas that are not known', () => {
    const events = translate().events([
      START,
      { type: 'other' },
      {},
      begun(0, { type: 'server_tool_use', id: 'a', name: 'b', input: {} }),
      json(0, '{}'),
      stop(0),
      begun(1, TEXT),
      delta(1, { type: 'citations_delta', citation: {} }),
      textDelta(1, 'a'),
      stop(1),
      end(),
    ])
    expect(lastResponse(events).output).toMatchObject([{ content: [{ text: 'a' }] }])
  })

  it('remember what was thought before each call', () => {
    const remembered = new Map<string, string>()
    const thoughts = {
      remember: (id: string, blocks: string): void => void remembered.set(id, blocks),
      recall: () => undefined,
    }
    translate({}, { thoughts }).events([
      START,
      begun(0, THINKING),
      thinkingDelta(0, 'hm'),
      signatureDelta(0, 's'),
      stop(0),
      ...saying(1, 'a'),
      ...calling(2, 'call_1', '{}'),
      ...calling(3, 'call_2', '{}'),
      end('tool_use'),
    ])
    expect([...remembered]).toEqual([['call_1', '[{"type":"thinking","thinking":"hm","signature":"s"}]']])
  })

  it('have no last event where the upstream was cut, wherever that is', () => {
    const chunks = [
      START,
      begun(0, THINKING),
      thinkingDelta(0, 'h'),
      signatureDelta(0, 's'),
      stop(0),
      ...saying(1, 'a'),
      ...calling(2, 'call_1', '{}'),
    ]
    for (let length = 0; length <= chunks.length; length++) {
      const events = translate().translation.events()
      const frames = chunks
        .slice(0, length)
        .map((each) => events.event(each as Record<string, unknown>))
        .join('')
      expect(frames).not.toMatch(/response\.(?:completed|incomplete|failed)/)
      expect(thrownBy(() => events.end()).kind).toBe('upstream_failed')
      const failed = translate().failedEvents(
        chunks.slice(0, length),
        new GatewayError('upstream_failed', 'It was cut.'),
      )
      expect(typesOf(failed).slice(0, 2)).toEqual(BEGINNING)
      const response = lastResponse(failed)
      expect([response.status, response.error?.message]).toEqual(['failed', 'It was cut.'])
      expect(response.output.map(({ type }) => type)).not.toContain('function_call')
      expect(JSON.stringify(response.output).includes('encrypted_content')).toBe(length > 6)
    }
  })

  it('tell of a failure with the figures so far', () => {
    const failed = translate().failedEvents(
      [START, ...saying(0, 'a')],
      new GatewayError('upstream_overloaded', 'Overloaded'),
    )
    expect(lastResponse(failed)).toMatchObject({
      error: { code: 'server_error', message: 'Overloaded' },
      output: [{ type: 'message', status: 'incomplete' }],
      usage: { input_tokens: 9 },
    })
  })

  it.each<[string, object[]]>([
    ['a pause', [START, end('pause_turn')]],
    ['two messages', [START, START]],
    ['a block before its message', [begun(0, TEXT)]],
    ['an end before its message', [end()]],
    ['a delta of a block behind which another has begun', [START, begun(0, TEXT), begun(1, TEXT), textDelta(0, 'a')]],
    ['a delta of no block', [START, textDelta(0, 'a')]],
    ['a delta of another block', [START, begun(0, TEXT), textDelta(1, 'a')]],
    ['a text in a block of thinking', [START, begun(0, THINKING), textDelta(0, 'a'), stop(0), end()]],
    ['a text in a block that is not known', [START, begun(0, { type: 'other' }), textDelta(0, 'a'), stop(0), end()]],
    ['thinking in a text', [START, begun(0, TEXT), thinkingDelta(0, 'a'), stop(0), end()]],
    ['a signature in a text', [START, begun(0, TEXT), signatureDelta(0, 's'), stop(0), end()]],
    ['a text in a call', [START, begun(0, use('a')), textDelta(0, 'a'), stop(0), end('tool_use')]],
    ['the input of a call in a text', [START, begun(0, TEXT), json(0, '{}'), stop(0), end('tool_use')]],
    ['an end of another block', [START, begun(0, TEXT), stop(1)]],
    ['a block that is none', [START, begun(0, 1 as unknown as object)]],
    ['an end within a call', [START, begun(0, use('a')), json(0, '{"a"'), end('tool_use')]],
    ['an end within a call without pieces', [START, begun(0, use('a')), end()]],
    [
      'a block that begins within a call',
      [START, begun(0, use('a')), json(0, '{"a"'), ...calling(1, 'b', '{}'), end('tool_use')],
    ],
    ['a call without a name', [START, begun(0, { type: 'tool_use', id: 'a' })]],
    ['more than can be held', [START, begun(0, use('a', 'patch')), json(0, 'a'.repeat(256 * 1024 + 1))]],
    ['more than can be kept', [START, begun(0, TEXT), textDelta(0, 'a'.repeat(8 * 1024 * 1024 + 1))]],
  ])('fail with %s', (_name, chunks) => {
    expect(thrownBy(() => translate().events(chunks)).kind).toBe('upstream_failed')
  })

  it('count what they keep', () => {
    let bytes = 0
    const memory = { add: (more: number): void => void (bytes += more) }
    translate({}, { memory }).events([
      START,
      begun(0, THINKING),
      thinkingDelta(0, 'ä'),
      signatureDelta(0, 's'),
      stop(0),
      begun(1, { type: 'redacted_thinking', data: 'd' }),
      stop(1),
      ...saying(2, 'a'),
      ...calling(3, 'call_1', '{}'),
      end(),
    ])
    const [ITEMS, PARTS] = [3 * 256, 3 * 128]
    expect(bytes).toBe(ITEMS + PARTS + 7 + 'call_1weather'.length)
  })

  it.each<[string, (place: number) => object[]]>([
    ['empty calls', (place) => calling(place, `call_${place}`)],
    ['empty thoughts', (place) => [begun(place, { type: 'redacted_thinking', data: '' }), stop(place)]],
    ['texts of a letter', (place) => saying(place, 'a')],
  ])('fail with more %s than can be kept, however little each says', (_what, block) => {
    const events = translate().translation.events()
    const play = (each: object): unknown => events.event(each as Record<string, unknown>)
    play(START)
    const go = (): void => {
      for (let place = 0; place < 80_000; place++) block(place).forEach(play)
    }
    expect(thrownBy(go).kind).toBe('upstream_failed')
  })

  it('fail with ids and names of calls longer than can be kept', () => {
    const long = 'x'.repeat(3 * 1024 * 1024)
    const called = [use(long), use('call_1', long), use(`${long}2`)]
    const chunks = called.flatMap((block, place) => [begun(place, block), stop(place)])
    expect(thrownBy(() => translate().events([START, ...chunks, end('tool_use')])).kind).toBe('upstream_failed')
  })
})

const words = fc.string({ unit: 'grapheme' })
const blocks = fc.array(
  fc.oneof(
    fc.record({ type: fc.constant('text'), text: words }),
    fc.record({ type: fc.constant('thinking'), thinking: words, signature: fc.constantFrom('sig', '') }),
    fc.record({ type: fc.constant('redacted_thinking'), data: words }),
    fc.record({
      type: fc.constant('tool_use'),
      id: fc.stringMatching(/^t_\d{3}$/),
      name: fc.constantFrom('weather', 'patch'),
      input: fc.dictionary(fc.string(), fc.jsonValue()),
    }),
    fc.record({
      type: fc.constant('tool_use'),
      id: fc.stringMatching(/^t_\d{3}$/),
      name: fc.constant('patch'),
      input: fc.record({ input: words }),
    }),
  ),
  { maxLength: 6 },
)

const split = (text: string, size: number): readonly string[] => text.match(new RegExp(`.{1,${size}}`, 'gsu')) ?? []

type AnyBlock = Readonly<Record<string, unknown>>

/** The block as a stream tells of it, in pieces. */
function streamed(block: AnyBlock, index: number, size: number): object[] {
  const { type, text = '', thinking = '', signature, input = {} } = block
  if (type === 'text') return saying(index, ...split(String(text), size))
  if (type === 'redacted_thinking') return [begun(index, block), stop(index)]
  if (type === 'thinking') {
    const pieces = split(String(thinking), size).map((piece) => thinkingDelta(index, piece))
    return [begun(index, THINKING), ...pieces, signatureDelta(index, String(signature)), stop(index)]
  }
  const pieces = split(JSON.stringify(input), size).map((piece) => json(index, piece))
  return [begun(index, { ...block, input: {} }), ...pieces, stop(index)]
}

describe('Events and a whole answer', () => {
  it('end in the same response, and thoughts come back to the upstream as they were', async () => {
    const reasons = fc.constantFrom('end_turn', 'max_tokens', 'tool_use', 'refusal')
    await fc.assert(
      fc.asyncProperty(
        blocks,
        reasons,
        fc.boolean(),
        fc.integer({ min: 1, max: 9 }),
        async (content, reason, isShown, size) => {
          const translation = translate(isShown ? { reasoning: { summary: 'auto' } } : {})
          const usage = { input_tokens: 9, output_tokens: 10 }
          const whole = translation.answer({ content, stop_reason: reason, usage })
          const chunks = content.flatMap((block, index) => streamed(block, index, size))
          const response = await responseOf(translation.events([START, ...chunks, end(reason), STOP]))
          expect(comparable(response)).toEqual(comparable(whole))
          const back = translate({
            input: [
              { role: 'user', content: 'a' },
              ...whole.output.filter(({ type }) => type !== 'function_call' && type !== 'custom_tool_call'),
              { role: 'assistant', content: 'b' },
            ],
          })
          const isThought = ({ type, signature }: AnyBlock): boolean =>
            type === 'redacted_thinking' || (type === 'thinking' && signature !== '')
          const sent = back.sent['messages'] as readonly { readonly content: readonly AnyBlock[] }[]
          expect(sent.flatMap((message) => message.content).filter(isThought)).toEqual(content.filter(isThought))
        },
      ),
      { numRuns: 100 },
    )
  })
})
