import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { CallbackLab } from '../../test/support/callback-lab.js'
import { eventually } from '../../test/support/eventually.js'
import { HeldAnswers, take } from '../../test/support/held-answers.js'
import { unusedPort } from '../../test/support/raw-upstream.js'
import { selfSigned } from '../../test/support/self-signed.js'
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

const STORE_GONE = new GatewayError('overloaded', 'The store cannot be reached.')

const failedWith = async (webhookId: string, lastError: string): Promise<void> => {
  await lab.outbox.until(() => lab.outbox.row(webhookId).attempts === 1)
  expect(lab.outbox.row(webhookId)).toMatchObject({ attempts: 1, lastError, nextAttemptAtMs: expect.any(Number) })
}

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
