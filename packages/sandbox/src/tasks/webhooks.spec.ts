import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { Webhook } from 'standardwebhooks'
import { type Simulator, startSimulator } from '../server/simulator-server.js'
import { realClock, TaskTimers, VirtualClock } from './task-clock.js'
import {
  type CallbackReceiver,
  type HookOptions,
  HookSender,
  isSignedWith,
  startCallbackReceiver,
  webhookHeaders,
} from './webhooks.js'

const SECRET = 'whsec_dGVzdHNlY3JldHRlc3RzZWNyZXR0ZXN0c2VjcmV0MTI='

describe('a signature of Standard Webhooks', () => {
  it('is the one of the published example', () => {
    const body =
      '{"id":"1234567890","status":"succeeded","message":"","create_time":1781080778802,"update_time":1781080794151}'
    expect(webhookHeaders(SECRET, '9876543210', 1_781_080_794, body)).toEqual({
      'webhook-id': '9876543210',
      'webhook-timestamp': '1781080794',
      'webhook-signature': 'v1,UsKlJP00XoQyOn410NM9xv34sP+Gl0jnOO9Lcpr7NJ4=',
    })
  })

  it('is accepted by the reference implementation, and the other way round', () => {
    const seconds = Math.floor(Date.now() / 1000)
    const headers = webhookHeaders(SECRET, 'msg_1', seconds, '{"a":1}')
    expect(new Webhook(SECRET).verify('{"a":1}', { ...headers })).toEqual({ a: 1 })
    const theirs = new Webhook(SECRET).sign('msg_1', new Date(seconds * 1000), '{"a":1}')
    expect(theirs).toBe(headers['webhook-signature'])
  })

  it('is right for one body, id, time and secret only, and may stand among others', () => {
    const nowMs = 1_781_080_794_000
    const headers = { ...webhookHeaders(SECRET, 'msg_1', nowMs / 1000, 'body') }
    expect(isSignedWith(SECRET, headers, 'body', nowMs)).toBe(true)
    const among = { ...headers, 'webhook-signature': `v1,AAAA ${headers['webhook-signature']}` }
    expect(isSignedWith(SECRET, among, 'body', nowMs)).toBe(true)
    expect(isSignedWith(SECRET, headers, 'other', nowMs)).toBe(false)
    expect(isSignedWith(SECRET, { ...headers, 'webhook-id': 'msg_2' }, 'body', nowMs)).toBe(false)
    expect(isSignedWith(`whsec_${Buffer.alloc(32).toString('base64')}`, headers, 'body', nowMs)).toBe(false)
    expect(isSignedWith(SECRET, headers, 'body', nowMs + 300_000)).toBe(true)
    expect(isSignedWith(SECRET, headers, 'body', nowMs + 301_000)).toBe(false)
    expect(isSignedWith(SECRET, { ...headers, 'webhook-timestamp': 'soon' }, 'body', nowMs)).toBe(false)
    expect(isSignedWith(SECRET, {}, 'body', nowMs)).toBe(false)
  })
})

describe('webhooks', () => {
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

    it('are sent once for any response of the receiver, and the next one as well', async () => {
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
})

describe('a virtual clock', () => {
  it('runs what falls due in the order of time, each at its own time, and what that sets up as well', () => {
    const clock = new VirtualClock(1000)
    const seen: [string, number][] = []
    clock.after(30, () => seen.push(['late', clock.nowMs()]))
    clock.after(10, () => {
      seen.push(['early', clock.nowMs()])
      clock.after(5, () => seen.push(['set up on the way', clock.nowMs()]))
    })
    clock.after(31, () => seen.push(['too late', clock.nowMs()]))
    clock.advance(30)
    expect(seen).toEqual([
      ['early', 1010],
      ['set up on the way', 1015],
      ['late', 1030],
    ])
    expect(clock.nowMs()).toBe(1030)
  })

  it('does not run what was cancelled', () => {
    const clock = new VirtualClock()
    let runs = 0
    const cancel = clock.after(10, () => (runs += 1))
    cancel()
    clock.advance(100)
    expect(runs).toBe(0)
  })
})

describe('the real clock', () => {
  it('runs after the delay unless cancelled', async () => {
    const cancelled = realClock.after(1, () => {
      throw new Error('was cancelled')
    })
    cancelled()
    // The clock alone does not keep the process alive; this does.
    const keptAlive = setInterval(() => undefined, 1000)
    await new Promise<void>((resolve) => realClock.after(5, resolve))
    clearInterval(keptAlive)
    expect(Math.abs(realClock.nowMs() - Date.now())).toBeLessThan(1000)
  })
})

describe('the timers of tasks', () => {
  it('are one for each task, the newest', () => {
    const clock = new VirtualClock()
    const timers = new TaskTimers<string>(clock)
    const seen: string[] = []
    timers.set('a', 10, () => seen.push('first of a'))
    timers.set('a', 20, () => seen.push('second of a'))
    timers.set('b', 10, () => seen.push('b'))
    clock.advance(20)
    expect(seen).toEqual(['b', 'second of a'])
    timers.set('a', 10, () => seen.push('cleared'))
    timers.clearAll()
    clock.advance(20)
    expect(seen).toHaveLength(2)
  })
})

describe('the callback receiver', () => {
  const SECRET = `whsec_${Buffer.from('a secret of this very test').toString('base64')}`
  let receiver: CallbackReceiver

  afterEach(() => receiver.close())

  function notify(body: string, headers: Record<string, string> = {}): Promise<Response> {
    const type = { 'content-type': 'application/json' }
    return fetch(`${receiver.url}/hook`, { method: 'POST', headers: { ...type, ...headers }, body })
  }

  function signed(body: string): Record<string, string> {
    const now = new Date()
    return {
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
      'webhook-signature': new Webhook(SECRET).sign('msg_1', now, body),
    }
  }

  const shown = async (): Promise<string> => (await fetch(`${receiver.url}/received`)).text()

  it('shows what came, with the headers that matter and whether the signature is right', async () => {
    receiver = await startCallbackReceiver({ secret: SECRET })
    expect(await shown()).toBe('[]\n')
    const body = '{"task_id":"1","trace":9223372036854775807}'
    const signature = signed(body)
    expect((await notify(body, { ...signature, 'x-other': 'y' })).status).toBe(200)
    await notify('{"other":1}', signed(body))
    const text = await shown()
    expect(text).toContain(`"body":${body}`)
    const headers = { 'content-type': 'application/json', ...signature }
    expect(JSON.parse(text)).toMatchObject([{ headers, verified: true }, { verified: false }])
    expect(text).not.toContain('x-other')
  })

  it('shows what is no JSON as text', async () => {
    receiver = await startCallbackReceiver()
    await notify('"not\nJSON')
    expect(JSON.parse(await shown())).toEqual([{ headers: { 'content-type': 'application/json' }, body: '"not\nJSON' }])
  })

  it('remembers the last hundred', async () => {
    receiver = await startCallbackReceiver()
    for (let number = 1; number <= 101; number += 1) await notify(String(number))
    expect(receiver.received).toHaveLength(100)
    expect([receiver.received[0]?.body, receiver.received.at(-1)?.body]).toEqual(['2', '101'])
  })

  it('fails when a test says so, and then remembers nothing', async () => {
    receiver = await startCallbackReceiver()
    receiver.queueFault('500')
    receiver.queueFault('reset')
    expect((await notify('{}')).status).toBe(500)
    await expect(notify('{}')).rejects.toThrow('fetch failed')
    expect(receiver.received).toHaveLength(0)
  })

  it('knows two routes and refuses what is too large', async () => {
    receiver = await startCallbackReceiver()
    expect((await fetch(`${receiver.url}/hook`)).status).toBe(404)
    expect((await fetch(`${receiver.url}/received`, { method: 'POST' })).status).toBe(404)
    expect((await notify('x'.repeat(1024 * 1024 + 1))).status).toBe(413)
  })
})
