import { afterEach, describe, expect, it } from '@jest/globals'
import { WebSocket } from 'ws'
import { eventually } from '../support/eventually.js'
import type { TestGateway } from '../support/gateway.js'
import {
  costOf,
  CREATED,
  createOf,
  createsOf,
  doneWith,
  judged,
  leftOf,
  type LimitedSession,
  limitsOf,
  openSession,
  say,
  startLimitedRealtime,
} from '../support/limited-sessions.js'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Lab {
  readonly gateway: TestGateway
  readonly open: () => Promise<LimitedSession>
  readonly tokensLeft: () => Promise<number | undefined>
}

async function start(limits: object): Promise<Lab> {
  const { gateway, upstream, close } = await startLimitedRealtime({ concurrency: 20, ...limits })
  closers.push(close)
  const open = async (): Promise<LimitedSession> => {
    const session = await openSession(gateway, upstream)
    closers.push(() => session.client.close())
    return session
  }
  return { gateway, open, tokensLeft: () => leftOf(gateway, 'tokensPerMinute') }
}

const CREATE = createOf(100)
const COST = costOf(100)

const refusal = (words: RegExp): object => ({
  type: 'error',
  error: {
    type: 'rate_limit_error',
    code: 'rate_limit_exceeded',
    event_id: 'mine',
    message: expect.stringMatching(words),
  },
})

describe('Answers that two sessions of a key ask for at once', () => {
  it('are both given where the limit is exactly what they may use', async () => {
    const { open, tokensLeft } = await start({ tokensPerMinute: 2 * COST })
    const sessions = [await open(), await open()]
    await Promise.all(sessions.map((session) => judged(session, CREATE)))
    expect(createsOf(sessions)).toBe(2)
    expect(await tokensLeft()).toBe(0)
  })

  it('are one where the limit is a token less: the other is refused before its upstream hears of it', async () => {
    const { open } = await start({ tokensPerMinute: 2 * COST - 1 })
    const [one, other] = [await open(), await open()]
    await judged(one, CREATE)
    await judged(other, CREATE)
    expect(one.heard).toEqual(['response.create', 'input_audio_buffer.clear'])
    expect(other.heard).toEqual(['input_audio_buffer.clear'])
    const words =
      `^The limit of ${2 * COST - 1} tokens per minute of this API key \\(key:team\\) has ${COST - 1} left, ` +
      `and this request expects to use ${COST}\\. It is reset in \\d+ s\\.$`
    expect(await other.client.next('error')).toMatchObject(refusal(new RegExp(words)))
    expect(other.client.socket.readyState).toBe(WebSocket.OPEN)
  })

  it('are never more than fit, however many sessions ask', async () => {
    const { open } = await start({ tokensPerMinute: 4 * COST + 10 })
    const sessions: LimitedSession[] = []
    while (sessions.length < 10) sessions.push(await open())
    await Promise.all(sessions.map((session) => judged(session, CREATE)))
    expect(createsOf(sessions)).toBe(4)
  })

  it('are as long as the settings expect where they have no maximum, and never longer than the whole limit', async () => {
    const { open, tokensLeft } = await start({ tokensPerMinute: 3000 })
    const [one, other] = [await open(), await open()]
    const plain = { type: 'response.create' }
    await judged(one, plain)
    expect(await tokensLeft()).toBe(3000 - 1000 - Math.ceil(JSON.stringify(plain).length / 4))
    await judged(other, createOf(5000))
    expect(other.heard).not.toContain('response.create')
    await say(one, CREATED)
    await say(one, doneWith(0))
    await judged(other, createOf(5000))
    expect(other.heard).toContain('response.create')
    expect(await tokensLeft()).toBe(0)
  })

  it('hold seconds of audio as well where they may be spoken', async () => {
    const { gateway, open } = await start({ audioSecondsPerMinute: 20 })
    const [one, other, third] = [await open(), await open(), await open()]
    for (const session of [one, other, third]) await judged(session, { type: 'response.create', event_id: 'mine' })
    expect(createsOf([one, other])).toBe(2)
    const words = /^The limit of 20 seconds of audio per minute of this API key \(key:team\) is used up/
    expect(await third.client.next('error')).toMatchObject(refusal(words))
    await say(one, CREATED)
    await say(one, doneWith(10))
    expect(await leftOf(gateway, 'audioSecondsPerMinute')).toBe(10)
  })
})

describe('What an answer has reserved', () => {
  it('goes back when it has used less, and another session can have it', async () => {
    const { open, tokensLeft } = await start({ tokensPerMinute: COST + 60 })
    const [one, other] = [await open(), await open()]
    await judged(one, CREATE)
    await judged(other, CREATE)
    expect(createsOf([other])).toBe(0)
    await say(one, CREATED)
    await say(one, doneWith(25))
    expect(await tokensLeft()).toBe(COST + 35)
    await judged(other, CREATE)
    expect(createsOf([other])).toBe(1)
  })

  it.each<[string, number | undefined, string]>([
    ['is cancelled', 7, 'cancelled'],
    ['fails, of which nobody says what it cost', undefined, 'failed'],
  ])('goes back when it %s', async (_how, used, status) => {
    const { open, tokensLeft } = await start({ tokensPerMinute: 1000 })
    const session = await open()
    await judged(session, CREATE)
    await say(session, CREATED)
    await judged(session, { type: 'response.cancel' })
    expect(await tokensLeft()).toBe(1000 - COST)
    await say(session, doneWith(used, status))
    expect(await tokensLeft()).toBe(1000 - (used ?? 0))
  })

  it.each<[string, object]>([
    ['by the id of its event', { code: 'invalid_value', param: null, event_id: 'mine' }],
    ['as there is one already', { code: 'conversation_already_has_active_response', param: null, event_id: null }],
    ['for one of its fields', { code: 'invalid_value', param: 'response.output_modalities', event_id: null }],
  ])('goes back when the upstream refuses it %s', async (_how, error) => {
    const { open, tokensLeft } = await start({ tokensPerMinute: 1000 })
    const session = await open()
    await judged(session, CREATE)
    await say(session, { type: 'error', error: { type: 'invalid_request_error', message: 'No.', event_id: 'other' } })
    expect(await tokensLeft()).toBe(1000 - COST)
    await say(session, { type: 'error', error: { type: 'invalid_request_error', message: 'No.', ...error } })
    expect(await tokensLeft()).toBe(1000)
  })

  it.each(['client', 'upstream'] as const)(
    'goes back when its %s vanishes before anything of it has come',
    async (who) => {
      const { gateway, open, tokensLeft } = await start({ tokensPerMinute: 1000, realtimeSessions: 5 })
      const session = await open()
      await judged(session, CREATE)
      expect(await tokensLeft()).toBe(1000 - COST)
      if (who === 'client') session.client.socket.terminate()
      else session.upstream.terminate()
      await eventually(async () => (await limitsOf(gateway))['realtimeSessions']?.in_use === 0)
      expect(await tokensLeft()).toBe(1000)
    },
  )

  it('is the conversation as well, also after an answer out of band', async () => {
    const { open, tokensLeft } = await start({ tokensPerMinute: 20_000 })
    const session = await open()
    await judged(session, CREATE)
    await say(session, CREATED)
    await say(session, doneWith(5000, 'completed', { conversation_id: 'conv_1' }))
    expect(await tokensLeft()).toBe(15_000)
    await judged(session, CREATE)
    expect(await tokensLeft()).toBe(15_000 - 5000 - COST)
    await say(session, CREATED)
    await say(session, doneWith(10, 'completed', { conversation_id: null }))
    expect(await tokensLeft()).toBe(14_990)
    await judged(session, CREATE)
    expect(await tokensLeft()).toBe(14_990 - 5000 - COST)
  })

  it('goes back but for what had passed of it when the session ends', async () => {
    const { gateway, open, tokensLeft } = await start({ tokensPerMinute: 1000, realtimeSessions: 5 })
    const session = await open()
    await judged(session, CREATE, CREATE)
    await say(session, CREATED)
    const delta = Buffer.alloc(2 * 48_000).toString('base64')
    session.upstream.send(JSON.stringify({ type: 'response.output_audio.delta', response_id: 'resp_1', delta }))
    await session.client.next('response.audio.delta')
    session.client.socket.terminate()
    await eventually(async () => (await limitsOf(gateway))['realtimeSessions']?.in_use === 0)
    expect(await tokensLeft()).toBe(1000 - 40)
  })

  it('is not taken for used up where the session itself goes on speaking into its answer', async () => {
    const { open } = await start({ tokensPerMinute: COST })
    const append = { type: 'input_audio_buffer.append', audio: 'AAAA' }
    const session = await open()
    await judged(session, CREATE, append)
    expect(session.heard).toContain('input_audio_buffer.append')
    await say(session, CREATED)
    await say(session, doneWith(COST))
    await judged(session, append)
    expect(session.heard.filter((type) => type === append.type)).toHaveLength(1)
    expect(await session.client.next('error')).toMatchObject({ error: { code: 'rate_limit_exceeded' } })
  })
})

describe('An answer that the upstream begins by itself', () => {
  it('holds what it may use from its beginning on, and others ask in vain meanwhile', async () => {
    const { open, tokensLeft } = await start({ tokensPerMinute: 1500 })
    const [one, other] = [await open(), await open()]
    await say(one, CREATED)
    expect(await tokensLeft()).toBe(500)
    await judged(other, createOf(600))
    expect(other.heard).not.toContain('response.create')
    await say(one, doneWith(300))
    expect(await tokensLeft()).toBe(1200)
    await judged(other, createOf(600))
    expect(other.heard).toContain('response.create')
  })

  it('is heard though there is no room for it, and paid; the next one that is asked for is refused', async () => {
    const { open, tokensLeft } = await start({ tokensPerMinute: COST + 500 })
    const [one, other] = [await open(), await open()]
    await judged(one, CREATE)
    await say(other, CREATED)
    expect(await tokensLeft()).toBe(500)
    await say(other, doneWith(550))
    expect(await tokensLeft()).toBe(0)
    await judged(one, createOf(1))
    expect(createsOf([one, other])).toBe(1)
  })
})

describe('A session of a key without limits by the minute', () => {
  it('asks for as many answers as it likes', async () => {
    const { open } = await start({})
    const session = await open()
    await judged(session, createOf(1_000_000), createOf(1_000_000))
    expect(createsOf([session])).toBe(2)
  })
})
