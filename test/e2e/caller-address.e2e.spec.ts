import { rm } from 'node:fs/promises'
import { describe, expect, it } from '@jest/globals'
import { adminCaller, ADMIN_KEY } from '../support/admin-caller.js'
import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { TEST_KEY } from '../support/gateway.js'
import { withP1Gateway } from '../support/p1-gateway.js'
import { sendRaw } from '../support/raw-http.js'
import { dataDirectory, STORE_START_MS } from '../support/stores.js'

/** What the log and the audit log say of a stranger who says that he comes from there. */
async function shownAddresses(server: object, forwardedFor: string | readonly string[]): Promise<unknown[]> {
  const directory = await dataDirectory()
  const sections = { server, auth: { keys: [{ id: 'test', key: TEST_KEY }], adminKey: ADMIN_KEY } }
  const seen: unknown[] = []
  await withP1Gateway({ sections, dataDirectory: directory }, async ({ gateway }) => {
    const refused = { authorization: 'Bearer nobodys', 'x-forwarded-for': forwardedFor }
    await sendRaw(gateway.url, {
      path: CHAT_PATH,
      headers: { ...refused, 'x-request-id': 'chat' },
      body: chatText('Hi'),
    })
    seen.push((await gateway.logLine('chat'))['address'])
    await sendRaw(gateway.url, { method: 'GET', path: '/admin/v1/keys', headers: refused })
    const { json } = await adminCaller(gateway.url).call('GET', '/audit')
    const rows = json['data'] as readonly { readonly action: string; readonly details: { readonly address?: string } }[]
    seen.push(rows.find(({ action }) => action === 'authorize')?.details.address)
  })
  await rm(directory, { recursive: true })
  return seen
}

describe('the address of a caller who was refused', () => {
  it(
    'is what a trusted proxy says, whatever the caller had written before',
    async () => {
      const behind = await shownAddresses({ trustedProxies: ['127.0.0.0/8'] }, ['198.51.100.1', '203.0.113.7'])
      expect(behind).toEqual(['203.0.113.7', '203.0.113.7'])
    },
    STORE_START_MS,
  )

  it.each([[{}], [{ trustedProxies: ['10.0.0.0/8'] }]])(
    'is that of the connection when nobody trusts it (%j)',
    async (server) => {
      expect(await shownAddresses(server, '203.0.113.7')).toEqual(['127.0.0.1', '127.0.0.1'])
    },
    STORE_START_MS,
  )

  it('stands in no line about a call that was served', async () => {
    await withP1Gateway({ sections: { server: { trustedProxies: ['127.0.0.1'] } } }, async ({ gateway }) => {
      const headers = { 'x-forwarded-for': '203.0.113.7', 'x-request-id': 'served' }
      expect((await sendRaw(gateway.url, { path: CHAT_PATH, headers, body: chatText('Hi') })).status).toBe(200)
      expect(await gateway.logLine('served')).not.toHaveProperty('address')
    })
  })
})
