import { once } from 'node:events'
import { createServer } from 'node:https'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { CallbackLab } from '../../test/support/callback-lab.js'
import { eventually } from '../../test/support/eventually.js'
import { unusedPort } from '../../test/support/raw-upstream.js'
import { selfSigned } from '../../test/support/self-signed.js'
import { GatewayError } from '../common/errors/gateway-error.js'

/** As the configuration has it by default, and what a lease outlasts it by. */
const TIMEOUT_MS = 15_000
const LEASE_MS = 45_000
/** Less than the pauses of a sender that waits for its clock instead of for room would add up to. */
const SOON_MS = 15_000
const STORE_GONE = new GatewayError('overloaded', 'The store cannot be reached.')

let lab: CallbackLab
/** Answers the receiver has not given yet. */
let held: ServerResponse[]

beforeEach(async () => {
  lab = await CallbackLab.start()
  held = []
})
afterEach(async () => {
  await lab.close()
})

const hold = (response: ServerResponse): void => {
  held.push(response)
}
const releaseAll = (): void => {
  for (const response of held.splice(0)) response.writeHead(204).end()
}
const take = (response: ServerResponse): unknown => response.writeHead(204).end()

const addMany = (count: number, url: string): string[] => {
  const ids = Array.from({ length: count }, (_, index) => `msg_${index}`)
  for (const webhookId of ids) lab.outbox.add({ webhookId, url })
  return ids
}
const isDelivered = (webhookId: string): boolean => lab.outbox.row(webhookId).deliveredAtMs !== undefined
const failedWith = async (webhookId: string, lastError: string): Promise<void> => {
  await lab.outbox.until(() => lab.outbox.row(webhookId).attempts === 1)
  expect(lab.outbox.row(webhookId)).toMatchObject({ attempts: 1, lastError, nextAttemptAtMs: expect.any(Number) })
}

describe('A receiver that fails', () => {
  it('by being slow is left after the time allowed', async () => {
    lab.callbacks = { timeoutMs: 150 }
    await lab.reload()
    lab.receiver.answer = hold
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
    await lab.outbox.until(() => isDelivered('msg_1'))
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

  it('by a certificate that nobody vouches for gets nothing', async () => {
    let requests = 0
    const server = createServer(selfSigned('localhost'), (_request, response) => {
      requests++
      response.end()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
    try {
      lab.exempt(host)
      await lab.reload()
      lab.outbox.add({ webhookId: 'msg_1', url: `https://${host}/` })
      await lab.startSender()
      await failedWith('msg_1', 'The certificate of the receiver was not accepted.')
      expect(requests).toBe(0)
    } finally {
      server.close()
    }
  })

  it('holds up nobody else, and gets no more at once than it may', async () => {
    lab.receiver.answer = hold
    const ids = addMany(50, lab.receiver.url())
    lab.outbox.add({ webhookId: 'other', url: lab.other.url() })
    const { sender } = await lab.startSender()
    await lab.outbox.until(() => isDelivered('other'))
    await lab.receiver.has(2)
    lab.outbox.add({ webhookId: 'third', url: lab.other.url() })
    sender.wake()
    await lab.outbox.until(() => isDelivered('third'))
    expect(lab.receiver.received).toHaveLength(2)

    lab.receiver.answer = take
    releaseAll()
    await lab.outbox.until(() => ids.every(isDelivered))
    expect(lab.receiver.mostUnderWay).toBe(2)
    expect(new Set(lab.receiver.webhookIds).size).toBe(50)
    expect(lab.receiver.received).toHaveLength(50)
  })
})

describe('A receiver that takes everything', () => {
  it(
    'gets all that is due without a pause, however much that is',
    async () => {
      const ids = addMany(400, lab.receiver.url())
      await lab.startSender()
      await lab.outbox.until(() => ids.every(isDelivered))
      expect(new Set(lab.receiver.webhookIds)).toEqual(new Set(ids))
      expect(lab.receiver.mostUnderWay).toBeLessThanOrEqual(2)
    },
    SOON_MS,
  )
})

describe('A row that cannot be delivered', () => {
  it('does not keep the others from it, nor is its address shown', async () => {
    const bad = ['not a url', '', 'ftp://8.8.8.8/', 'http://10.0.0.1/', 'http://u:p@8.8.8.8/', 'http://8.8.8.8:25/']
    for (const [index, url] of bad.entries()) lab.outbox.add({ webhookId: `bad_${index}`, url })
    const ids = addMany(3, lab.receiver.url())
    await lab.startSender()
    await lab.outbox.until(() => ids.every(isDelivered))
    for (const index of bad.keys()) await failedWith(`bad_${index}`, 'The URL does not lead to a public address.')
  })

  it('does not keep the others from it when it cannot be recorded either', async () => {
    const ids = addMany(5, lab.receiver.url())
    lab.outbox.settleFailures.push(new Error('out of range'))
    await lab.startSender()
    await lab.outbox.until(() => ids.filter(isDelivered).length === 4)
    expect(lab.logText.match(/callback not recorded/g)).toHaveLength(1)
  })
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
    await lab.outbox.until(() => isDelivered('msg_1'))
    expect(lab.receiver.webhookIds).toEqual(['msg_1', 'msg_1'])
    expect(lab.receiver.received[0]?.body).toBe(lab.receiver.received[1]?.body)
  })
})

describe('Several processes', () => {
  it('share the work: nothing is sent twice, nothing is forgotten', async () => {
    lab.callbacks = { perHost: 5 }
    await lab.reload()
    const ids = addMany(200, lab.receiver.url())
    await Promise.all([lab.startSender(), lab.startSender(), lab.startSender()])
    await lab.outbox.until(() => ids.every(isDelivered))
    expect(lab.receiver.received).toHaveLength(200)
    expect(new Set(lab.receiver.webhookIds)).toEqual(new Set(ids))
  })
})

describe('An event that has waited for its turn too long', () => {
  it('is left to whoever holds the next lease', async () => {
    lab.callbacks = { perHost: 1 }
    await lab.reload()
    lab.receiver.answer = hold
    lab.outbox.add({ webhookId: 'first', url: lab.receiver.url() })
    lab.outbox.add({ webhookId: 'second', url: lab.receiver.url() })
    const { stop } = await lab.startSender()
    await lab.receiver.has(1)
    // The attempt itself is bounded by real time; the lease is not.
    lab.advance(LEASE_MS - TIMEOUT_MS)
    lab.receiver.answer = take
    releaseAll()
    await lab.outbox.until(() => isDelivered('first'))
    // Whatever had begun ends before.
    await stop()
    expect(lab.receiver.webhookIds).toEqual(['first'])
    await lab.startSender()
    lab.advance(TIMEOUT_MS)
    await lab.outbox.until(() => isDelivered('second'))
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
    await lab.outbox.until(() => isDelivered('msg_1'))
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

describe('At shutdown', () => {
  it('an attempt that ends in time is recorded as it ends', async () => {
    lab.receiver.answer = hold
    lab.outbox.add({ webhookId: 'msg_1', url: lab.receiver.url() })
    const { stop } = await lab.startSender()
    await lab.receiver.has(1)
    const stopped = stop()
    releaseAll()
    await stopped
    expect(isDelivered('msg_1')).toBe(true)
  })

  it('an attempt that does not is cut and due at once; what was not begun is untouched', async () => {
    lab.callbacks = { perHost: 1, scheduleMs: [0] }
    await lab.reload()
    lab.receiver.answer = hold
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
    await lab.outbox.until(() => isDelivered('first'))
    lab.advance(LEASE_MS)
    await lab.outbox.until(() => isDelivered('second'))
    expect(lab.receiver.webhookIds).toEqual(['first', 'first', 'second'])
  })
})
