import { rm } from 'node:fs/promises'
import { describe, expect, it } from '@jest/globals'
import { newKey } from '../../src/auth/key-table.js'
import { ADMIN_KEY, ADMIN_SECTION, adminCaller, type AdminLab, startAdminLab, withKey } from '../support/admin-lab.js'
import { eventually } from '../support/eventually.js'
import { ask } from '../support/failing-calls.js'
import { chat, CHAT_PATH, chatText, type RawAnswer, sendRaw, TEST_KEY } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { withP1Gateway } from '../support/provider-gateways.js'
import { openai6 } from '../support/sdk-clients.js'
import { dataDirectory } from '../support/stores.js'

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
  ['POST', '/admin/v1/store/backup'],
  ['GET', '/admin/v1/audit'],
] as const

describe('without auth.adminKey', () => {
  it('no admin path can be distinguished from one that never existed', async () => {
    await withP1Gateway({}, async ({ gateway }) => {
      for (const key of [undefined, TEST_KEY, ADMIN_KEY]) {
        for (const method of ['GET', 'HEAD', 'POST', 'PATCH', 'PUT', 'DELETE', 'OPTIONS']) {
          const headers = withKey(key, { 'x-request-id': 'same' })
          const nowhere = await sendRaw(gateway.url, { method, path: '/nowhere/v1/keys', headers })
          for (const path of ['/admin', '/admin/', '/admin/v1', ...new Set(ROUTES.map(([, route]) => route))]) {
            const answer = await sendRaw(gateway.url, { method, path, headers })
            // The message names the path.
            const expected = nowhere.text.replace('/nowhere/v1/keys', path)
            expect([path, answer.status, answer.text]).toEqual([path, 404, expected])
            const lengths = { date: '', 'content-length': '' }
            expect({ ...answer.headers, ...lengths }).toEqual({ ...nowhere.headers, ...lengths })
          }
        }
      }
      expect(gateway.logText()).not.toContain('opening the store')
    })
  })
})

describe('with auth.adminKey', () => {
  let lab: AdminLab
  shareLab(async () => (lab = await startAdminLab()))

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
    const request = { method: 'GET', path: '/admin/v1/keys', headers: withKey(undefined) }
    const refused = await sendRaw(lab.gateway.url, request)
    expect(refused).toMatchObject({ status: 401, headers: { 'cache-control': 'no-store' } })
  })

  it('shows routes and methods to the operator only', async () => {
    expect(await lab.admin.call('PUT', '/keys')).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD, POST' } })
    expect(await lab.admin.call('POST', '/usage')).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } })
    const nothing = await lab.admin.call('GET', '/nothing')
    expect(nothing).toMatchObject({ status: 404, json: { error: { code: 'not_found' } } })
    expect((await lab.admin.call('HEAD', '/keys')).status).toBe(200)
  })

  it('shows the usage of all keys, by day, model and key', async () => {
    const { id, key } = await lab.admin.issue({ id: 'spender' })
    await openai6(lab.gateway, { apiKey: key }).chat.completions.create({ ...chat('Hello'), model: 'gpt-4o-mini' })
    const { status, json } = await lab.admin.call('GET', `/usage?group_by=day,model,key&key=${id}`)
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
      'from=2026-02-01&to=2026-02-30',
      'from=2020-01-01',
      'owner=x',
      'key=a&key=b',
      'model=%00',
    ]) {
      expect((await lab.admin.call('GET', `/usage?${query}`)).status).toBe(400)
    }
  })

  it('shows the channels, and closes a breaker by hand', async () => {
    const stateOf = async (): Promise<unknown> =>
      ((await lab.admin.call('GET', '/channels')).json['data'] as { state: string }[]).map(({ state }) => state)
    expect((await lab.admin.call('GET', '/channels')).json).toMatchObject({
      data: [
        { id: 'first', provider: 'p1', priority: 0, weight: 1, consecutive_failures: 0, open_for_ms: 0, waiting: 0 },
        { id: 'second', priority: 1, latency_ms: null },
      ],
    })
    for (let count = 0; count < 3; count += 1) {
      await ask(lab.gateway, '#500', { model: 'gpt-4o' })
    }
    expect(await stateOf()).toEqual(expect.arrayContaining(['open']))
    const reset = await lab.admin.call('POST', '/channels/first/reset')
    expect(reset).toMatchObject({ status: 200, json: { id: 'first', state: 'closed', consecutive_failures: 0 } })
    await lab.admin.call('POST', '/channels/second/reset')
    expect(await stateOf()).toEqual(['closed', 'closed'])
    expect(await lab.admin.call('POST', '/channels/unknown/reset')).toMatchObject({ status: 404 })
  })

  it('says why nothing can be reloaded where there is no file', async () => {
    expect(await lab.admin.call('POST', '/config/reload')).toMatchObject({
      status: 422,
      json: { error: { code: 'configuration_refused', faults: ['there is no configuration file to reload'] } },
    })
  })
})

describe('the audit log', () => {
  // A lab of its own: what others have done is written behind, and would be counted here.
  let lab: AdminLab
  shareLab(async () => (lab = await startAdminLab()))

  it('records every use of the admin key, accepted or refused, with action and outcome', async () => {
    const [last] = await lab.auditTrail('?limit=1')
    await lab.admin.call('POST', '/keys', { id: 'audited', models: ['tts-*'], note: 'secret words', limits: null })
    await lab.admin.call('POST', '/keys', { id: 'audited' })
    await lab.admin.call('PATCH', '/keys/audited', { note: null, expires_at: 5 })
    await lab.admin.call('GET', '/keys/audited')
    await lab.admin.call('DELETE', '/keys/audited')
    await lab.admin.call('DELETE', '/keys/audited-not')
    await adminCaller(lab.gateway.url, 'wrong-canary-key').call('GET', '/keys')
    const since = Number(last?.['sequence'] ?? 0)
    const rows = async () =>
      (await lab.auditTrail('?limit=50')).filter(
        ({ sequence, action }) => Number(sequence) > since && action !== 'audit.list',
      )
    await eventually(async () => (await rows()).length === 7)
    const actor = expect.stringMatching(/^admin-[0-9a-f]{8}$/)
    const row = (action: string, outcome: string, target: string | null, details = {}, who: unknown = actor) => ({
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

  it('writes no key down that was typed where an id, a model or a name belongs', async () => {
    const { id, key } = await lab.admin.issue()
    const foreign = 'sk-of-an-upstream-1'
    const asCaller = (body: object): Promise<RawAnswer> =>
      sendRaw(lab.gateway.url, { path: CHAT_PATH, headers: withKey(key), body: JSON.stringify(body) })
    const typed = [TEST_KEY, ADMIN_KEY, key, foreign]
    for (const secret of typed) {
      for (const method of ['GET', 'PATCH', 'DELETE']) {
        const answer = await lab.admin.call(method, `/keys/${secret}`, method === 'PATCH' ? { note: 'x' } : undefined)
        expect([method, answer.status]).toEqual([method, 404])
      }
      await lab.admin.call('POST', `/channels/${secret}/reset`)
      const created = await lab.admin.call('POST', '/keys', { id: secret })
      expect(created).toMatchObject({ status: 400, json: { error: { param: 'id', code: 'invalid_value' } } })
      await lab.admin.call('PATCH', `/keys/${id}`, { models: [secret, '*'] })
      await lab.admin.call('POST', '/keys', { [secret]: 1 })
      expect((await asCaller({ ...chat('Hi'), model: secret })).status).toBe(404)
      expect((await asCaller({ ...chat('Hi'), model: ` ${secret}` })).status).toBe(404)
      await asCaller({ ...chat('Hi'), [secret.toUpperCase()]: 1, [secret]: 1 })
      await asCaller({ ...chat('Hi'), stream_options: { [secret.toUpperCase()]: 1, [secret]: 1 } })
    }
    expect((await asCaller({ ...chat('Hi'), model: 'no-such-model' })).status).toBe(404)
    await eventually(
      async () => (await lab.auditTrail('?limit=1000')).filter(({ target }) => target === '[key]').length >= 12,
    )
    const records = await sendRaw(lab.gateway.url, {
      method: 'GET',
      path: '/v1/usage/records?limit=100',
      headers: withKey(key),
    })
    const places = {
      log: lab.gateway.logText(),
      audit: JSON.stringify(await lab.auditTrail('?limit=1000')),
      usage: records.text,
    }
    for (const [place, text] of Object.entries(places)) {
      for (const secret of typed) {
        const lines = text
          .split(/\n|(?=\{"(?:id|sequence)")/)
          .filter((line) => line.toLowerCase().includes(secret.toLowerCase()))
        expect([place, lines]).toEqual([place, []])
      }
    }
    expect(places.log).toContain('"model":"[key]"')
    expect(places.log).toContain('"model":"no-such-model"')
    expect(places.log).toContain('"action":"keys.revoke","target":"[key]","outcome":"refused"')
  })

  it('shows the audit log page by page, the newest first', async () => {
    const all = await lab.auditTrail('?limit=1000')
    const page = await lab.admin.call('GET', `/audit?limit=2&before=${String(all[1]?.['sequence'])}`)
    expect(page.json).toMatchObject({
      has_more: true,
      data: [{ sequence: all[2]?.['sequence'] }, { sequence: all[3]?.['sequence'] }],
    })
  })
})

describe('a channel that passes the caller’s key on', () => {
  it('is never handed the admin key, nor any key that the gateway issues, known or not', async () => {
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
      await sendRaw(gateway.url, { path: '/v1/chat/completions', body, headers: withKey('sk-of-another-upstream') })
      expect(simulator.requests).toHaveLength(1)
    })
    await rm(directory, { recursive: true })
  })
})

/** What the audit log has of those who were not let in, the newest first. */
async function strangersIn(gateway: { readonly url: string }): Promise<readonly object[]> {
  const { json } = await adminCaller(gateway.url).call('GET', '/audit?limit=1000')
  return (json['data'] as { action: string }[]).filter(({ action }) => action === 'authorize')
}

describe('a client that guesses the admin key', () => {
  it('gets 429 after ten guesses, while the operator is admitted and no key at all is 401, and does not fill the audit log', async () => {
    const directory = await dataDirectory()
    await withP1Gateway({ sections: ADMIN_SECTION, dataDirectory: directory }, async ({ gateway }) => {
      const statuses: number[] = []
      for (const headers of [{ authorization: undefined }, { authorization: 'Basic x' }, withKey(TEST_KEY)]) {
        statuses.push((await sendRaw(gateway.url, { method: 'GET', path: '/admin/v1/keys', headers })).status)
      }
      for (let count = 0; count < 20; count += 1) {
        const headers = withKey(newKey('sk-gw-admin-'))
        statuses.push((await sendRaw(gateway.url, { method: 'GET', path: '/admin/v1/anything', headers })).status)
      }
      const none = { authorization: undefined }
      statuses.push((await sendRaw(gateway.url, { method: 'GET', path: '/admin/v1/keys', headers: none })).status)
      expect(statuses).toEqual([...Array<number>(11).fill(401), ...Array<number>(12).fill(429), 401])
      const headers = withKey(`${ADMIN_KEY}x`)
      const limited = await sendRaw(gateway.url, { method: 'GET', path: '/admin/v1/keys', headers })
      expect(Number(limited.headers['retry-after'])).toBeGreaterThan(0)
      expect(Number(limited.headers['retry-after'])).toBeLessThanOrEqual(60)
      expect(await strangersIn(gateway)).toMatchObject([{ details: { reason: 'key_missing', address: '127.0.0.1' } }])
    })
    // What came after the first of a minute is one row, written at its end or at that of the process.
    await withP1Gateway({ sections: ADMIN_SECTION, dataDirectory: directory }, async ({ gateway }) => {
      expect(await strangersIn(gateway)).toMatchObject([
        { details: { refused: 24, seconds: 60, addresses: ['127.0.0.1'] }, outcome: 'refused', actor: '-' },
        { details: { reason: 'key_missing' } },
      ])
    })
    await rm(directory, { recursive: true })
  })
})

/** The address that the log and the audit log have of a refused client which sends this `X-Forwarded-For`. */
async function shownAddresses(server: object, forwardedFor: string | readonly string[]): Promise<unknown[]> {
  const directory = await dataDirectory()
  const sections = { server, auth: { keys: [{ id: 'test', key: TEST_KEY }], adminKey: ADMIN_KEY } }
  const seen: unknown[] = []
  await withP1Gateway({ sections, dataDirectory: directory }, async ({ gateway }) => {
    const refused = { authorization: 'Bearer unknown', 'x-forwarded-for': forwardedFor }
    const headers = { ...refused, 'x-request-id': 'chat' }
    await sendRaw(gateway.url, { path: CHAT_PATH, headers, body: chatText('Hi') })
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
  it('is what a trusted proxy says, whatever the caller had written before', async () => {
    const behind = await shownAddresses({ trustedProxies: ['127.0.0.0/8'] }, ['198.51.100.1', '203.0.113.7'])
    expect(behind).toEqual(['203.0.113.7', '203.0.113.7'])
  })

  it.each([[{}], [{ trustedProxies: ['10.0.0.0/8'] }]])(
    'is that of the connection if no proxy is trusted (%j)',
    async (server) => {
      expect(await shownAddresses(server, '203.0.113.7')).toEqual(['127.0.0.1', '127.0.0.1'])
    },
  )

  it('stands in no line about a call that was served', async () => {
    await withP1Gateway({ sections: { server: { trustedProxies: ['127.0.0.1'] } } }, async ({ gateway }) => {
      const headers = { 'x-forwarded-for': '203.0.113.7', 'x-request-id': 'served' }
      expect((await sendRaw(gateway.url, { path: CHAT_PATH, headers, body: chatText('Hi') })).status).toBe(200)
      expect(await gateway.logLine('served')).not.toHaveProperty('address')
    })
  })
})
