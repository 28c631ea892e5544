import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { type AdminLab, startAdminLab } from '../support/admin-lab.js'
import { chat } from '../support/chat-bodies.js'
import { openai6 } from '../support/openai-clients.js'
import { sendRaw } from '../support/raw-http.js'
import { STORE_START_MS } from '../support/stores.js'

describe('with auth.adminKey', () => {
  let lab: AdminLab
  beforeAll(async () => {
    lab = await startAdminLab()
  }, STORE_START_MS)
  afterAll(() => lab.close())

  it('shows what everybody used, by day, model and key', async () => {
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
      await sendRaw(lab.gateway.url, {
        path: '/v1/chat/completions',
        body: JSON.stringify({ ...chat('#500'), model: 'gpt-4o' }),
      })
    }
    expect(await stateOf()).toEqual(expect.arrayContaining(['open']))
    const reset = await lab.admin.call('POST', '/channels/first/reset')
    expect(reset).toMatchObject({ status: 200, json: { id: 'first', state: 'closed', consecutive_failures: 0 } })
    await lab.admin.call('POST', '/channels/second/reset')
    expect(await stateOf()).toEqual(['closed', 'closed'])
    expect(await lab.admin.call('POST', '/channels/nobody/reset')).toMatchObject({ status: 404 })
  })

  it('says why nothing can be reloaded where there is no file', async () => {
    expect(await lab.admin.call('POST', '/config/reload')).toMatchObject({
      status: 422,
      json: { error: { code: 'configuration_refused', faults: ['there is no configuration file to reload'] } },
    })
  })
})
