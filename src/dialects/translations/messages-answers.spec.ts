import { describe, expect, it } from '@jest/globals'
import { TranslationRun } from '../../../test/support/translation.js'
import { chatOverMessages } from './chat-over-messages/chat-over-messages.js'
import { responsesOverMessages } from './responses-over-messages/responses-over-messages.js'

type Members = Readonly<Record<string, unknown>>
type Answering = Pick<TranslationRun<never, object>, 'answerText' | 'frames'>

const forChat = (): Answering =>
  new TranslationRun({ client: 'chat', upstream: 'messages' }, chatOverMessages, {
    messages: [{ role: 'user', content: 'Hi' }],
  })
const forResponses = (): Answering =>
  new TranslationRun({ client: 'responses', upstream: 'messages' }, responsesOverMessages, { input: 'Hi' })

const CLIENTS: readonly (readonly [string, () => Answering])[] = [
  ['chat', forChat],
  ['responses', forResponses],
]

const message = (content: unknown, stop_reason: string): object => ({ id: 'm', content, stop_reason })

const streamed = (stop_reason: string, ...blocks: readonly object[]): readonly object[] => [
  { type: 'message_start', message: { id: 'm', usage: {} } },
  ...blocks,
  { type: 'message_delta', delta: { stop_reason } },
  { type: 'message_stop' },
]
const block = (content_block: unknown, ...deltas: readonly object[]): readonly object[] => [
  { type: 'content_block_start', index: 0, content_block },
  ...deltas.map((delta) => ({ type: 'content_block_delta', index: 0, delta })),
  { type: 'content_block_stop', index: 0 },
]

/** The arguments of the one call, as the client puts them together. */
function argumentsIn(text: string): string {
  const all = [...text.matchAll(/"arguments":("(?:[^"\\]|\\.)*")/g)].map(([, json = '']) => String(JSON.parse(json)))
  return text.startsWith('event:') ? (all.at(-1) ?? '') : all.join('')
}

describe.each(CLIENTS)('An answer of a messages upstream for a client of %s', (_client, run) => {
  const use = (input?: unknown): Members => ({
    type: 'tool_use',
    id: 't',
    name: 'f',
    ...(input === undefined ? {} : { input }),
  })

  it.each<[unknown, string]>([
    [undefined, '{}'],
    [null, '{}'],
    [{}, '{}'],
    [{ a: 1 }, '{"a":1}'],
    [[1], '[1]'],
    ['x', '"x"'],
    [5, '5'],
  ])('has the same input of a call that came at once, whole and streamed: %j', (input, expected) => {
    expect(argumentsIn(run().answerText(message([use(input)], 'tool_use')))).toBe(expected)
    expect(argumentsIn(run().frames(streamed('tool_use', ...block(use(input)))))).toBe(expected)
  })

  const TEXT = { type: 'text', text: '' }
  const THINKING = { type: 'thinking', thinking: '', signature: '' }

  it.each<[string, unknown, Members[]]>([
    ['a text', TEXT, [{ type: 'text_delta', text: 5 }]],
    ['a text at its beginning', { type: 'text', text: ['Hi'] }, []],
    ['thoughts', THINKING, [{ type: 'thinking_delta', thinking: {} }]],
    ['an input', use({}), [{ type: 'input_json_delta', partial_json: { a: 1 } }]],
  ])('fails with a piece that is no text, which would be missing: of %s', (_what, start, deltas) => {
    const events = streamed('end_turn', ...block(start, ...deltas))
    expect(() => run().frames(events)).toThrow(expect.objectContaining({ kind: 'upstream_failed' }))
  })

  it.each<[string, unknown]>([
    ['a text that is none', { type: 'text', text: 5 }],
    ['thoughts that are no text', { type: 'thinking', thinking: 5, signature: 's' }],
    ['a block that is none', null],
  ])('fails where it has %s', (_what, content) => {
    const answer = message([content, { type: 'text', text: 'Hi' }], 'end_turn')
    expect(() => run().answerText(answer)).toThrow(expect.objectContaining({ kind: 'upstream_failed' }))
  })

  it('passes over what says nothing', () => {
    const nothing = [{ type: 'text_delta', text: null }, { type: 'text_delta' }, { type: 'text_delta', text: '' }]
    expect(() => run().frames(streamed('end_turn', ...block({ type: 'text' }, ...nothing)))).not.toThrow()
    expect(() => run().answerText(message([{ type: 'text', text: null }], 'end_turn'))).not.toThrow()
  })
})

describe('The finish reason of a messages upstream for a client of chat', () => {
  const use = { type: 'tool_use', id: 't', name: 'f', input: {} }

  it.each([
    ['end_turn', 'tool_calls'],
    ['stop_sequence', 'tool_calls'],
    ['tired', 'tool_calls'],
    ['tool_use', 'tool_calls'],
    ['max_tokens', 'length'],
  ])('says that tools are called, as they are, where the upstream says %s', (reason, expected) => {
    const finish = `"finish_reason":"${expected}"`
    expect(forChat().answerText(message([use], reason))).toContain(finish)
    expect(forChat().frames(streamed(reason, ...block(use)))).toContain(finish)
  })

  it('says so of no answer that calls none', () => {
    const text = { type: 'text', text: 'Hi' }
    expect(forChat().answerText(message([text], 'tool_use'))).toContain('"finish_reason":"stop"')
    expect(forChat().frames(streamed('tool_use', ...block(text)))).toContain('"finish_reason":"stop"')
  })
})
