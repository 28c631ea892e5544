import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { CallbackLab } from '../../test/support/callback-lab.js'
import { HeldAnswers, take } from '../../test/support/held-answers.js'
import { GatewayError } from '../core/gateway-error.js'

let lab: CallbackLab
let held: HeldAnswers

beforeEach(async () => {
  lab = await CallbackLab.start()
  held = new HeldAnswers()
})
afterEach(async () => {
  await lab.close()
})

/** As the configuration has it by default, and what a lease outlasts it by. */
const TIMEOUT_MS = 15_000
const LEASE_MS = 45_000
/** Less than the pauses of a sender that waits for its clock instead of for room would add up to. */
const SOON_MS = 15_000
const STORE_GONE = new GatewayError('overloaded', 'The store cannot be reached.')

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
  it('is left to whoever holds the next lease', async () => {
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
