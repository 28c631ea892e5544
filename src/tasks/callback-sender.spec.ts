import { createServer } from 'node:https'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'
import { listenOnLoopback } from '../../test/support/loopback-server.js'
import { CALLBACK_SECRET, CallbackLab } from '../../test/support/callback-lab.js'
import { parseConfig } from '../../test/support/config.js'
import { eventually, HeldAnswers, take, promised } from '../../test/support/eventually.js'
import { selfSigned } from '../../test/support/proxies.js'
import { unusedPort } from '../../test/support/raw-upstream.js'
import { ConfigStore } from '../config/config-store.js'
import { GatewayError } from '../core/errors.js'
import { SafeFetchClient } from '../upstream/safe-fetch.js'
import type { ResolveHost } from '../upstream/ssrf-guard.js'
import {
  CallbackAddress,
  nextAttemptAtMs,
  readRetryAfterMs,
  webhookHeaders,
  type WebhookMessage,
  LocalReceivers,
} from './callback-attempt.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

describe('The sender of callbacks', () => {
  let lab: CallbackLab
  let held: HeldAnswers

  beforeEach(async () => {
    lab = await CallbackLab.start()
    held = new HeldAnswers()
  })
  afterEach(async () => {
    await lab.close()
  })

  const STORE_GONE = new GatewayError('overloaded', 'The store cannot be reached.')

  const failedWith = async (webhookId: string, lastError: string): Promise<void> => {
    await lab.outbox.until(() => lab.outbox.row(webhookId).attempts === 1)
    expect(lab.outbox.row(webhookId)).toMatchObject({ attempts: 1, lastError, nextAttemptAtMs: expect.any(Number) })
  }

  /** The configuration's default, and the margin of a lease. */
  const TIMEOUT_MS = 15_000
  const LEASE_MS = 45_000
  /** Shorter than the pauses of a sender that waits for its timer instead of for room. */
  const SOON_MS = 15_000
  const answerWith =
    (status: number, headers: Record<string, string> = {}): (typeof lab.receiver)['answer'] =>
    (response) =>
      response.writeHead(status, headers).end()

  /** Sends one event on its way and waits until its first attempt is recorded. */
  async function attempted(webhookId = 'msg_1'): Promise<void> {
    lab.outbox.add({ webhookId, url: lab.receiver.url() })
    const { sender } = await lab.startSender()
    sender.wake()
    await lab.outbox.until(() => lab.outbox.row(webhookId).attempts === 1)
  }

  /** Between now and the next attempt, in milliseconds; the clock runs on, so by a second it may be less. */
  const waitMs = (webhookId = 'msg_1'): number => (lab.outbox.row(webhookId).nextAttemptAtMs ?? NaN) - lab.clock.nowMs()

  describe('A receiver that fails', () => {
    it('by being slow is left after the time allowed', async () => {
      lab.callbacks = { timeoutMs: 150 }
      await lab.reload()
      lab.receiver.answer = held.hold
      lab.outbox.add({ webhookId: 'msg_1', url: lab.receiver.url() })
      await lab.startSender()
      await failedWith('msg_1', 'The receiver did not answer in time.')
      await eventually(() => lab.receiver.underWay === 0)
    })

    it('by resetting the connection is tried again', async () => {
      lab.receiver.answer = (response) => response.socket?.resetAndDestroy()
      lab.outbox.add({ webhookId: 'msg_1', url: lab.receiver.url() })
      await lab.startSender()
      await failedWith('msg_1', 'The connection to the receiver failed.')
      lab.receiver.answer = take
      lab.advance(6000)
      await lab.outbox.until(() => lab.isDelivered('msg_1'))
      expect(lab.receiver.webhookIds).toEqual(['msg_1', 'msg_1'])
    })

    it('by not being there is named without its address', async () => {
      lab.resolve = () => Promise.reject(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }))
      const port = await unusedPort()
      lab.outbox.add({ webhookId: 'unknown', url: 'https://unknown.test/' })
      lab.outbox.add({ webhookId: 'private', url: `http://127.0.0.1:${port}/` })
      await lab.startSender()
      await failedWith('unknown', 'The name of the receiver is not known.')
      await failedWith('private', 'The URL does not lead to a public address.')
    })

    it('by a certificate that no authority vouches for gets nothing', async () => {
      let requests = 0
      const server = createServer(selfSigned('localhost'), (_request, response) => {
        requests++
        response.end()
      })
      const { port, close } = await listenOnLoopback(server)
      const host = `127.0.0.1:${port}`
      try {
        lab.exempt(host)
        await lab.reload()
        lab.outbox.add({ webhookId: 'msg_1', url: `https://${host}/` })
        await lab.startSender()
        await failedWith('msg_1', 'The certificate of the receiver was not accepted.')
        expect(requests).toBe(0)
      } finally {
        await close()
      }
    })

    it('holds up no other receiver, and gets no more at once than it may', async () => {
      lab.receiver.answer = held.hold
      const ids = lab.addMany(50)
      lab.outbox.add({ webhookId: 'other', url: lab.other.url() })
      const { sender } = await lab.startSender()
      await lab.outbox.until(() => lab.isDelivered('other'))
      await lab.receiver.has(2)
      lab.outbox.add({ webhookId: 'third', url: lab.other.url() })
      sender.wake()
      await lab.outbox.until(() => lab.isDelivered('third'))
      expect(lab.receiver.received).toHaveLength(2)

      lab.receiver.answer = take
      held.releaseAll()
      await lab.outbox.until(() => ids.every(lab.isDelivered))
      expect(lab.receiver.mostUnderWay).toBe(2)
      expect(new Set(lab.receiver.webhookIds).size).toBe(50)
      expect(lab.receiver.received).toHaveLength(50)
    })
  })

  describe('Receivers of one owner that do not answer, on many hosts', () => {
    it.each(['greedy', 'bearer:1', 'bearer:%'])('hold up no callback of another owner: %s', async (owner) => {
      const port = new URL(lab.receiver.url()).port
      lab.receiver.answer = held.hold
      for (let index = 0; index < 200; index++) {
        const host = `h${index}.callers.example:${port}`
        lab.exempt(host)
        const ownerId = owner.replace('%', String(index))
        lab.outbox.add({ webhookId: `msg_${index}`, url: `http://${host}/`, ownerId })
      }
      await lab.reload()
      const { sender } = await lab.startSender()
      // Half of 128, and what one claim takes at most.
      await lab.receiver.has(64)
      lab.outbox.add({ webhookId: 'other', url: lab.other.url(), ownerId: 'modest' })
      sender.wake()
      await lab.outbox.until(() => lab.isDelivered('other'))
      expect(lab.receiver.received.length).toBeLessThan(owner === 'bearer:%' ? 128 : 64 + 16)

      lab.receiver.answer = take
      held.releaseAll()
      await lab.outbox.until(() => lab.isDelivered('msg_199') && lab.isDelivered('msg_0'))
    })
  })

  describe('A clock that is set back by hours', () => {
    it('delays neither a first attempt nor a further one, leased or not', async () => {
      lab.receiver.answer = answerWith(500)
      await attempted('again')
      const nowMs = lab.clock.nowMs()
      lab.outbox.add({ webhookId: 'first', url: lab.receiver.url(), nextAttemptAtMs: nowMs + 5000 })
      lab.receiver.answer = take
      lab.advance(-5 * HOUR_MS)
      await eventually(() => waitMs('first') < HOUR_MS && waitMs('again') < HOUR_MS)
      lab.advance(120_000)
      await lab.outbox.until(() => lab.isDelivered('first') && lab.isDelivered('again'))
    })
  })

  describe('A row that cannot be delivered', () => {
    it('does not keep the others from it, nor is its address shown', async () => {
      const bad = ['not a url', '', 'ftp://8.8.8.8/', 'http://10.0.0.1/', 'http://u:p@8.8.8.8/', 'http://8.8.8.8:25/']
      for (const [index, url] of bad.entries()) lab.outbox.add({ webhookId: `bad_${index}`, url })
      const ids = lab.addMany(3)
      await lab.startSender()
      await lab.outbox.until(() => ids.every(lab.isDelivered))
      for (const index of bad.keys()) await failedWith(`bad_${index}`, 'The URL does not lead to a public address.')
    })

    it('does not keep the others from it when it cannot be recorded either', async () => {
      const ids = lab.addMany(5)
      lab.outbox.settleFailures.push(new Error('out of range'))
      await lab.startSender()
      await lab.outbox.until(() => ids.filter(lab.isDelivered).length === 4)
      expect(lab.logText.match(/callback not recorded/g)).toHaveLength(1)
    })
  })

  describe('A store that is away', () => {
    it('is waited for, with one line in the log, and the work goes on when it is back', async () => {
      lab.outbox.claimFailures.push(STORE_GONE, STORE_GONE, STORE_GONE)
      lab.outbox.add({ webhookId: 'msg_1', url: lab.receiver.url() })
      const { sender } = await lab.startSender()
      for (let round = 1; round <= 3; round++) {
        await eventually(() => lab.outbox.claims >= round)
        sender.wake()
      }
      await lab.outbox.until(() => lab.isDelivered('msg_1'))
      expect(lab.logText.match(/callbacks wait for the store/g)).toHaveLength(1)
    })

    it('is asked nothing before it is open, and nothing after the end', async () => {
      const never = lab.newSender()
      never.sender.onModuleInit()
      never.sender.wake()
      await never.sender.beforeApplicationShutdown()
      expect(lab.outbox.claims).toBe(0)

      const { sender, stop } = await lab.startSender()
      await lab.outbox.claimed()
      await stop()
      const { claims } = lab.outbox
      lab.outbox.add({ webhookId: 'msg_1', url: lab.receiver.url() })
      sender.wake()
      await new Promise(setImmediate)
      expect(lab.outbox.claims).toBe(claims)
    })
  })

  describe('A receiver that takes everything', () => {
    it(
      'gets all that is due without a pause, however much that is',
      async () => {
        const ids = lab.addMany(400)
        await lab.startSender()
        await lab.outbox.until(() => ids.every(lab.isDelivered))
        expect(new Set(lab.receiver.webhookIds)).toEqual(new Set(ids))
        expect(lab.receiver.mostUnderWay).toBeLessThanOrEqual(2)
      },
      SOON_MS,
    )
  })

  describe('A process that dies between sending and recording', () => {
    it('leaves the event to another one, which sends it under the same id once the lease has run out', async () => {
      lab.outbox.settleFailures.push(STORE_GONE)
      lab.outbox.add({ webhookId: 'msg_1', url: lab.receiver.url() })
      const first = await lab.startSender()
      await lab.receiver.has(1)
      await first.stop()
      expect(lab.outbox.row('msg_1').attempts).toBe(0)

      await lab.startSender()
      await lab.outbox.claimed()
      expect(lab.receiver.received).toHaveLength(1)
      lab.advance(LEASE_MS)
      await lab.outbox.until(() => lab.isDelivered('msg_1'))
      expect(lab.receiver.webhookIds).toEqual(['msg_1', 'msg_1'])
      expect(lab.receiver.received[0]?.body).toBe(lab.receiver.received[1]?.body)
    })
  })

  describe('Several processes', () => {
    it('share the work: nothing is sent twice, nothing is forgotten', async () => {
      lab.callbacks = { perHost: 5 }
      await lab.reload()
      const ids = lab.addMany(200)
      await Promise.all([lab.startSender(), lab.startSender(), lab.startSender()])
      await lab.outbox.until(() => ids.every(lab.isDelivered))
      expect(lab.receiver.received).toHaveLength(200)
      expect(new Set(lab.receiver.webhookIds)).toEqual(new Set(ids))
    })
  })

  describe('An event that has waited for its turn too long', () => {
    it('is left to the process that holds the next lease', async () => {
      lab.callbacks = { perHost: 1 }
      await lab.reload()
      lab.receiver.answer = held.hold
      lab.outbox.add({ webhookId: 'first', url: lab.receiver.url() })
      lab.outbox.add({ webhookId: 'second', url: lab.receiver.url() })
      const { stop } = await lab.startSender()
      await lab.receiver.has(1)
      // The attempt itself is bounded by real time; the lease is not.
      lab.advance(LEASE_MS - TIMEOUT_MS)
      lab.receiver.answer = take
      held.releaseAll()
      await lab.outbox.until(() => lab.isDelivered('first'))
      // Whatever had begun ends before.
      await stop()
      expect(lab.receiver.webhookIds).toEqual(['first'])
      await lab.startSender()
      lab.advance(TIMEOUT_MS)
      await lab.outbox.until(() => lab.isDelivered('second'))
    })
  })

  describe('At shutdown', () => {
    it('an attempt that ends in time is recorded as it ends', async () => {
      lab.receiver.answer = held.hold
      lab.outbox.add({ webhookId: 'msg_1', url: lab.receiver.url() })
      const { stop } = await lab.startSender()
      await lab.receiver.has(1)
      const stopped = stop()
      held.releaseAll()
      await stopped
      expect(lab.isDelivered('msg_1')).toBe(true)
    })

    it('an attempt that does not is cut and due at once; what was not begun is untouched', async () => {
      lab.callbacks = { perHost: 1, scheduleMs: [0] }
      await lab.reload()
      lab.receiver.answer = held.hold
      lab.outbox.add({ webhookId: 'first', url: lab.receiver.url() })
      lab.outbox.add({ webhookId: 'second', url: lab.receiver.url() })
      const { stop } = await lab.startSender()
      await lab.receiver.has(1)
      await stop()
      expect(lab.outbox.row('first')).toMatchObject({
        attempts: 1,
        lastError: 'The gateway shut down during the attempt.',
      })
      expect(lab.outbox.row('first').nextAttemptAtMs).toBeLessThanOrEqual(lab.clock.nowMs())
      expect(lab.outbox.row('second').attempts).toBe(0)
      expect(lab.receiver.webhookIds).toEqual(['first'])

      lab.receiver.answer = take
      await lab.startSender()
      await lab.outbox.until(() => lab.isDelivered('first'))
      lab.advance(LEASE_MS)
      await lab.outbox.until(() => lab.isDelivered('second'))
      expect(lab.receiver.webhookIds).toEqual(['first', 'first', 'second'])
    })
  })

  describe('An event', () => {
    it('arrives as the very bytes that were stored, signed, under the name of the gateway', async () => {
      const body = '{"task_id":"1","big":123456789012345678901,"n":1.0,"text":"é😀"}'
      lab.outbox.add({ webhookId: 'msg_1', url: lab.receiver.url('/hook?key=1'), body })
      await lab.startSender()
      await lab.receiver.has(1)
      const [received] = lab.receiver.received
      expect(received).toMatchObject({
        path: '/hook?key=1',
        body,
        headers: {
          'content-type': 'application/json',
          'user-agent': 'Multi-Model-Gateway',
          'webhook-id': 'msg_1',
          'content-length': String(Buffer.byteLength(body)),
        },
      })
      const headers = received?.headers as Record<string, string>
      expect(new Webhook(CALLBACK_SECRET).verify(body, headers)).toEqual(JSON.parse(body))
      await lab.outbox.until(() => lab.outbox.row('msg_1').deliveredAtMs !== undefined)
      expect(lab.outbox.row('msg_1')).toMatchObject({ attempts: 1 })
      expect(lab.outbox.row('msg_1').nextAttemptAtMs).toBeUndefined()
      expect(lab.logText).toBe('')
    })

    it('is signed with the secret in force, and unsigned without one', async () => {
      const { sender } = await lab.startSender()
      const secret = `whsec_${Buffer.alloc(24, 1).toString('base64')}`
      lab.callbacks = { secret }
      await lab.reload()
      lab.outbox.add({ webhookId: 'msg_1', url: lab.receiver.url() })
      sender.wake()
      await lab.receiver.has(1)
      const [received] = lab.receiver.received
      new Webhook(secret).verify(received?.body ?? '', received?.headers as Record<string, string>)

      lab.callbacks = { secret: undefined }
      await lab.reload()
      lab.outbox.add({ webhookId: 'msg_2', url: lab.receiver.url() })
      sender.wake()
      await lab.receiver.has(2)
      expect(lab.receiver.received[1]?.headers).not.toHaveProperty('webhook-signature')
      expect(lab.receiver.webhookIds).toEqual(['msg_1', 'msg_2'])
    })

    it('is not sent before it is due', async () => {
      lab.outbox.add({ webhookId: 'later', url: lab.receiver.url(), nextAttemptAtMs: lab.clock.nowMs() + HOUR_MS })
      lab.outbox.add({ webhookId: 'now', url: lab.receiver.url() })
      await lab.startSender()
      await lab.outbox.until(() => lab.outbox.row('now').deliveredAtMs !== undefined)
      expect(lab.receiver.webhookIds).toEqual(['now'])
      lab.advance(HOUR_MS)
      await lab.receiver.has(2)
    })

    it('that is due in a moment is sent then, although no event wakes the sender', async () => {
      lab.outbox.add({ webhookId: 'soon', url: lab.receiver.url(), nextAttemptAtMs: lab.clock.nowMs() + 150 })
      await lab.startSender()
      await lab.receiver.has(1)
    })

    it.each([200, 201, 204, 299])('is delivered by an answer of status %i', async (status) => {
      lab.receiver.answer = answerWith(status)
      await attempted()
      expect(lab.outbox.row('msg_1').deliveredAtMs).toBeGreaterThan(0)
    })

    it.each([300, 304, 400, 401, 404, 429, 500, 503])('is not delivered by an answer of status %i', async (status) => {
      lab.receiver.answer = answerWith(status)
      await attempted()
      expect(lab.outbox.row('msg_1')).toMatchObject({ lastError: expect.stringContaining(`status ${status}`) })
      expect(waitMs()).toBeGreaterThan(2500)
    })
  })

  describe('An event that is not taken', () => {
    it('is sent again by the schedule, the same but for its time and signature, until it is given up', async () => {
      lab.receiver.answer = answerWith(500)
      await attempted()
      const delays = [5000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 36_000_000]
      for (const [index, delayMs] of delays.entries()) {
        expect(waitMs()).toBeLessThanOrEqual(delayMs * 1.2)
        expect(waitMs()).toBeGreaterThan(delayMs * 0.8 - 1000)
        lab.advance(delayMs * 1.2)
        await lab.outbox.until(() => lab.outbox.row('msg_1').attempts === index + 2)
      }
      expect(lab.outbox.row('msg_1')).toMatchObject({
        attempts: 8,
        exhaustedAtMs: expect.any(Number),
        lastError: 'The receiver answered with status 500.',
      })
      expect(lab.outbox.row('msg_1').nextAttemptAtMs).toBeUndefined()
      const { received } = lab.receiver
      expect(received).toHaveLength(8)
      expect(new Set(lab.receiver.webhookIds).size).toBe(1)
      expect(new Set(received.map(({ body }) => body)).size).toBe(1)
      expect(new Set(received.map(({ headers }) => headers['webhook-timestamp'])).size).toBe(8)
      expect(new Set(received.map(({ headers }) => headers['webhook-signature'])).size).toBe(8)

      const claims = lab.outbox.claims
      lab.advance(30 * DAY_MS)
      await eventually(() => lab.outbox.claims > claims)
      expect(received).toHaveLength(8)
    })

    it('is sent once more when that is asked for', async () => {
      lab.receiver.answer = answerWith(410)
      await attempted()
      expect(await lab.outbox.redeliver('owner', 'msg_1', lab.clock.nowMs())).toBe(true)
      lab.receiver.answer = answerWith(204)
      lab.advance(0)
      await lab.outbox.until(() => lab.outbox.row('msg_1').deliveredAtMs !== undefined)
      expect(lab.receiver.webhookIds).toEqual(['msg_1', 'msg_1'])
    })

    it('is given up at once when the receiver says that it is gone', async () => {
      lab.receiver.answer = answerWith(410, { 'retry-after': '1' })
      await attempted()
      expect(lab.outbox.row('msg_1')).toMatchObject({ attempts: 1, exhaustedAtMs: expect.any(Number) })
      expect(lab.outbox.row('msg_1').nextAttemptAtMs).toBeUndefined()
    })

    it('is not sent to where a redirect leads', async () => {
      lab.receiver.answer = answerWith(307, { location: lab.other.url() })
      await attempted()
      expect(lab.outbox.row('msg_1').lastError).toBe(
        'The receiver answered with a redirect (status 307); it is not followed.',
      )
      expect(waitMs()).toBeGreaterThan(2500)
      expect([lab.receiver.received.length, lab.other.received.length]).toEqual([1, 0])
    })

    it.each([429, 503, 302])('waits as long as the receiver asks with status %i', async (status) => {
      lab.receiver.answer = answerWith(status, { 'retry-after': '7200' })
      await attempted()
      expect(waitMs()).toBeGreaterThan(2 * HOUR_MS - 2500)
      expect(waitMs()).toBeLessThanOrEqual(2 * HOUR_MS)
    })

    it('waits until the time the receiver names, but not for more than a day', async () => {
      lab.receiver.answer = answerWith(503, { 'retry-after': new Date(Date.now() + 2 * DAY_MS).toUTCString() })
      await attempted()
      expect(waitMs()).toBeGreaterThan(DAY_MS - 2500)
      expect(waitMs()).toBeLessThanOrEqual(DAY_MS)
    })

    it('does not come earlier than scheduled because the receiver is impatient', async () => {
      lab.receiver.answer = answerWith(503, { 'retry-after': '0' })
      await attempted()
      expect(waitMs()).toBeGreaterThan(2500)
    })
  })

  describe('An event that is soon due again', () => {
    it('is sent then, although no event wakes the sender', async () => {
      lab.callbacks = { scheduleMs: [0, 50, 50] }
      await lab.reload()
      lab.receiver.answer = answerWith(500)
      lab.outbox.add({ webhookId: 'msg_1', url: lab.receiver.url() })
      const startedAtMs = performance.now()
      await lab.startSender()
      await lab.receiver.has(3)
      expect(performance.now() - startedAtMs).toBeLessThan(promised(2000))
    })
  })

  describe('The log', () => {
    it('has one line for each failed attempt, without address, path or body', async () => {
      lab.callbacks = { scheduleMs: [0, 1000] }
      await lab.reload()
      lab.receiver.answer = answerWith(500)
      lab.outbox.add({
        webhookId: 'msg_1',
        taskId: 'task_1',
        url: lab.receiver.url('/canary?canary'),
        body: '"canary"',
      })
      await lab.startSender()
      await lab.outbox.until(() => lab.outbox.row('msg_1').attempts === 1)
      lab.advance(1200)
      await lab.outbox.until(() => lab.outbox.row('msg_1').attempts === 2)
      const lines = lab.logText
        .trim()
        .split('\n')
        .map((line): unknown => JSON.parse(line))
      const line = { webhookId: 'msg_1', taskId: 'task_1', reason: 'The receiver answered with status 500.' }
      expect(lines).toEqual([
        expect.objectContaining({ ...line, attempt: 1, msg: 'callback failed' }),
        expect.objectContaining({ ...line, attempt: 2, msg: 'callback given up' }),
      ])
      expect(lab.logText).not.toMatch(/canary|127\.0\.0\.1/)
    })
  })
})

describe('A callback_url', () => {
  const REFUSED = { kind: 'invalid_request', details: { code: 'url_not_allowed', param: 'callback_url' } }

  let resolve: ResolveHost
  let guarded: SafeFetchClient
  let address: CallbackAddress

  beforeEach(() => {
    resolve = () => Promise.resolve([{ address: '8.8.8.8', family: 4 }])
    const config = parseConfig(JSON.stringify({ ssrf: { allow: ['127.0.0.1:9000', 'hooks.internal:9000'] } }), {})
    guarded = new SafeFetchClient(new ConfigStore(config), (host) => resolve(host))
    address = new CallbackAddress(guarded, { areAllowed: false })
  })

  describe('on this machine', () => {
    const HERE = [
      'http://127.0.0.1:18080/hook',
      'http://127.8.9.1:18080/',
      'http://[::1]:18080/',
      'http://localhost:18080/',
      'https://app.localhost/',
    ]
    const local = (inSandbox: boolean, host: string): CallbackAddress => {
      const config = new ConfigStore(parseConfig(JSON.stringify({ server: { host } }), {}))
      return new CallbackAddress(guarded, new LocalReceivers(config, { inSandbox }))
    }

    beforeEach(() => {
      resolve = () => Promise.resolve([{ address: '127.0.0.1', family: 4 }])
    })

    it.each(HERE)('may be %s in a sandbox that only this machine can call', async (url) => {
      for (const host of ['127.0.0.1', '::1', 'localhost']) {
        await expect(local(true, host).assertAllowed(url)).resolves.toBeUndefined()
      }
    })

    it.each(HERE)('is never %s elsewhere, and the refusal names the setting but no address', async (url) => {
      for (const [inSandbox, host] of [
        [false, '127.0.0.1'],
        [true, '0.0.0.0'],
        [true, '::'],
      ] as const) {
        const refused = local(inSandbox, host).assertAllowed(url)
        await expect(refused).rejects.toMatchObject({
          ...REFUSED,
          message:
            "Invalid 'callback_url': it must lead to a public address by http or https. " +
            'The operator exempts others by ssrf.allow (host:port).',
        })
      }
    })

    it.each([
      'http://10.0.0.1:18080/',
      'http://169.254.169.254/',
      'http://127.0.0.1:6379/',
      'http://[::ffff:127.0.0.1]:18080/',
      // A name server's word for it would be anyone's.
      'http://hooks.test:18080/',
    ])('is not %s in the sandbox either', async (url) => {
      await expect(local(true, '127.0.0.1').assertAllowed(url)).rejects.toMatchObject(REFUSED)
    })

    it('is not a name of it that leads elsewhere', async () => {
      resolve = () => Promise.resolve([{ address: '10.0.0.1', family: 4 }])
      await expect(local(true, '127.0.0.1').assertAllowed('http://localhost:18080/')).rejects.toMatchObject(REFUSED)
    })
  })

  /** A URL of a public host with so many characters. */
  const ofLength = (length: number): string => 'https://hooks.test/'.padEnd(length, 'a')

  it.each([
    'https://hooks.test/video?token=1',
    'http://hooks.test:8080/',
    'https://8.8.8.8/',
    'http://127.0.0.1:9000/hook',
    'http://hooks.internal:9000/',
    ofLength(2048),
  ])('may be %s', async (url) => {
    await expect(address.assertAllowed(url)).resolves.toBeUndefined()
  })

  it.each([
    ofLength(2049),
    '',
    'hooks.test',
    '/hook',
    'ftp://hooks.test/',
    'javascript:alert(1)',
    'https://user@hooks.test/',
    'https://:password@hooks.test/',
    'http://127.0.0.1/',
    'http://2130706433:9001/',
    'http://[::ffff:127.0.0.1]:9000/',
    'http://169.254.169.254/latest/meta-data/',
    'https://hooks.test:6379/',
    'https://hooks.test/\u0000',
    '\u0000https://hooks.test/',
    'https://hooks.test/\r\nhook',
  ])('may not be %s', async (url) => {
    await expect(address.assertAllowed(url)).rejects.toMatchObject(REFUSED)
  })

  it('may not name a host with a private address, even beside public ones', async () => {
    resolve = () =>
      Promise.resolve([
        { address: '8.8.8.8', family: 4 },
        { address: '10.0.0.1', family: 4 },
      ])
    await expect(address.assertAllowed('https://hooks.test/')).rejects.toMatchObject(REFUSED)
  })

  it('may name a host that does not resolve yet', async () => {
    resolve = () => Promise.reject(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }))
    await expect(address.assertAllowed('https://new.test/')).resolves.toBeUndefined()
  })

  it('is never repeated in the refusal', async () => {
    const url = 'http://canary.test:22/canary?canary'
    const refusal: unknown = await address.assertAllowed(url).catch((error: unknown) => error)
    expect((refusal as Error).message).not.toContain('canary')
    await expect(address.assertAllowed(`${ofLength(2049)}canary`)).rejects.not.toThrow('canary')
  })
})

const SCHEDULE_MS = [0, 5000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 36_000_000]
const NOW_MS = Date.parse('Wed, 01 Jul 2026 12:00:00 GMT')

const lowest = (): number => 0
const middle = (): number => 0.5

describe('The next attempt', () => {
  it('follows the schedule, one delay for each attempt, and ends with it', () => {
    const delays = SCHEDULE_MS.map((_, attempts) => {
      const atMs = nextAttemptAtMs(SCHEDULE_MS, { attempts: attempts + 1, nowMs: NOW_MS }, middle)
      return atMs === undefined ? undefined : atMs - NOW_MS
    })
    expect(delays).toEqual([...SCHEDULE_MS.slice(1), undefined])
    expect(nextAttemptAtMs([], { attempts: 1, nowMs: NOW_MS })).toBeUndefined()
  })

  it('is up to 20 % earlier or later than that, and uses the whole of this range', () => {
    expect(nextAttemptAtMs(SCHEDULE_MS, { attempts: 1, nowMs: NOW_MS }, lowest)).toBe(NOW_MS + 4000)
    expect(nextAttemptAtMs(SCHEDULE_MS, { attempts: 1, nowMs: NOW_MS }, () => 0.999_999)).toBe(NOW_MS + 6000)
    const drawn = Array.from({ length: 200 }, () => nextAttemptAtMs(SCHEDULE_MS, { attempts: 2, nowMs: 0 }) ?? 0)
    expect(Math.min(...drawn)).toBeGreaterThanOrEqual(240_000)
    expect(Math.max(...drawn)).toBeLessThanOrEqual(360_000)
    expect(new Set(drawn).size).toBeGreaterThan(100)
  })

  it('waits as long as the receiver asks, but never comes earlier than the schedule', () => {
    const failed = (retryAfterMs: number) => ({ attempts: 1, nowMs: NOW_MS, retryAfterMs })
    expect(nextAttemptAtMs(SCHEDULE_MS, failed(60_000), middle)).toBe(NOW_MS + 60_000)
    expect(nextAttemptAtMs(SCHEDULE_MS, failed(1000), middle)).toBe(NOW_MS + 5000)
  })

  it('is none after the last one, whatever the receiver asks', () => {
    const failed = { attempts: SCHEDULE_MS.length, nowMs: NOW_MS, retryAfterMs: 60_000 }
    expect(nextAttemptAtMs(SCHEDULE_MS, failed)).toBeUndefined()
  })
})

describe('Retry-After', () => {
  it.each([
    ['0', 0],
    ['120', 120_000],
    [' 120 ', 120_000],
    ['Wed, 01 Jul 2026 12:02:00 GMT', 120_000],
    ['Wednesday, 01-Jul-26 12:02:00 GMT', 120_000],
    ['Wed, 01 Jul 2026 11:00:00 GMT', 0],
    ['Thu, 02 Jul 2026 12:00:00 GMT', DAY_MS],
    ['Fri, 03 Jul 2026 12:00:00 GMT', DAY_MS],
    ['86401', DAY_MS],
    ['9'.repeat(400), DAY_MS],
  ])('is read as seconds or as a date, at most 24 hours: %s', (value, expected) => {
    expect(readRetryAfterMs(value, NOW_MS)).toBe(expected)
  })

  it.each([undefined, '', '-5', '1.5', '1e3', 'soon', '2027-07', 'Wed', '2026-07-01T12:02:00Z', '+5'])(
    'that says nothing readable counts for nothing: %s',
    (value) => {
      expect(readRetryAfterMs(value, NOW_MS)).toBe(0)
    },
  )

  it('twice counts for nothing', () => {
    expect(readRetryAfterMs(['5', '6'], NOW_MS)).toBe(0)
  })

  it('is always within 24 hours, whatever a receiver sends', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.date().map(String), fc.integer().map(String)), (value) => {
        const waitMs = readRetryAfterMs(value, NOW_MS)
        expect(waitMs).toBeGreaterThanOrEqual(0)
        expect(waitMs).toBeLessThanOrEqual(DAY_MS)
      }),
    )
  })
})

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

const signed = (message: WebhookMessage, secret: string | undefined): Record<string, string> => {
  const list = webhookHeaders(message, secret)
  return Object.fromEntries(list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1] ?? '']] : [])))
}

/** Verifies as a receiver's library does; throws on a mismatch. */
const received = (body: string, headers: Record<string, string>, secret = SECRET): unknown =>
  new Webhook(secret).verify(body, headers)

describe('A signed callback', () => {
  it('has the signature of the published example', () => {
    const body =
      '{"id":"1234567890","status":"succeeded","message":"","create_time":1781080778802,"update_time":1781080794151}'
    const message = { webhookId: '9876543210', atMs: 1_781_080_794_999, body }
    expect(webhookHeaders(message, 'whsec_dGVzdHNlY3JldHRlc3RzZWNyZXR0ZXN0c2VjcmV0MTI=')).toEqual([
      ...['webhook-id', '9876543210'],
      ...['webhook-timestamp', '1781080794'],
      ...['webhook-signature', 'v1,UsKlJP00XoQyOn410NM9xv34sP+Gl0jnOO9Lcpr7NJ4='],
    ])
  })

  it('verifies with the library of Standard Webhooks, whatever it says', () => {
    fc.assert(
      fc.property(fc.json({ stringUnit: 'grapheme' }), fc.uint8Array({ minLength: 24, maxLength: 64 }), (body, key) => {
        const secret = `whsec_${Buffer.from(key).toString('base64')}`
        const headers = signed({ webhookId: 'msg_1', atMs: Date.now(), body }, secret)
        expect(received(body, headers, secret)).toEqual(JSON.parse(body))
      }),
    )
  })

  it('does not verify when the id, the time, the body or the secret is another', () => {
    const body = '{"task_id":"1"}'
    const headers = signed({ webhookId: 'msg_1', atMs: Date.now(), body }, SECRET)
    const later = String(Number(headers['webhook-timestamp']) + 1)
    const other = `whsec_${Buffer.alloc(32, 8).toString('base64')}`
    for (const attempt of [
      () => received(body, { ...headers, 'webhook-id': 'msg_2' }),
      () => received(body, { ...headers, 'webhook-timestamp': later }),
      () => received(`${body} `, headers),
      () => received(body, headers, other),
    ]) {
      expect(attempt).toThrow(WebhookVerificationError)
    }
    expect(received(body, headers)).toEqual({ task_id: '1' })
  })

  it('has id and time without a secret, and no signature', () => {
    const message = { webhookId: 'msg_1', atMs: 1_750_000_000_000, body: '{}' }
    expect(webhookHeaders(message, undefined)).toEqual(['webhook-id', 'msg_1', 'webhook-timestamp', '1750000000'])
  })
})
