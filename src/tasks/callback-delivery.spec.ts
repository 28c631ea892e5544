import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { Webhook } from 'standardwebhooks'
import { CALLBACK_SECRET, CallbackLab } from '../../test/support/callback-lab.js'
import { eventually } from '../../test/support/eventually.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

let lab: CallbackLab

beforeEach(async () => {
  lab = await CallbackLab.start()
})
afterEach(async () => {
  await lab.close()
})

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

  it('that is due in a moment is sent then, although nobody wakes the sender', async () => {
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

  it('is given up at once when the receiver says that nobody is there any more', async () => {
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
  it('is sent then, although nobody wakes the sender', async () => {
    lab.callbacks = { scheduleMs: [0, 50, 50] }
    await lab.reload()
    lab.receiver.answer = answerWith(500)
    lab.outbox.add({ webhookId: 'msg_1', url: lab.receiver.url() })
    const startedAtMs = performance.now()
    await lab.startSender()
    await lab.receiver.has(3)
    expect(performance.now() - startedAtMs).toBeLessThan(2000)
  })
})

describe('The log', () => {
  it('has one line for each failed attempt, without address, path or body', async () => {
    lab.callbacks = { scheduleMs: [0, 1000] }
    await lab.reload()
    lab.receiver.answer = answerWith(500)
    lab.outbox.add({ webhookId: 'msg_1', taskId: 'task_1', url: lab.receiver.url('/canary?canary'), body: '"canary"' })
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
