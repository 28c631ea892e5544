import { describe, expect, it } from '@jest/globals'
import { TranslationRun } from '../../../test/support/translation.js'
import type { ModelFields } from '../../core/json-body.js'
import type { Translator } from '../translator.js'
import type { DialectPair } from '../verdicts.js'
import { chatOverMessages } from './chat-over-messages/chat-over-messages.js'
import { messagesOverChat } from './messages-over-chat/messages-over-chat.js'
import { responsesOverChat } from './responses-over-chat/responses-over-chat.js'
import { responsesOverMessages } from './responses-over-messages/responses-over-messages.js'

type Members = Readonly<Record<string, unknown>>

const MESSAGES = { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 9 }

const chatAnswer = (reason: string, message: object = { content: 'Hello' }): Members => ({
  id: 'c',
  choices: [{ index: 0, message, finish_reason: reason }],
})

const chatEvents = (...reasons: readonly string[]): readonly Members[] => [
  { id: 'c', choices: [{ index: 0, delta: { content: 'Hello' }, finish_reason: null }] },
  ...reasons.map((finish_reason) => ({ id: 'c', choices: [{ index: 0, delta: {}, finish_reason }] })),
]

const message = (reason: string): Members => ({
  id: 'm',
  content: [{ type: 'text', text: 'Hello' }],
  stop_reason: reason,
  usage: { input_tokens: 1, output_tokens: 1 },
})

const messageEvents = (...reasons: readonly string[]): readonly Members[] => [
  { type: 'message_start', message: { id: 'm', usage: { input_tokens: 1, output_tokens: 0 } } },
  { type: 'ping' },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
  { type: 'content_block_stop', index: 0 },
  ...reasons.map((stop_reason) => ({ type: 'message_delta', delta: { stop_reason }, usage: { output_tokens: 1 } })),
  { type: 'message_stop' },
]

interface Pair {
  readonly pair: DialectPair
  /** A request, and the words that are noted. */
  readonly begin: () => readonly [
    Pick<TranslationRun<ModelFields, object>, 'translation' | 'answerText' | 'frames'>,
    readonly string[],
  ]
  readonly answer: (reason: string) => Members
  readonly events: (...reasons: readonly string[]) => readonly Members[]
  readonly kind: 'finish reason' | 'stop reason'
  /** The word of the client's dialect for a plain end. */
  readonly plainEnd: string
}

const pairOf = <Fields extends ModelFields>(
  pair: DialectPair,
  translator: Translator<Fields, object>,
  request: object,
  plainEnd: string,
): Pair => ({
  pair,
  begin: () => {
    const noted: string[] = []
    const unknownWords = { note: (kind: string, word: string) => noted.push(`${kind}: ${word}`) }
    return [new TranslationRun(pair, translator, request, { unknownWords }), noted]
  },
  answer: pair.upstream === 'chat' ? chatAnswer : message,
  events: pair.upstream === 'chat' ? chatEvents : messageEvents,
  kind: pair.upstream === 'chat' ? 'finish reason' : 'stop reason',
  plainEnd,
})

const COMPLETED = '"status":"completed"'
const PAIRS: readonly Pair[] = [
  pairOf({ client: 'chat', upstream: 'messages' }, chatOverMessages, MESSAGES, '"finish_reason":"stop"'),
  pairOf({ client: 'messages', upstream: 'chat' }, messagesOverChat, MESSAGES, '"stop_reason":"end_turn"'),
  pairOf({ client: 'responses', upstream: 'chat' }, responsesOverChat, { input: 'Hi' }, COMPLETED),
  pairOf({ client: 'responses', upstream: 'messages' }, responsesOverMessages, { input: 'Hi' }, COMPLETED),
]

describe.each(PAIRS)('An answer of $pair.upstream in the words of $pair.client', (pair) => {
  // The last one is a name that every object has.
  it.each(['tired', 'constructor'])('ends plainly for a reason that is not known, which is noted: %s', (reason) => {
    const [run, noted] = pair.begin()
    expect(run.answerText(pair.answer(reason))).toContain(pair.plainEnd)
    expect(noted).toEqual([`${pair.kind}: ${reason}`])
  })

  it('ends so in a stream, too, where it is noted once', () => {
    const [run, noted] = pair.begin()
    expect(run.frames(pair.events('tired'))).toContain(pair.plainEnd)
    expect(noted).toEqual([`${pair.kind}: tired`])
  })

  const CUT = /"(?:finish_reason":"length|stop_reason":"max_tokens|reason":"max_output_tokens)"/
  const REFUSED = /"(?:finish_reason":"content_filter|stop_reason":"refusal|reason":"content_filter)"/
  const [plain, cut, refused] =
    pair.kind === 'finish reason' ? ['stop', 'length', 'content_filter'] : ['end_turn', 'max_tokens', 'refusal']

  it.each<[readonly string[], RegExp]>([
    [[cut, plain], CUT],
    [[plain, cut], CUT],
    [[cut, 'tired'], CUT],
    [[refused, plain], REFUSED],
    [[plain, refused], REFUSED],
    [[cut, refused], REFUSED],
    [[refused, cut], REFUSED],
  ])('never ends plainly where one of several reasons says that something is missing: %j', (reasons, expected) => {
    const [run] = pair.begin()
    expect(run.frames(pair.events(...reasons))).toMatch(expected)
    expect(run.frames(pair.events(...reasons))).not.toContain(pair.plainEnd)
  })

  it('has no word to be noted where all are known', () => {
    const [run, noted] = pair.begin()
    for (const reason of pair.kind === 'finish reason' ? ['stop', 'length'] : ['end_turn', 'max_tokens']) {
      run.answerText(pair.answer(reason))
      run.frames(pair.events(reason))
    }
    expect(noted).toEqual([])
  })
})

describe.each(PAIRS.filter(({ kind }) => kind === 'finish reason'))(
  'An answer of $pair',
  ({ begin, answer, events }) => {
    const ROOM_ENDED = /"stop_reason":"max_tokens"|"reason":"max_output_tokens"/
    const REFUSED = /"stop_reason":"refusal"|"reason":"content_filter"/
    const FAILURE = expect.objectContaining({ kind: 'upstream_failed' })

    it.each(['error', 'network_error', 'abort', 'insufficient_system_resource'])(
      'fails where its upstream broke off: %s',
      (reason) => {
        expect(() => begin()[0].answerText(answer(reason))).toThrow(FAILURE)
        expect(() => begin()[0].frames(events(reason))).toThrow(FAILURE)
        expect(() => begin()[0].frames(events(reason, 'stop'))).toThrow(FAILURE)
      },
    )

    it('fails where an error stands beside what was said, whose words may name the gateway’s own account', () => {
      const error = { code: 502, message: 'Out of order.' }
      expect(() => begin()[0].answerText({ ...answer('stop'), error })).toThrow('The upstream reported an error.')
      const broken = { ...events('stop')[1], error }
      expect(() => begin()[0].frames([...events(), broken])).toThrow('The upstream reported an error.')
      expect(() => begin()[0].frames([...events(), { ...broken, error: 'Gone.' }])).toThrow(
        'The upstream reported an error.',
      )
      expect(() => begin()[0].frames([...events(), { ...broken, error: null }])).not.toThrow()
    })

    it.each(['model_length', 'model_context_window_exceeded', 'max_tokens'])(
      'is cut where the room for the answer, or for both, question and answer, ended: %s',
      (reason) => {
        expect(begin()[0].answerText(answer(reason))).toMatch(ROOM_ENDED)
        expect(begin()[0].frames(events(reason, 'stop'))).toMatch(ROOM_ENDED)
      },
    )

    it('is refused where the upstream took it for sensitive', () => {
      expect(begin()[0].answerText(answer('sensitive'))).toMatch(REFUSED)
      expect(begin()[0].frames(events('sensitive', 'stop'))).toMatch(REFUSED)
    })
  },
)

describe.each(PAIRS.filter(({ kind }) => kind === 'stop reason'))('A stream of $pair.client over messages', (pair) => {
  it('is the same with events of a type that is not known, which is noted', () => {
    const [run, noted] = pair.begin()
    const events = run.translation.events()
    const [start = {}] = pair.events('end_turn')
    events.event(start)
    expect(events.event({ type: 'message_news', news: [] })).toBe('')
    expect(events.event({ type: 'ping' })).toBe(': ping\n\n')
    expect(events.event({})).toBe('')
    expect(noted).toEqual(['event: message_news'])
  })
})
