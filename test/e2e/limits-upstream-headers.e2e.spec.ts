import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { sample, upload } from '../support/audio-uploads.js'
import { SPEECH_PATH, speechText } from '../support/chat-bodies.js'
import { type LimitedGateway, startLimitedGateway } from '../support/limited-gateway.js'
import { ANTHROPIC_CLIENTS, message, MESSAGES, messageText } from '../support/m1-gateway.js'
import { sendRaw } from '../support/raw-http.js'
import { fieldPart, filePart } from '../support/upload-server.js'

let lab: LimitedGateway

beforeAll(async () => {
  lab = await startLimitedGateway({
    requests: { requestsPerMinute: 50 },
    both: { requestsPerMinute: 50, tokensPerMinute: 90_000 },
    places: { concurrency: 5 },
    free: undefined,
    none: {},
  })
})
afterAll(() => lab.close())

/** Every header of an answer that tells of a limit, whoever wrote it. */
const told = (headers: Headers): string[] =>
  [...headers.keys()].filter((name) => /ratelimit|priority/.test(name)).sort()

const common = (...words: string[]): string[] =>
  words.flatMap((word) => ['limit', 'remaining', 'reset'].map((part) => `x-ratelimit-${part}-${word}`)).sort()

const ofMessages = (...words: string[]): string[] =>
  words.flatMap((word) => ['limit', 'remaining', 'reset'].map((part) => `anthropic-ratelimit-${word}-${part}`)).sort()

describe('A caller with limits, of whose account the upstream tells figures too,', () => {
  it.each([
    ['in a chat', 'Hello', {}],
    ['in a chat that is streamed', 'Hello', { stream: true }],
    ['in a chat that the upstream refuses', '#400', {}],
  ])('is told of its own limits alone %s', async (_name, text, more) => {
    const answer = await lab.chat('requests', text, more)
    await answer.text()
    expect(told(answer.headers)).toEqual(common('requests'))
    expect(answer.headers.get('x-ratelimit-limit-requests')).toBe('50')
  })

  it('is told of its own limits alone in speech and in a transcription', async () => {
    const spoken = await lab.post('requests', SPEECH_PATH, speechText('Hi'))
    await spoken.arrayBuffer()
    expect([spoken.status, told(spoken.headers)]).toEqual([200, common('requests')])
    const parts = [filePart(sample('tone.wav')), fieldPart('model', 'gpt-4o-transcribe')]
    const headers = { authorization: 'Bearer requests' }
    const heard = await sendRaw(lab.gateway.url, upload(parts, undefined, headers))
    const names = Object.keys(heard.headers).filter((name) => name.includes('ratelimit'))
    expect([heard.status, names.sort()]).toEqual([200, common('requests')])
  })

  it('is told nothing by the minute when it has no limit by the minute', async () => {
    const chat = await lab.chat('places')
    await chat.text()
    const messages = await lab.post('places', MESSAGES, messageText('Hi'))
    await messages.text()
    expect([chat.status, told(chat.headers)]).toEqual([200, []])
    expect([messages.status, told(messages.headers)]).toEqual([200, []])
  })

  it('is told of its own limits alone by a stream of messages', async () => {
    const answer = await lab.post('requests', MESSAGES, messageText('Hi', { stream: true }))
    expect(await answer.text()).toContain('message_stop')
    expect(told(answer.headers)).toEqual(ofMessages('requests'))
  })

  it.each(ANTHROPIC_CLIENTS.map(([name, make]) => [name, make] as const))(
    'is told of its own limits alone with %s, and of no input or output tokens',
    async (_name, make) => {
      const client = make(lab.gateway, { apiKey: 'both' })
      const created = await client.messages.create(message('Hi')).withResponse()
      expect(told(created.response.headers)).toEqual(ofMessages('requests', 'tokens'))
      expect(created.response.headers.get('anthropic-ratelimit-requests-limit')).toBe('50')
      expect(created.response.headers.get('anthropic-ratelimit-tokens-limit')).toBe('90000')
      const { model, messages } = message('Hi')
      const counted = await client.messages.countTokens({ model, messages }).withResponse()
      expect(told(counted.response.headers)).toEqual(ofMessages('requests', 'tokens'))
    },
  )
})

describe('A caller without limits', () => {
  it.each(['free', 'none'])('hears what the upstream tells, as it tells it: %s', async (key) => {
    const chat = await lab.chat(key)
    await chat.text()
    expect(told(chat.headers)).toEqual(common('requests', 'tokens'))
    expect(chat.headers.get('x-ratelimit-limit-tokens')).toBe('600000')
    const messages = await lab.post(key, MESSAGES, messageText('Hi'))
    await messages.text()
    expect(told(messages.headers)).toEqual(ofMessages('input-tokens', 'output-tokens', 'requests', 'tokens'))
    expect(messages.headers.get('anthropic-ratelimit-input-tokens-limit')).toBe('400000')
  })
})
