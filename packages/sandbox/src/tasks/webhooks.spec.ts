import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { Webhook } from 'standardwebhooks'
import { startSimulator } from '../server/simulator-server.js'
import type { Simulator } from '../server/simulator.js'
import { type HookOptions, HookSender } from './webhooks.js'

const SECRET = 'whsec_dGVzdHNlY3JldHRlc3RzZWNyZXR0ZXN0c2VjcmV0MTI='
let receiver: Simulator
let sender: HookSender

beforeEach(async () => {
  receiver = await startSimulator(async (exchange) => {
    await exchange.drain()
    if (await exchange.answeredByFault({ statusAnswer: () => refused, errorFrames: () => [] }, undefined)) return
    await exchange.send(200, {}, 'ok')
  })
})
afterEach(async () => {
  await sender.close()
  await receiver.close()
})

const refused = { status: 500, headers: {}, body: 'no' }
const bodies = (): string[] => receiver.requests.map((request) => request.body.toString())

async function sendThree(options: HookOptions): Promise<void> {
  sender = new HookSender(options)
  for (const word of ['one', 'two', 'three']) sender.send('task', `${receiver.url}/hook`, word, word === 'three')
  await sender.idle()
}

describe('notifications of one task', () => {
  it('are posted as JSON in the order they happened, unsigned unless there is a secret', async () => {
    await sendThree({})
    expect(bodies()).toEqual(['one', 'two', 'three'])
    expect(receiver.lastRequest).toMatchObject({ method: 'POST', path: '/hook' })
    expect(receiver.lastRequest?.headers['content-type']).toBe('application/json')
    expect(receiver.lastRequest?.headers).not.toHaveProperty('webhook-signature')
    expect(sender.sent.map(({ status }) => status)).toEqual([200, 200, 200])
  })

  it('are signed by Standard Webhooks, each under its own id', async () => {
    await sendThree({ secret: SECRET })
    for (const request of receiver.requests) {
      const verify = (): unknown => new Webhook(SECRET).verify(request.body.toString(), { ...request.headers })
      // The bodies of this test are no JSON, which the verifier tells only after it has found the signature right.
      expect(verify).toThrow(SyntaxError)
    }
    expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(3)
  })

  it('come twice under one id on wish', async () => {
    await sendThree({ secret: SECRET, duplicate: true })
    expect(bodies()).toEqual(['one', 'one', 'two', 'two', 'three', 'three'])
    expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(3)
  })

  it('come last one first on wish', async () => {
    await sendThree({ outOfOrder: true })
    expect(bodies()).toEqual(['three', 'two', 'one'])
  })

  it('are sent once whatever the receiver answers, and the next one all the same', async () => {
    receiver.queueFault('500')
    receiver.queueFault('reset')
    await sendThree({})
    expect(sender.sent.map(({ status, error }) => status ?? typeof error)).toEqual([500, 'string', 200])
    expect(receiver.requests).toHaveLength(3)
  })
})

describe('addresses off this machine', () => {
  it.each(['http://192.0.2.1/hook', 'https://example.com/hook', 'http://127.0.0.1.example.com/', 'no url'])(
    'are never called: %s',
    async (url) => {
      sender = new HookSender()
      sender.send('task', url, '{}', true)
      await sender.idle()
      expect(sender.sent).toMatchObject([{ url, error: 'nothing leaves this machine' }])
    },
  )
})

describe('closing', () => {
  it('breaks off what is under way', async () => {
    receiver.queueFault('hang')
    sender = new HookSender()
    const arrived = receiver.nextRequest()
    sender.send('task', receiver.url, '{}', true)
    await arrived
    const aborted = receiver.nextAbort()
    await sender.close()
    await aborted
    expect(sender.sent).toHaveLength(1)
  })
})
