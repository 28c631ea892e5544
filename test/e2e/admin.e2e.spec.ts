import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { newKey } from '../../src/common/auth/issued-key.js'
import { adminCaller, ADMIN_KEY, type AdminCaller } from '../support/admin-caller.js'
import { chat } from '../support/chat-bodies.js'
import { eventually } from '../support/eventually.js'
import { TEST_KEY } from '../support/gateway.js'
import { openai6 } from '../support/openai-clients.js'
import { startP1Gateway, type P1Gateway, withP1Gateway } from '../support/p1-gateway.js'
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

const withKey = (key: string | undefined, more: object = {}) => ({
  authorization: key === undefined ? undefined : `Bearer ${key}`,
  ...more,
})
const adminSection = { auth: { keys: [{ id: 'test', key: TEST_KEY }], adminKey: ADMIN_KEY } }

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
  let directory: string
  let lab: P1Gateway
  let admin: AdminCaller

  beforeAll(async () => {
    directory = await dataDirectory()
    lab = await startP1Gateway({ sections: adminSection, dataDirectory: directory, withSecond: true })
    admin = adminCaller(lab.gateway.url)
  }, STORE_START_MS)
  afterAll(async () => {
    await lab.close()
    await rm(directory, { recursive: true })
  })

  const auditTrail = async (query = ''): Promise<Record<string, unknown>[]> =>
    (await admin.call('GET', `/audit${query}`)).json['data'] as Record<string, unknown>[]

  it('opens no caller’s route to the admin key, and the other way round', async () => {
    const answer = await sendRaw(lab.gateway.url, { method: 'GET', path: '/v1/models', headers: withKey(ADMIN_KEY) })
    expect(answer.status).toBe(401)
    const { key } = await admin.issue()
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
    expect(await admin.call('PUT', '/keys')).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD, POST' } })
    expect(await admin.call('POST', '/usage')).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } })
    expect(await admin.call('GET', '/nothing')).toMatchObject({ status: 404, json: { error: { code: 'not_found' } } })
    expect((await admin.call('HEAD', '/keys')).status).toBe(200)
  })

  it('writes down whoever is let in or is not, what they did, and how it ended', async () => {
    const [last] = await auditTrail('?limit=1')
    await admin.call('POST', '/keys', { id: 'audited', models: ['tts-*'], note: 'secret words', limits: null })
    await admin.call('POST', '/keys', { id: 'audited' })
    await admin.call('PATCH', '/keys/audited', { note: null, expires_at: 5 })
    await admin.call('GET', '/keys/audited')
    await admin.call('DELETE', '/keys/audited')
    await admin.call('DELETE', '/keys/audited-not')
    await adminCaller(lab.gateway.url, 'wrong-canary-key').call('GET', '/keys')
    const since = Number(last?.['sequence'])
    const rows = async () =>
      (await auditTrail('?limit=50')).filter(
        ({ sequence, action }) => Number(sequence) > since && action !== 'audit.list',
      )
    await eventually(async () => (await rows()).length === 7)
    const actor = expect.stringMatching(/^admin-[0-9a-f]{8}$/)
    const row = (
      action: string,
      outcome: string,
      target: string | null,
      details: object = {},
      who: unknown = actor,
    ) => ({
      sequence: expect.any(Number),
      at: expect.any(Number),
      actor: who,
      action,
      target,
      outcome,
      details,
      request_id: expect.stringMatching(/^req_/),
    })
    const address = { reason: 'unauthorized', method: 'GET', address: '127.0.0.1' }
    const found = (await rows()).sort((one, other) => Number(one['sequence']) - Number(other['sequence']))
    expect(found).toEqual(
      expect.arrayContaining([
        row('keys.create', 'done', 'audited', { models: ['tts-*'], note: '…' }),
        row('keys.create', 'refused', 'audited'),
        row('keys.change', 'done', 'audited', { note: null, expires_at: 5 }),
        row('keys.show', 'done', 'audited'),
        row('keys.revoke', 'done', 'audited'),
        row('keys.revoke', 'refused', 'audited-not'),
        row('authorize', 'refused', null, address, '-'),
      ]),
    )
    const line = lab.gateway
      .logText()
      .split('\n')
      .find((text) => text.includes('"action":"keys.revoke","target":"audited","'))
    expect(JSON.parse(line ?? '{}')).toMatchObject({ msg: 'audit', outcome: 'done', actor })
    for (const secret of ['wrong-canary-key', 'secret words']) expect(lab.gateway.logText()).not.toContain(secret)
  })

  it('shows the audit log page by page, the newest first', async () => {
    const all = await auditTrail('?limit=1000')
    const page = await admin.call('GET', `/audit?limit=2&before=${String(all[1]?.['sequence'])}`)
    expect(page.json).toMatchObject({
      has_more: true,
      data: [{ sequence: all[2]?.['sequence'] }, { sequence: all[3]?.['sequence'] }],
    })
  })

  it('shows what everybody used, by day, model and key', async () => {
    const { id, key } = await admin.issue({ id: 'spender' })
    await openai6(lab.gateway, { apiKey: key }).chat.completions.create({ ...chat('Hello'), model: 'gpt-4o-mini' })
    const { status, json } = await admin.call('GET', `/usage?group_by=day,model,key&key=${id}`)
    expect(status).toBe(200)
    expect(json['data']).toEqual([
      expect.objectContaining({
        day: new Date().toISOString().slice(0, 10),
        model: 'gpt-4o-mini',
        key: id,
        records: 1,
        units: expect.objectContaining({ prompt_tokens: expect.any(Number), completion_tokens: expect.any(Number) }),
      }),
    ])
    for (const query of [
      'group_by=hour',
      'group_by=day,day',
      'from=yesterday',
      'owner=x',
      'key=a&key=b',
      'model=%00',
    ]) {
      expect((await admin.call('GET', `/usage?${query}`)).status).toBe(400)
    }
  })

  it('shows the channels, and closes a breaker by hand', async () => {
    const stateOf = async (): Promise<unknown> =>
      ((await admin.call('GET', '/channels')).json['data'] as { state: string }[]).map(({ state }) => state)
    expect((await admin.call('GET', '/channels')).json).toMatchObject({
      data: [
        { id: 'first', provider: 'p1', priority: 0, weight: 1, consecutive_failures: 0, open_for_ms: 0, waiting: 0 },
        { id: 'second', priority: 1, latency_ms: null },
      ],
    })
    for (let count = 0; count < 3; count += 1) {
      await sendRaw(lab.gateway.url, {
        path: '/v1/chat/completions',
        body: JSON.stringify({ ...chat('#500'), model: 'gpt-4o' }),
      })
    }
    expect(await stateOf()).toEqual(expect.arrayContaining(['open']))
    const reset = await admin.call('POST', '/channels/first/reset')
    expect(reset).toMatchObject({ status: 200, json: { id: 'first', state: 'closed', consecutive_failures: 0 } })
    await admin.call('POST', '/channels/second/reset')
    expect(await stateOf()).toEqual(['closed', 'closed'])
    expect(await admin.call('POST', '/channels/nobody/reset')).toMatchObject({ status: 404 })
  })

  it('says why nothing can be reloaded where there is no file', async () => {
    expect(await admin.call('POST', '/config/reload')).toMatchObject({
      status: 422,
      json: { error: { code: 'configuration_refused', faults: ['there is no configuration file to reload'] } },
    })
  })
})

describe('whoever guesses at the admin key', () => {
  it(
    'is told to wait after ten guesses, while the operator is let in, and does not fill the audit log',
    async () => {
      const directory = await dataDirectory()
      await withP1Gateway({ sections: adminSection, dataDirectory: directory }, async ({ gateway }) => {
        const statuses: number[] = []
        for (const headers of [{ authorization: undefined }, { authorization: 'Basic x' }, withKey(TEST_KEY)]) {
          statuses.push((await sendRaw(gateway.url, { method: 'GET', path: '/admin/v1/keys', headers })).status)
        }
        for (let count = 0; count < 20; count += 1) {
          const headers = withKey(newKey('sk-gw-admin-'))
          statuses.push((await sendRaw(gateway.url, { method: 'GET', path: '/admin/v1/anything', headers })).status)
        }
        expect(statuses).toEqual([...Array<number>(10).fill(401), ...Array<number>(13).fill(429)])
        const headers = withKey(`${ADMIN_KEY}x`)
        const limited = await sendRaw(gateway.url, { method: 'GET', path: '/admin/v1/keys', headers })
        expect(Number(limited.headers['retry-after'])).toBeGreaterThan(0)
        expect(Number(limited.headers['retry-after'])).toBeLessThanOrEqual(60)
        const admin = adminCaller(gateway.url)
        const rows = (await admin.call('GET', '/audit?limit=1000')).json['data'] as { action: string }[]
        expect(rows.filter(({ action }) => action === 'authorize')).toHaveLength(10)
      })
      await rm(directory, { recursive: true })
    },
    STORE_START_MS,
  )
})

describe('a channel that passes the caller’s key on', () => {
  it(
    'is never handed the admin key, nor any key that the gateway issues, known or not',
    async () => {
      const directory = await dataDirectory()
      const options = { sections: adminSection, dataDirectory: directory, channel: { credentials: 'caller' } }
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
