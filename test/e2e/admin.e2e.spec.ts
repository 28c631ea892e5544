import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { newKey } from '../../src/auth/issued-key.js'
import { ADMIN_KEY, adminCaller } from '../support/admin-caller.js'
import { ADMIN_SECTION, type AdminLab, startAdminLab, withKey } from '../support/admin-lab.js'
import { eventually } from '../support/eventually.js'
import { TEST_KEY } from '../support/gateway.js'
import { withP1Gateway } from '../support/p1-gateway.js'
import { sendRaw } from '../support/raw-http.js'
import { dataDirectory, STORE_START_MS } from '../support/stores.js'

describe('with auth.adminKey', () => {
  let lab: AdminLab
  beforeAll(async () => {
    lab = await startAdminLab()
  }, STORE_START_MS)
  afterAll(() => lab.close())

  it('writes down whoever is let in or is not, what they did, and how it ended', async () => {
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
    const all = await lab.auditTrail('?limit=1000')
    const page = await lab.admin.call('GET', `/audit?limit=2&before=${String(all[1]?.['sequence'])}`)
    expect(page.json).toMatchObject({
      has_more: true,
      data: [{ sequence: all[2]?.['sequence'] }, { sequence: all[3]?.['sequence'] }],
    })
  })
})

/** What the audit log has of those who were not let in, the newest first. */
async function strangersIn(gateway: { readonly url: string }): Promise<readonly object[]> {
  const { json } = await adminCaller(gateway.url).call('GET', '/audit?limit=1000')
  return (json['data'] as { action: string }[]).filter(({ action }) => action === 'authorize')
}

describe('whoever guesses at the admin key', () => {
  it(
    'is told to wait after ten guesses, while the operator is let in, and does not fill the audit log',
    async () => {
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
        expect(statuses).toEqual([...Array<number>(10).fill(401), ...Array<number>(13).fill(429)])
        const headers = withKey(`${ADMIN_KEY}x`)
        const limited = await sendRaw(gateway.url, { method: 'GET', path: '/admin/v1/keys', headers })
        expect(Number(limited.headers['retry-after'])).toBeGreaterThan(0)
        expect(Number(limited.headers['retry-after'])).toBeLessThanOrEqual(60)
        expect(await strangersIn(gateway)).toMatchObject([{ details: { reason: 'key_missing', address: '127.0.0.1' } }])
      })
      // What came after the first of a minute is one row, written at its end or at that of the process.
      await withP1Gateway({ sections: ADMIN_SECTION, dataDirectory: directory }, async ({ gateway }) => {
        expect(await strangersIn(gateway)).toMatchObject([
          { details: { refused: 23, seconds: 60, addresses: ['127.0.0.1'] }, outcome: 'refused', actor: '-' },
          { details: { reason: 'key_missing' } },
        ])
      })
      await rm(directory, { recursive: true })
    },
    STORE_START_MS,
  )
})
