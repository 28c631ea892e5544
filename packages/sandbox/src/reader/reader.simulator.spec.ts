import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { Simulator } from '../server/simulator-server.js'
import { startReaderSimulator } from './reader.simulator.js'

let simulator: Simulator
beforeAll(async () => {
  simulator = await startReaderSimulator({ apiKey: 'key' })
})
afterAll(() => simulator.close())

const AUTHORIZATION = { authorization: 'Bearer key' }
const post = (path: string, body: unknown, headers: Readonly<Record<string, string>> = AUTHORIZATION) =>
  fetch(simulator.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
const url = 'https://example.org/a'

describe('The simulated reader', () => {
  it.each<[string, object, Record<string, string>]>([
    ['/v1/document/parse', { url, timeout: 0.5 }, {}],
    ['/v2/scrape', { url, timeout: 1000, formats: ['markdown'] }, {}],
    ['/', { url }, { 'x-timeout': '180' }],
  ])('answers %s as that interface does', async (path, body, headers) => {
    const response = await post(path, body, { ...AUTHORIZATION, ...headers })
    expect(response.status).toBe(200)
    expect(await response.text()).toContain(`Text of ${url}`)
  })

  it.each<[string, unknown, number, Record<string, string>]>([
    ['/v1/document/parse', { url: 'no url', timeout: 1 }, 400, {}],
    ['/v1/document/parse', { url, timeout: 0 }, 400, {}],
    ['/v1/document/parse', { url }, 400, {}],
    ['/v1/document/parse', { url, timeout: 1, wait: 1 }, 400, {}],
    ['/v1/document/parse', [], 400, {}],
    ['/v1/document/parse', { url, timeout: 1 }, 415, { 'content-type': 'text/plain' }],
    ['/v1/document/parse', { url, timeout: 1 }, 401, { authorization: 'Bearer other' }],
    ['/v2/scrape', { url, timeout: 999, formats: ['markdown'] }, 400, {}],
    ['/v2/scrape', { url, timeout: 1000, formats: [] }, 400, {}],
    ['/v2/parse', { url, timeout: 1000, formats: ['html'] }, 400, {}],
    ['/', { url }, 400, {}],
    ['/', { url }, 400, { 'x-timeout': '181' }],
    ['/v3/scrape', { url }, 404, {}],
  ])('refuses %s with %j: %i', async (path, body, status, headers) => {
    expect((await post(path, body, { ...AUTHORIZATION, ...headers })).status).toBe(status)
  })

  it.each([
    ['/v1/document/parse', { timeout: '2' }, 200],
    ['/v1/document/parse', { timeout: 'soon' }, 400],
    ['/v2/parse', { options: '{"formats":["markdown"],"timeout":2000}' }, 200],
    ['/v2/parse', { options: '{' }, 400],
    ['/v2/scrape', { options: '{"formats":["markdown"],"timeout":2000}' }, 400],
  ])('judges the form of a file at %s with %j: %i', async (path, fields, status) => {
    const form = new FormData()
    for (const [name, value] of Object.entries(fields)) form.set(name, value)
    form.set('file', new Blob(['text']), 'a.txt')
    const response = await fetch(simulator.url + path, { method: 'POST', headers: AUTHORIZATION, body: form })
    expect(response.status).toBe(status)
  })

  it('refuses a form without a file, or with two', async () => {
    for (const names of [[], ['file', 'file']]) {
      const form = new FormData()
      form.set('timeout', '1')
      for (const name of names) form.append(name, new Blob(['text']), 'a.txt')
      const response = await fetch(`${simulator.url}/v1/document/parse`, {
        method: 'POST',
        headers: AUTHORIZATION,
        body: form,
      })
      expect(response.status).toBe(400)
    }
  })

  it('suffers the fault that a name asks for', async () => {
    expect((await post('/v1/document/parse', { url: 'https://a.example/fault-503', timeout: 1 })).status).toBe(503)
  })

  it('notes a header that a relay should have kept', async () => {
    await post('/v1/document/parse', { url, timeout: 1 }, { ...AUTHORIZATION, 'x-forwarded-for': '1.2.3.4' })
    expect(simulator.lastRequest?.violations).toEqual(['forwarded header: x-forwarded-for'])
  })
})
