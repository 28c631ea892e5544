import { describe, expect, it } from '@jest/globals'
import { attemptOf, newCall } from '../../test/support/raw-upstream.js'
import { channelEntry } from '../../test/support/routing.js'
import { parseConfig } from '../../test/support/config.js'
import { ConfigStore } from '../config/config-store.js'
import { ProviderResponse } from '../core/byte-stream.js'
import { JsonBody } from '../core/json-body.js'
import type { ChatFields } from '../dialects/openai-wire.js'
import { Metrics } from '../observability/metrics.js'
import type { AttemptContext, MessagesCall, MessagesProvider } from '../providers/contract.js'
import { Channel } from './channel.js'
import { Translations } from './translations.js'
import { UnknownUpstreamWords } from './unknown-words.js'

const THOUGHT = { type: 'thinking', thinking: 'I look it up.', signature: 'signed' }
const ANSWER = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  content: [THOUGHT, { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }],
  stop_reason: 'tool_use',
  usage: { input_tokens: 1, output_tokens: 1 },
}

/** A messages upstream that thinks before it calls a tool; keeps what it was sent. */
class ThinkingUpstream {
  readonly sent: string[] = []
  readonly provider: MessagesProvider

  constructor() {
    const create = ({ body }: MessagesCall): Promise<ProviderResponse> => {
      this.sent.push(body.bytes.toString())
      const headers = { 'content-type': 'application/json' }
      return Promise.resolve(new ProviderResponse(200, headers, Buffer.from(JSON.stringify(ANSWER))))
    }
    this.provider = { create } as Partial<MessagesProvider> as MessagesProvider
  }
}

const CHAT = {
  model: 'claude',
  max_completion_tokens: 4000,
  tools: [{ type: 'function', function: { name: 'look' } }],
  messages: [{ role: 'user', content: 'Look' }],
}
/** Of a client that drops what it does not know. */
const CHAT_AFTER = {
  ...CHAT,
  messages: [
    ...CHAT.messages,
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'toolu_1', type: 'function', function: { name: 'look', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'toolu_1', content: 'found' },
  ],
}

/** A gateway's translations, and how owners ask channels through them. */
function gateway(dialects: object = {}) {
  const store = new ConfigStore(parseConfig(JSON.stringify({ dialects }), {}))
  const words = new UnknownUpstreamWords(new Metrics(), { warn: () => undefined })
  const translations = new Translations(store, words)
  const upstream = new ThinkingUpstream()
  const ask = async (keyId: string, { id, baseUrl }: Place, fields: ChatFields): Promise<string> => {
    const entries = [channelEntry(id, { provider: 'm1', baseUrl })]
    const [config] = parseConfig(JSON.stringify({ channels: entries }), {}).channels
    if (config === undefined) throw new Error('No channel')
    const place = { channel: new Channel(config, 'messages'), row: undefined }
    const pair = { client: 'chat', upstream: 'messages' } as const
    const provider = translations.providerFor(pair, { messages: upstream.provider }, place, { keyId })
    const context = { ...attemptOf(newCall()), upstreamModel: 'claude' } as AttemptContext
    await provider?.respond(JsonBody.written(JSON.stringify(fields), fields), context)
    return upstream.sent.at(-1) ?? ''
  }
  return { ask }
}

interface Place {
  readonly id: string
  readonly baseUrl: string
}

const FIRST: Place = { id: 'first', baseUrl: 'https://one.test/a' }

describe('What a model thought before it called a tool', () => {
  it.each([
    ['the upstream that thought it', 'owner', FIRST, true],
    ['the same upstream by another channel', 'owner', { id: 'second', baseUrl: 'https://one.test/b' }, true],
    [
      'another upstream, which would refuse the signature',
      'owner',
      { id: 'first', baseUrl: 'https://two.test/a' },
      false,
    ],
    ['the same upstream for another owner', 'other', FIRST, false],
  ])('goes back, or not, to %s', async (_where, keyId, place, isRecalled) => {
    const { ask } = gateway()
    await ask('owner', FIRST, CHAT)
    const sent = await ask(keyId, place, CHAT_AFTER)
    expect(sent).toContain('"tool_use_id":"toolu_1"')
    expect(sent.includes(JSON.stringify(THOUGHT))).toBe(isRecalled)
  })

  it('is not remembered where the operator does not want it', async () => {
    const { ask } = gateway({ rememberThinking: false })
    await ask('owner', FIRST, CHAT)
    expect(await ask('owner', FIRST, CHAT_AFTER)).not.toContain('I look it up.')
  })
})
