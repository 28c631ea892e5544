import { describe, expect, it } from '@jest/globals'
import { TranslationRun } from '../../../test/support/translation.js'
import type { ByteSink, ByteSource, ProviderResponse } from '../../core/byte-stream.js'
import { GatewayError } from '../../core/errors.js'
import type { ModelFields } from '../../core/json-body.js'
import { type SseDialect, SseRelay } from '../../upstream/sse-relay.js'
import { eventResponse } from '../../upstream/upstream-response.js'
import { MESSAGES_EVENTS } from '../anthropic-messages.js'
import { CHAT_EVENTS } from '../openai-wire.js'
import { sendTranslated, type Translator } from '../translator.js'
import type { DialectPair } from '../verdicts.js'
import { chatOverMessages } from './chat-over-messages/chat-over-messages.js'
import { messagesOverChat } from './messages-over-chat/messages-over-chat.js'
import { responsesOverChat } from './responses-over-chat/responses-over-chat.js'
import { responsesOverMessages } from './responses-over-messages/responses-over-messages.js'

const messagesEvent = (type: string, fields: object): string =>
  `event: ${type}\r\ndata: ${JSON.stringify({ type, ...fields })}\r\n\r\n`
const block = (index: number, start: object, ...deltas: readonly object[]): readonly string[] => [
  messagesEvent('content_block_start', { index, content_block: start }),
  ...deltas.map((delta) => messagesEvent('content_block_delta', { index, delta })),
  messagesEvent('content_block_stop', { index }),
]
const input = (partial_json: string): object => ({ type: 'input_json_delta', partial_json })

/** Thinking, a text beyond ASCII, two calls of tools, a ping and a comment. */
const MESSAGES_STREAM: readonly string[] = [
  messagesEvent('message_start', {
    message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], usage: { input_tokens: 7 } },
  }),
  ': comment\n\n',
  ...block(
    0,
    { type: 'thinking', thinking: '', signature: '' },
    { type: 'thinking_delta', thinking: 'Hm, ☃.' },
    { type: 'signature_delta', signature: 'EqQB' },
  ),
  'event: ping\ndata: {"type": "ping"}\n\n',
  ...block(
    1,
    { type: 'text', text: '' },
    { type: 'text_delta', text: 'Grüße 😀' },
    { type: 'text_delta', text: ' "x"\n' },
  ),
  ...block(2, { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }, input('{"a":'), input('1.0}')),
  ...block(3, { type: 'tool_use', id: 'toolu_2', name: 'g', input: {} }, input('{"é":"\\u00e9"}')),
  messagesEvent('message_delta', { delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 9 } }),
  messagesEvent('message_stop', {}),
]

const chunk = (choices: readonly object[], more: object = {}): string =>
  `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more })}\n\n`
const delta = (fields: object, finish_reason: string | null = null): string =>
  chunk([{ index: 0, delta: fields, finish_reason }])
const call = (index: number, fields: object): string => delta({ tool_calls: [{ index, ...fields }] })

/** The same of a chat upstream, with the pieces of its calls mixed. */
const CHAT_STREAM: readonly string[] = [
  delta({ role: 'assistant', content: '' }),
  ': comment\n\n',
  delta({ reasoning_content: 'Hm, ☃.' }),
  delta({ content: 'Grüße 😀' }),
  delta({ content: ' "x"\n' }),
  call(0, { id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } }),
  call(1, { id: 'call_2', type: 'function', function: { name: 'g', arguments: '{"é":' } }),
  call(0, { function: { arguments: '{"a":1.0}' } }),
  call(1, { function: { arguments: '"\\u00e9"}' } }),
  delta({}, 'tool_calls'),
  chunk([], { usage: { prompt_tokens: 7, completion_tokens: 9, total_tokens: 16 } }),
  'data: [DONE]\n\n',
]

interface Pair {
  readonly name: string
  readonly upstream: readonly string[]
  /** By which a client knows that an answer is whole. */
  readonly end: string
  /** How its upstream's events are relayed. */
  readonly dialect: SseDialect
  readonly translate: (source: ByteSource) => Promise<ProviderResponse>
}

function pairOf<Fields extends ModelFields, UpstreamFields extends object>(
  pair: DialectPair,
  translator: Translator<Fields, UpstreamFields>,
  end: string,
): Pair {
  const text = JSON.stringify({
    model: 'mine',
    max_tokens: 100,
    stream: true,
    stream_options: { include_usage: true },
    ...(pair.client === 'responses' ? { input: 'Hi' } : { messages: [{ role: 'user', content: 'Hi' }] }),
  })
  return {
    name: `${pair.client} over ${pair.upstream}`,
    upstream: pair.upstream === 'messages' ? MESSAGES_STREAM : CHAT_STREAM,
    end,
    dialect: pair.upstream === 'messages' ? MESSAGES_EVENTS : CHAT_EVENTS,
    translate: (source) => {
      const { translation } = new TranslationRun(pair, translator, text)
      return sendTranslated(translation, undefined, () => eventResponse(200, {}, source))
    },
  }
}

const PAIRS: readonly Pair[] = [
  pairOf({ client: 'chat', upstream: 'messages' }, chatOverMessages, 'data: [DONE]'),
  pairOf({ client: 'messages', upstream: 'chat' }, messagesOverChat, 'event: message_stop'),
  pairOf({ client: 'responses', upstream: 'messages' }, responsesOverMessages, 'event: response.completed'),
  pairOf({ client: 'responses', upstream: 'chat' }, responsesOverChat, 'event: response.completed'),
]

/** Gives the pieces one after the other, then ends, or fails where it is cut. */
class Pieces implements ByteSource {
  constructor(
    private readonly pieces: readonly Buffer[],
    private readonly isCut = false,
  ) {}

  start(sink: ByteSink): void {
    for (const piece of this.pieces) sink.data(piece)
    if (this.isCut) sink.fail(new GatewayError('upstream_failed', 'Cut.'))
    else sink.end()
  }

  pause(): void {
    // Nothing is on its way.
  }

  resume(): void {
    // As above.
  }

  cancel(): void {
    // As above.
  }
}

/** What the client gets; ids, times and signatures of the gateway are other ones each time. */
async function received({ translate }: Pair, source: ByteSource): Promise<string> {
  const { body } = await translate(source)
  if (Buffer.isBuffer(body)) throw new Error('no stream')
  let text = ''
  body.start({
    data: (bytes) => {
      text += bytes.toString()
    },
    end: () => {
      text += 'THE END'
    },
    fail: ({ message, details }) => {
      text += `${details.frame ?? ''}FAILED: ${message}`
    },
  })
  return text
    .replaceAll(/(resp|rs|msg|fc)_[0-9a-f]{32,}/g, '$1_')
    .replaceAll(/"(created|created_at|completed_at)":\d+/g, '"$1":0')
    .replaceAll(/"encrypted_content":"[^"]+"/g, '"encrypted_content":""')
    .replaceAll(/"gw1\.[\w-]{24}"/g, '"gw1."')
}

describe.each(PAIRS)('A stream of $name', (pair) => {
  const bytes = Buffer.from(pair.upstream.join(''))

  it('is the same wherever the pieces of its upstream begin', async () => {
    const relayed = (pieces: readonly Buffer[]): Promise<string> =>
      received(pair, new SseRelay(new Pieces(pieces), pair.dialect))
    const expected = await relayed([bytes])
    expect(expected).toContain(pair.end)
    expect(expected).toMatch(/Grüße 😀[^]*THE END$/)
    for (let border = 1; border < bytes.length; border++) {
      expect(await relayed([bytes.subarray(0, border), bytes.subarray(border)])).toBe(expected)
    }
    expect(await relayed(Array.from(bytes, (byte) => Buffer.from([byte])))).toBe(expected)
  })

  it('never looks whole where its upstream is cut, behind whatever event', async () => {
    for (let events = 1; events < pair.upstream.length; events++) {
      const source = new Pieces([Buffer.from(pair.upstream.slice(0, events).join(''))], true)
      const text = await received(pair, source).catch((error: unknown) => String(error))
      expect(text).toMatch(/Cut\./)
      expect(text).not.toContain(pair.end)
    }
  })
})
