import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import Anthropic from '@anthropic-ai/sdk'
import Anthropic1 from 'anthropic-sdk-1'
import { TEST_KEY } from '../support/gateway.js'
import { OPENAI_CLIENTS } from '../support/openai-clients.js'
import { startP1Gateway, type P1Gateway } from '../support/p1-gateway.js'
import { errorOf, sendRaw } from '../support/raw-http.js'

const LIMITED_KEY = 'limited-gateway-key'

let lab: P1Gateway

beforeAll(async () => {
  const keys = [
    { id: 'test', key: TEST_KEY },
    { id: 'limited', key: LIMITED_KEY, models: ['tts-*', 'house-model', 'claude-*'] },
  ]
  lab = await startP1Gateway({
    keys,
    channel: { models: ['tts-1', 'tts-1-hd', 'gpt-4o*', 'house-model', 'open-ended-*'] },
    sections: { models: [{ id: 'open-ended-row', class: 'chat', providers: ['p1'] }] },
  })
})
afterAll(() => lab.close())

interface Listing {
  readonly object: string
  readonly data: readonly { readonly id: string; readonly object: string; readonly owned_by: string }[]
}

const list = async (key: string): Promise<Listing> => {
  const headers = { authorization: `Bearer ${key}` }
  const answer = await sendRaw(lab.gateway.url, { method: 'GET', path: '/v1/models', headers })
  expect(answer.status).toBe(200)
  return JSON.parse(answer.text) as Listing
}

describe('the list of models', () => {
  it('holds what some channel serves, once each and in order, and nothing else', async () => {
    const { object, data } = await list(TEST_KEY)
    const ids = data.map(({ id }) => id)
    expect(object).toBe('list')
    expect(ids).toEqual(expect.arrayContaining(['tts-1', 'gpt-4o', 'gpt-4o-mini', 'house-model', 'open-ended-row']))
    expect(ids).toEqual([...new Set(ids)].sort())
    for (const absent of ['tts-1-1106', 'gpt-5', 'claude-sonnet-4-5', 'speech-02-hd', 'vidgen-v1-6'])
      expect(ids).not.toContain(absent)
    expect(data.every((model) => model.object === 'model' && model.owned_by === 'p1')).toBe(true)
  })

  it('holds only what the key may use', async () => {
    const ids = (await list(LIMITED_KEY)).data.map(({ id }) => id)
    expect(ids).toEqual(['house-model', 'tts-1', 'tts-1-hd'])
  })

  it('asks no upstream and is closed to strangers', async () => {
    const headers = { authorization: 'Bearer unknown' }
    const answer = await sendRaw(lab.gateway.url, { method: 'GET', path: '/v1/models', headers })
    expect(answer.status).toBe(401)
    expect(errorOf(answer)).toMatchObject({ type: 'authentication_error', code: 'invalid_api_key' })
    expect(lab.simulator.requests).toEqual([])
  })

  it('allows no other method', async () => {
    const answer = await sendRaw(lab.gateway.url, { method: 'DELETE', path: '/v1/models/gpt-4o' })
    expect(answer.status).toBe(405)
    expect(answer.headers['allow']).toBe('GET, HEAD')
  })
})

describe.each(OPENAI_CLIENTS)('models with %s', (_name, makeClient) => {
  it('are listed and retrieved', async () => {
    const client = makeClient(lab.gateway)
    const ids: string[] = []
    for await (const model of client.models.list()) ids.push(model.id)
    expect(ids).toContain('gpt-4o')
    expect(await client.models.retrieve('gpt-4o')).toMatchObject({ id: 'gpt-4o', object: 'model', created: 0 })
  })

  it.each(['no-such-model', 'gpt-5', 'a%2Fb'])('do not include %s', async (id) => {
    const wanted = makeClient(lab.gateway).models.retrieve(id)
    await expect(wanted).rejects.toMatchObject({ status: 404, code: 'model_not_found', param: 'model' })
  })

  it('do not include what the key may not use', async () => {
    const client = makeClient(lab.gateway, { apiKey: LIMITED_KEY })
    await expect(client.models.retrieve('gpt-4o')).rejects.toMatchObject({ status: 404 })
    expect(await client.models.retrieve('tts-1')).toMatchObject({ id: 'tts-1' })
  })
})

const anthropic = { baseURL: '', maxRetries: 0 }

describe.each([
  [
    '@anthropic-ai/sdk 0.137.0',
    (key: object): Anthropic => new Anthropic({ ...anthropic, baseURL: lab.gateway.url, ...key }),
  ],
  [
    '@anthropic-ai/sdk 1.11.0',
    (key: object): Anthropic =>
      new Anthropic1({ ...anthropic, baseURL: lab.gateway.url, ...key }) as unknown as Anthropic,
  ],
])('models with %s', (_name, makeClient) => {
  it.each([{ apiKey: TEST_KEY }, { apiKey: null, authToken: TEST_KEY }])(
    'are listed and retrieved with %j',
    async (key) => {
      const client = makeClient(key)
      const ids: string[] = []
      for await (const model of client.models.list()) ids.push(model.id)
      expect(ids).toContain('gpt-4o')
      expect(await client.models.retrieve('gpt-4o')).toMatchObject({
        id: 'gpt-4o',
        type: 'model',
        display_name: 'gpt-4o',
      })
    },
  )
})
