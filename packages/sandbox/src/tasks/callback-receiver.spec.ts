import { afterEach, describe, expect, it } from '@jest/globals'
import { Webhook } from 'standardwebhooks'

import { startCallbackReceiver, type CallbackReceiver } from './callback-receiver.js'

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

describe('the callback receiver', () => {
  it('shows what came, with the headers that matter and whether the signature is right', async () => {
    receiver = await startCallbackReceiver({ secret: SECRET })
    expect(await shown()).toBe('[]\n')
    const body = '{"task_id":"1","trace":9223372036854775807}'
    expect((await notify(body, { ...signed(body), 'x-other': 'y' })).status).toBe(200)
    await notify('{"other":1}', signed(body))
    const text = await shown()
    expect(text).toContain(`"body":${body}`)
    const headers = { 'content-type': 'application/json', ...signed(body) }
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
    await expect(notify('{}')).rejects.toThrow()
    expect(receiver.received).toHaveLength(0)
  })

  it('knows two routes and refuses what is too large', async () => {
    receiver = await startCallbackReceiver()
    expect((await fetch(`${receiver.url}/hook`)).status).toBe(404)
    expect((await fetch(`${receiver.url}/received`, { method: 'POST' })).status).toBe(404)
    expect((await notify('x'.repeat(1024 * 1024 + 1))).status).toBe(413)
  })
})
