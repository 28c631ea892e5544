import { createHash } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { describe, expect, it } from '@jest/globals'
import { VIDGEN_KINDS } from '@multi-model-gateway/sandbox/vidgen/vidgen-request.js'
import { ADMIN_KEY, type AdminAnswer, adminCaller, type AdminCaller } from '../support/admin-lab.js'
import { eventually } from '../support/eventually.js'
import { chat, TEST_KEY } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { type P1Gateway, startP1Gateway } from '../support/provider-gateways.js'
import { openai6 } from '../support/sdk-clients.js'
import { dataDirectory } from '../support/stores.js'
import { startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import { VideoCaller } from '../support/video-caller.js'

describe('keys', () => {
  const DAY_MS = 86_400_000

  let lab: P1Gateway
  let admin: AdminCaller
  shareLab(async () => {
    const directory = await dataDirectory()
    const auth = { keys: [{ id: 'test', key: TEST_KEY }], adminKey: ADMIN_KEY, keyRefreshMs: 100 }
    lab = await startP1Gateway({ sections: { auth }, dataDirectory: directory })
    admin = adminCaller(lab.gateway.url)
    return {
      close: async () => {
        await lab.close()
        await rm(directory, { recursive: true })
      },
    }
  })

  const client = (apiKey: string) => openai6(lab.gateway, { apiKey })
  const say = (apiKey: string, model = 'gpt-4o-mini') =>
    client(apiKey).chat.completions.create({ ...chat('Hello'), model })
  const statusOf = (attempt: Promise<unknown>): Promise<unknown> =>
    attempt.then(
      () => 200,
      (error: unknown) => (error as { status?: number }).status,
    )

  describe('the life of a key', () => {
    it('begins with the only answer that holds it, and ends at once when it is revoked', async () => {
      const created = await admin.call('POST', '/keys', {
        id: 'team-b',
        models: ['gpt-4o-*'],
        limits: { requestsPerMinute: 100 },
        translation: 'strict',
        note: 'for team b',
        expires_at: Date.now() + DAY_MS,
      })
      expect(created.status).toBe(201)
      const { key, ...shown } = created.json
      expect(key).toMatch(/^sk-gw-[0-9A-Za-z]{43}$/)
      expect(shown).toEqual({
        object: 'api_key',
        id: 'team-b',
        hint: String(key).slice(0, 10),
        state: 'active',
        models: ['gpt-4o-*'],
        limits: { requestsPerMinute: 100 },
        translation: 'strict',
        note: 'for team b',
        created_at: expect.any(Number),
        updated_at: expect.any(Number),
        expires_at: expect.any(Number),
        revoked_at: null,
      })
      expect((await admin.call('GET', '/keys/team-b')).json).toEqual(shown)
      expect((await say(String(key))).choices).toHaveLength(1)
      expect(await statusOf(say(String(key), 'tts-1'))).toBe(403)

      const changed = await admin.call('PATCH', '/keys/team-b', { models: ['tts-*'], translation: null, note: null })
      expect(changed.json).toMatchObject({
        models: ['tts-*'],
        translation: null,
        note: null,
        limits: { requestsPerMinute: 100 },
      })
      expect(await statusOf(say(String(key)))).toBe(403)
      await admin.call('PATCH', '/keys/team-b', { models: null })
      expect(await statusOf(say(String(key)))).toBe(200)

      const revoked = await admin.call('DELETE', '/keys/team-b')
      expect(revoked).toMatchObject({ status: 200, json: { state: 'revoked', revoked_at: expect.any(Number) } })
      await expect(say(String(key))).rejects.toMatchObject({
        status: 401,
        code: 'invalid_api_key',
        message: expect.stringContaining('The API key has been revoked.'),
      })
      expect((await admin.call('DELETE', '/keys/team-b')).json).toEqual(revoked.json)
      const late = await admin.call('PATCH', '/keys/team-b', { note: 'x' })
      expect(late).toMatchObject({ status: 409, json: { error: { code: 'key_revoked' } } })
    })

    it('needs nothing said: an id is made up, and every model is open', async () => {
      const { id, key } = await admin.issue({ id: null, models: null, limits: null, note: null, expires_at: null })
      expect(id).toMatch(/^key-[0-9a-f]{12}$/)
      expect(await statusOf(say(key))).toBe(200)
      expect((await client(key).models.list()).data.length).toBeGreaterThan(10)
    })

    it('ends when it expires, and goes on when that is put off', async () => {
      const { id, key } = await admin.issue()
      await admin.call('PATCH', `/keys/${id}`, { expires_at: 1 })
      const message: unknown = expect.stringContaining('The API key has expired.')
      await expect(say(key)).rejects.toMatchObject({ status: 401, message })
      expect((await admin.call('GET', `/keys/${id}`)).json).toMatchObject({ state: 'expired' })
      await admin.call('PATCH', `/keys/${id}`, { expires_at: null })
      expect(await statusOf(say(key))).toBe(200)
    })

    it('ends by the clock alone', async () => {
      const expiresAtMs = Date.now() + 500
      const { key } = await admin.issue({ expires_at: expiresAtMs })
      expect(await statusOf(say(key))).toBe(200)
      await eventually(() => Date.now() >= expiresAtMs)
      expect(await statusOf(say(key))).toBe(401)
    })

    it('is listed page by page in the order of ids', async () => {
      for (const id of ['page-b', 'page-A', 'page-a']) await admin.issue({ id })
      const { json } = await admin.call('GET', '/keys?after=page-&limit=2')
      expect(json).toMatchObject({ object: 'list', has_more: true, data: [{ id: 'page-A' }, { id: 'page-a' }] })
      const next = await admin.call('GET', '/keys?after=page-a&limit=1')
      expect(next.json).toMatchObject({ data: [{ id: 'page-b' }] })
    })

    it('is won by one of two hundred that want the same id', async () => {
      const create = (): Promise<AdminAnswer> => admin.call('POST', '/keys', { id: 'the-one' })
      const answers = await Promise.all(Array.from({ length: 200 }, create))
      const won = answers.filter(({ status }) => status === 201)
      expect(won).toHaveLength(1)
      const lost = answers.filter(({ status }) => status === 409)
      expect(lost).toHaveLength(199)
      expect(lost[0]?.json).toMatchObject({ error: { param: 'id', code: 'id_taken' } })
      expect(await statusOf(say(String(won[0]?.json['key'])))).toBe(200)
    })

    it('cannot begin with the id of a configured key', async () => {
      const answer = await admin.call('POST', '/keys', { id: 'test' })
      expect(answer).toMatchObject({ status: 409, json: { error: { param: 'id', code: 'id_taken' } } })
      expect(answer.text).toContain('configuration file')
    })
  })

  describe('what is asked of keys', () => {
    it.each([
      [{ id: 'a b' }, 'id', 'invalid_value', /1 to 64 letters/],
      [{ id: '' }, 'id', 'invalid_value', /1 to 64 letters/],
      [{ id: 7 }, 'id', 'invalid_value', /must be a string/],
      [{ id: 'x'.repeat(65) }, 'id', 'invalid_value', /1 to 64 letters/],
      [{ id: "x'; drop table api_key; --" }, 'id', 'invalid_value', /1 to 64 letters/],
      [{ id: 'caller' }, 'id', 'invalid_value', /somebody else/],
      [{ models: 'gpt-*' }, 'models', 'invalid_type', /an array/],
      [{ models: [] }, 'models', 'empty_array', /at least 1/],
      [{ models: ['gpt-?'] }, 'models[0]', 'invalid_value', /only \* stands for any text/],
      [{ models: ['a', 5] }, 'models[1]', 'invalid_value', /must be a string/],
      [{ models: Array.from({ length: 257 }, () => 'a') }, 'models', 'array_above_max_length', /at most 256/],
      [{ limits: 5 }, 'limits', 'invalid_type', /an object/],
      [{ limits: { requestsPerMinut: 5 } }, 'limits', 'unknown_parameter', /'requestsPerMinut'.*requestsPerMinute/],
      [{ limits: { concurrency: 0 } }, 'limits.concurrency', 'integer_below_min_value', />= 1/],
      [{ limits: { tokensPerMinute: '5' } }, 'limits.tokensPerMinute', 'invalid_type', /an integer/],
      [{ limits: { tokensPerMinute: 1.5 } }, 'limits.tokensPerMinute', 'invalid_type', /an integer/],
      [{ limits: { realtimeSessions: null } }, 'limits.realtimeSessions', 'invalid_type', /an integer/],
      [{ note: 5 }, 'note', 'invalid_type', /a string/],
      [{ translation: 'loose' }, 'translation', 'invalid_value', /strict/],
      [{ note: 'n'.repeat(501) }, 'note', 'string_above_max_length', /500/],
      [{ note: 'a\u0000b' }, 'note', 'invalid_value', /control characters/],
      [{ expires_at: '2030-01-01' }, 'expires_at', 'invalid_type', /an integer/],
      [{ expires_at: -1 }, 'expires_at', 'integer_below_min_value', />= 0/],
      [{ expires_at: 9e15 }, 'expires_at', 'integer_above_max_value', /<= 8640000000000000/],
      [{ expires_at: 1_800_000_000 }, 'expires_at', 'invalid_value', /in the future, in Unix milliseconds/],
      [{ expiresAt: 1 }, 'expiresAt', 'unknown_parameter', /'expiresAt'.*id/],
      [{ key: 'sk-gw-mine' }, 'key', 'unknown_parameter', /'key'/],
      ['{"id":"a","id":"b"}', 'id', 'duplicate_key', /twice/],
      ['{"__proto__":{}}', '__proto__', 'forbidden_key', /not allowed/],
      ['[]', null, 'invalid_json', /must be a JSON object/],
      ['{', null, 'invalid_json', /not valid JSON/],
    ])('is refused as %j, naming %s', async (body, param, code, message) => {
      const { status, json } = await admin.call('POST', '/keys', body)
      expect({ status, ...json }).toMatchObject({ status: 400, error: { type: 'invalid_request_error', param, code } })
      expect((json['error'] as { message: string }).message).toMatch(message)
    })

    it.each(['limit=0', 'limit=1001', 'limit=ten', 'limit=1&limit=2', 'page=1', 'constructor=1'])(
      'is refused as a list with %s',
      async (query) => {
        const { status, json } = await admin.call('GET', `/keys?${query}`)
        expect({ status, ...json }).toMatchObject({ status: 400, error: { param: query.split('=')[0] } })
      },
    )

    it('is refused when it is longer than 64 KiB, from its headers alone', async () => {
      expect(await admin.call('POST', '/keys', { note: 'n'.repeat(65_536) })).toMatchObject({ status: 413 })
      expect(await admin.call('POST', '/keys', `{"note":"n"${' '.repeat(65_536 - 12)}}`)).toMatchObject({ status: 201 })
    })

    it.each([
      'unknown',
      "team-b' or '1'='1",
      "x'; drop table api_key; --",
      'a%00b',
      '..%2f..%2fetc',
      'x'.repeat(2000),
      '%F0%9F%94%91',
      'constructor',
      '-',
    ])('is not found under what is no id (%#), and leaves everything as it was', async (id) => {
      const path = `/keys/${id.replaceAll(' ', '%20')}`
      const before = (await admin.call('GET', '/keys?limit=1000')).text
      for (const [method, body] of [['GET'], ['PATCH', { note: 'x' }], ['DELETE']] as const) {
        const answer = await admin.call(method, path, body)
        expect(answer).toMatchObject({ status: 404, json: { error: { code: 'not_found' } } })
      }
      expect((await admin.call('GET', '/keys?limit=1000')).text).toBe(before)
    })
  })

  describe('a secret', () => {
    it('is nowhere but in the one answer that gives it: not in answers, in logs, or in the store', async () => {
      const { id, key } = await admin.issue({ note: 'canary' })
      const digest = createHash('sha256').update(key).digest('hex')
      await say(key)
      await statusOf(say(`${key}x`))
      const answers = [
        await admin.call('GET', `/keys/${id}`),
        await admin.call('GET', '/keys?limit=1000'),
        await admin.call('POST', '/keys', { id }),
        await admin.call('PATCH', `/keys/${id}`, { note: key }),
        await admin.call('PATCH', `/keys/${id}`, { note: null }),
        await admin.call('DELETE', `/keys/${id}`),
        await admin.call('GET', '/audit?limit=1000'),
      ]
      const shown = [...answers.filter((_, index) => index !== 3).map(({ text }) => text), lab.gateway.logText()].join()
      const adminDigest = createHash('sha256').update(ADMIN_KEY).digest('hex')
      for (const secret of [key, digest, digest.slice(0, 8), ADMIN_KEY, adminDigest, adminDigest.slice(0, 8)]) {
        expect(shown).not.toContain(secret)
      }
      expect(shown).toContain(id)
      expect(lab.simulator.requests.some(({ headers }) => JSON.stringify(headers).includes('sk-gw-'))).toBe(false)
    })
  })
})

describe('keys streams', () => {
  const [kind] = VIDGEN_KINDS

  const auth = { keys: [{ id: 'test', key: TEST_KEY }], adminKey: ADMIN_KEY }
  let lab: VidgenGateway
  shareLab(async () => (lab = await startVidgenGateway({ sections: { auth } })))

  describe('the events of a task', () => {
    it('end with an error when the key of their reader is revoked, and continue for all others', async () => {
      const admin = adminCaller(lab.gateway.url)
      const { id, key } = await admin.issue()
      const [caller, other] = [new VideoCaller(lab.gateway, key, kind), new VideoCaller(lab.gateway, TEST_KEY, kind)]
      const task = await caller.created()
      const stream = await caller.follow(task)
      const bystander = await other.follow(await other.created())
      await stream.shows('submitted')
      await bystander.shows('submitted')
      await admin.call('DELETE', `/keys/${id}`)
      await stream.ended
      expect(stream.text).toContain('The API key is not valid any more.')
      expect((await caller.read(task)).status).toBe(401)
      expect(bystander.text).not.toContain('not valid')
      bystander.leave()
    })
  })
})
