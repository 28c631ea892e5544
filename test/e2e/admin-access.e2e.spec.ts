import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { newKey } from '../../src/auth/issued-key.js'
import { ADMIN_KEY, adminCaller } from '../support/admin-caller.js'
import { ADMIN_SECTION, type AdminLab, startAdminLab, withKey } from '../support/admin-lab.js'
import { chat } from '../support/chat-bodies.js'
import { TEST_KEY } from '../support/gateway.js'
import { withP1Gateway } from '../support/p1-gateway.js'
import { sendRaw } from '../support/raw-http.js'
import { dataDirectory, STORE_START_MS } from '../support/stores.js'

const ROUTES = [
  ['POST', '/admin/v1/keys'],
  ['GET', '/admin/v1/keys'],
  ['GET', '/admin/v1/keys/a'],
  ['PATCH', '/admin/v1/keys/a'],
  ['DELETE', '/admin/v1/keys/a'],
  ['GET', '/admin/v1/usage'],
  ['GET', '/admin/v1/channels'],
  ['POST', '/admin/v1/channels/first/reset'],
  ['POST', '/admin/v1/config/reload'],
  ['GET', '/admin/v1/audit'],
] as const

describe('without auth.adminKey', () => {
  it('nothing of the administration can be told from a path that never existed', async () => {
    await withP1Gateway({}, async ({ gateway }) => {
      for (const key of [undefined, TEST_KEY, ADMIN_KEY]) {
        for (const method of ['GET', 'HEAD', 'POST', 'PATCH', 'PUT', 'DELETE', 'OPTIONS']) {
          const headers = withKey(key, { 'x-request-id': 'same' })
          const nowhere = await sendRaw(gateway.url, { method, path: '/nowhere/v1/keys', headers })
          for (const path of ['/admin', '/admin/', '/admin/v1', ...new Set(ROUTES.map(([, route]) => route))]) {
            const answer = await sendRaw(gateway.url, { method, path, headers })
            expect([path, answer.status, answer.text]).toEqual([path, 404, nowhere.text])
            expect({ ...answer.headers, date: '' }).toEqual({ ...nowhere.headers, date: '' })
          }
        }
      }
      expect(gateway.logText()).not.toContain('opening the store')
    })
  }, 60_000)
})

describe('with auth.adminKey', () => {
  let lab: AdminLab
  beforeAll(async () => {
    lab = await startAdminLab()
  }, STORE_START_MS)
  afterAll(() => lab.close())

  it('opens no caller’s route to the admin key, and the other way round', async () => {
    const answer = await sendRaw(lab.gateway.url, { method: 'GET', path: '/v1/models', headers: withKey(ADMIN_KEY) })
    expect(answer.status).toBe(401)
    const { key } = await lab.admin.issue()
    for (const callerKey of [TEST_KEY, key]) {
      const refused = await adminCaller(lab.gateway.url, callerKey).call('GET', '/keys')
      expect(refused).toMatchObject({ status: 401, json: { error: { code: 'invalid_api_key', param: null } } })
      expect(refused.text).toContain('The admin key is not valid.')
    }
  })

  it('lets no answer be kept, whether it is good or bad', async () => {
    for (const [method, path] of ROUTES) {
      const answer = await sendRaw(lab.gateway.url, { method, path, headers: withKey(ADMIN_KEY) })
      expect([path, answer.headers['cache-control']]).toEqual([path, 'no-store'])
    }
    const refused = await sendRaw(lab.gateway.url, {
      method: 'GET',
      path: '/admin/v1/keys',
      headers: withKey(undefined),
    })
    expect(refused).toMatchObject({ status: 401, headers: { 'cache-control': 'no-store' } })
  })

  it('tells the operator, and nobody else, which routes and methods there are', async () => {
    expect(await lab.admin.call('PUT', '/keys')).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD, POST' } })
    expect(await lab.admin.call('POST', '/usage')).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } })
    expect(await lab.admin.call('GET', '/nothing')).toMatchObject({
      status: 404,
      json: { error: { code: 'not_found' } },
    })
    expect((await lab.admin.call('HEAD', '/keys')).status).toBe(200)
  })
})

describe('a channel that passes the caller’s key on', () => {
  it(
    'is never handed the admin key, nor any key that the gateway issues, known or not',
    async () => {
      const directory = await dataDirectory()
      const options = { sections: ADMIN_SECTION, dataDirectory: directory, channel: { credentials: 'caller' } }
      await withP1Gateway(options, async ({ gateway, simulator }) => {
        const { id, key } = await adminCaller(gateway.url).issue()
        await adminCaller(gateway.url).call('DELETE', `/keys/${id}`)
        const body = JSON.stringify({ ...chat('Hello'), model: 'gpt-4o' })
        for (const secret of [ADMIN_KEY, key, newKey()]) {
          const answer = await sendRaw(gateway.url, { path: '/v1/chat/completions', body, headers: withKey(secret) })
          expect(answer.status).toBe(401)
        }
        expect(simulator.requests).toEqual([])
        await sendRaw(gateway.url, { path: '/v1/chat/completions', body, headers: withKey('sk-somebody-else') })
        expect(simulator.requests).toHaveLength(1)
      })
      await rm(directory, { recursive: true })
    },
    STORE_START_MS,
  )
})
